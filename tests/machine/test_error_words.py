import json

import pytest

from rig.verdicts import judged
from sealgate.machine.findings import error_words

TOKEN = "token-of-somebody-0123456789"

FIELDS = [{"msg": "field required", "loc": ["body", "size"]}, 7, {"loc": []}]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (json.dumps({"detail": "Invalid API key"}).encode(), "401 Invalid API key"),
        (json.dumps({"detail": FIELDS}).encode(), "401 field required; 7"),
        (json.dumps({"detail": "a\x1b[31mb\nc"}).encode(), "401 a [31mb c"),
        (json.dumps({"detail": "x" * 100}).encode(), f"401 {'x' * 100}"),
        (json.dumps({"detail": "x" * 200}).encode(), f"401 {'x' * 100}…"),
        (b'{"detail": "\x1b[2Ja\x07b\xff\xc2\x9bm"}', "401  [2Ja b\ufffd m"),
        (json.dumps({"detail": "a\u202eb\ud800c"}).encode(), "401 a b c"),
        (json.dumps({"detail": [{"msg": "\x1b]0;x\x07"}]}).encode(), "401  ]0;x"),
        (json.dumps({"detail": 7}).encode(), "401 7"),
        (json.dumps({"detail": "401 Unauthorized"}).encode(), "401 Unauthorized"),
        (b"[]", "401"),
        (b"<html>", "401"),
        (b"[" * 100_000, "401"),
    ],
)
def test_what_an_error_says(body: bytes, words: str) -> None:
    assert error_words(401, judged(401, body).words) == words


@pytest.mark.parametrize("before", [0, 80, 90, 99, 100, 120])
@pytest.mark.parametrize("as_fields", [False, True])
def test_what_is_hidden_is_hidden_before_it_is_cut(before: int, *, as_fields: bool) -> None:
    said = f"{'x' * before}{TOKEN}{'y' * 200}"
    body = json.dumps({"detail": [{"msg": said}] if as_fields else said}).encode()
    words = error_words(401, judged(401, body).words, (TOKEN,))
    assert not any(TOKEN[:length] in words for length in range(1, len(TOKEN) + 1))
    assert len(words) == len("401 ") + 101


def test_one_hidden_text_may_be_a_part_of_another() -> None:
    body = json.dumps({"detail": f"{TOKEN}, {TOKEN}-more"}).encode()
    assert error_words(401, judged(401, body).words, ("", TOKEN, f"{TOKEN}-more")) == "401 …, …"


def test_what_is_hidden_may_be_written_with_escapes() -> None:
    body = b'{"detail": "of \\u0074oken-of-somebody-0123456789"}'
    assert error_words(401, judged(401, body).words, (TOKEN,)) == "401 of …"
