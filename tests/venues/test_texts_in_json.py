"""Strings at places of a JSON text are changed, and every other byte stays."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealgate.venues.json_edit import change_texts
from sealgate.venues.unsignable import UnsignableError


def louder(text: str) -> str:
    return text.upper()


@pytest.mark.parametrize(
    ("text", "steps", "changed"),
    [
        ('"a"', "", '"A"'),
        ('{"a" : "b" , "c":1.0}', "a", '{"a" : "B" , "c":1.0}'),
        ('{"a":"b","a":"c"}', "a", '{"a":"B","a":"C"}'),
        ('[ "a" , "b" ]', "1", '[ "a" , "B" ]'),
        ('[ "a" , "b" ]', "*", '[ "A" , "B" ]'),
        ('[{"a":"x"},{"b":"y"},{"a":"z"}]', "*/a", '[{"a":"X"},{"b":"y"},{"a":"Z"}]'),
        ('{"a":{"b":"c"}}', "*/*", '{"a":{"b":"C"}}'),
        (r'{"a":"\u0041"}', "a", r'{"a":"\u0041"}'),  # unchanged, so it is not written anew
        (r'{"a":"\u0041b"}', "a", '{"a":"AB"}'),
        ('{"a":1,"b":null}', "*", '{"a":1,"b":null}'),
        ('{"a":"b"}', "a/b", '{"a":"b"}'),
        ('{"a":"b"}', "x", '{"a":"b"}'),
        ("", "a", ""),
        ("7", "a", "7"),
    ],
)
def test_what_is_changed(text: str, steps: str, changed: str) -> None:
    assert change_texts(text, steps.split("/") if steps else (), louder) == changed


@pytest.mark.parametrize("text", ['{"a":', '{"a" "b"}', "[1 2]", '{"a":"b"', "[" * 100_000])
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(UnsignableError):
        change_texts(text, ("*", "*", "*"), louder)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)
STEPS = st.lists(st.sampled_from(["a", "b", "0", "1", "*"]), max_size=3)


def expected(document: Any, steps: list[str]) -> Any:
    if not steps:
        return f"<{document}>" if isinstance(document, str) else document
    step, rest = steps[0], steps[1:]
    if isinstance(document, dict):
        return {name: expected(one, rest) if step in (name, "*") else one for name, one in document.items()}
    if isinstance(document, list):
        return [expected(one, rest) if step in (str(at), "*") else one for at, one in enumerate(document)]
    return document


@given(JSON, STEPS, st.sampled_from([None, 1]))
def test_any_document_reads_as_if_it_was_changed_as_values(
    document: Any, steps: list[str], indent: int | None
) -> None:
    text = json.dumps(document, indent=indent)
    changed = change_texts(text, steps, lambda found: f"<{found}>")
    assert json.loads(changed) == expected(document, steps)
    assert change_texts(text, steps, str) == text
