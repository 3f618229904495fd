import json

import pytest

from sealgate.core.error_words import error_words

FIELDS = [{"msg": "field required", "loc": ["body", "size"]}, 7, {"loc": []}]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (json.dumps({"detail": "Invalid API key"}).encode(), "401 Invalid API key"),
        (json.dumps({"detail": FIELDS}).encode(), "401 field required;"),
        (json.dumps({"detail": "a\x1b[31mb\nc"}).encode(), "401 a [31mb c"),
        (json.dumps({"detail": "x" * 200}).encode(), f"401 {'x' * 100}…"),
        (json.dumps({"detail": 7}).encode(), "401"),
        (b"[]", "401"),
        (b"<html>", "401"),
        (b"[" * 100_000, "401"),
    ],
)
def test_what_an_error_says(body: bytes, words: str) -> None:
    assert error_words(401, body) == words
