"""Which messages of a bot can be read in one way only. All others are never sent."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealgate.venues.key_kinds import Kind
from sealgate.venues.routes import Permission
from sealgate.venues.streams import MOST_LETTERS, MOST_MEMBERS, Stream, UnclearError
from sealgate.venues.venue import read_venue

TEXT = """name = "mine"
title = "Mine"
[signing]
message = "{timestamp}"
headers = { SIGN = "{signature}" }
[[streams]]
host = "ws.example.com"
[[streams.messages]]
when = { "/op" = "ping", "/args/0/channel" = ["*"] }
[[streams.messages]]
when = { "/op" = ["ping", "subscribe"] }
[[streams.messages]]
when = { "" = ["ping", "pong*", 5] }
"""
[STREAM] = read_venue("mine.toml", TEXT).streams
TWICE = "a key comes twice"
SPELLED = "a key is not spelled as the exchange spells it"
ESCAPED = "the name of a member has an escape"
NOT_JSON = "it is not one JSON text"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        # A member twice: some parsers take the first, some the last.
        ('{"op":"order","op":"ping"}', TWICE),
        ('{"op":"ping","args":[{"channel":"a","channel":"b"}]}', TWICE),
        ('{"op":"ping","x":1,"x":1}', TWICE),
        ('{"op":"ping","x":1,"X":1}', TWICE),
        ('{"op":"ping","x_y":1,"xY":1}', TWICE),
        ('{"op":"ping","x-y":1,"x y":1}', TWICE),
        ('{"op":"ping","x\\u0000":1,"x":1}', TWICE),
        ('{"op":"ping","stra\u00dfe":1,"strasse":1}', TWICE),
        ('{"op":"order","\\u006fp":"ping"}', TWICE),
        # A name that some server takes for one of the file's.
        ('{"OP":"order","op":"ping"}', SPELLED),
        ('{"Op":"order"}', SPELLED),
        ('{"o_p":"order","op":"ping"}', SPELLED),
        ('{"o-p":"order","op":"ping"}', SPELLED),
        ('{" op":"order","op":"ping"}', SPELLED),
        ('{"op ":"order","op":"ping"}', SPELLED),
        ('{"op\\u0000":"order","op":"ping"}', SPELLED),
        ('{"op\\u200b":"order","op":"ping"}', SPELLED),
        ('{"op\u200b":"order","op":"ping"}', SPELLED),
        ('{"\ufeffop":"order","op":"ping"}', SPELLED),
        ('{"op[]":"order","op":"ping"}', SPELLED),
        ('{"op":"ping","Args":[]}', SPELLED),
        ('{"op":"ping","args":[{"Channel":"b"}]}', SPELLED),
        ('[{"op":"ping"},{"Op":"order"}]', SPELLED),
        # A name that is not written as it is read.
        ('{"\\u006fp":"ping"}', ESCAPED),
        ('{"\\u006Fp" :"ping"}', ESCAPED),
        ('{"op":"ping","a\\/b":1}', ESCAPED),
        ('{"op":"ping","a\\"":1}', ESCAPED),
        ('{"op":"\\u0070ing","x":{"\\u0061" \n:1}}', ESCAPED),
        # What is no JSON, or more than one.
        ("", NOT_JSON),
        (" ", NOT_JSON),
        ("Ping", NOT_JSON),
        ("ping ", NOT_JSON),
        ("pong-1", NOT_JSON),
        ("order", NOT_JSON),
        ('\ufeff{"op":"ping"}', NOT_JSON),
        ('{"op":"ping"}{"op":"order"}', NOT_JSON),
        ('{"op":"ping"}\n{"op":"order"}', NOT_JSON),
        ('{"op":"ping"},', NOT_JSON),
        ('{"op":"ping",}', NOT_JSON),
        ("{'op':'ping'}", NOT_JSON),
        ('{op:"ping"}', NOT_JSON),
        ('{"op":"ping"} // order', NOT_JSON),
        ('/**/{"op":"ping"}', NOT_JSON),
        ('{"op":"pi\nng"}', NOT_JSON),
        ('{"op":"ping\u0000"}', NOT_JSON),
        ('{"op":"ping"}\u0000', NOT_JSON),
        ('\u00a0{"op":"ping"}', NOT_JSON),
        ('{"op":"ping"', NOT_JSON),
        ('{"op":"ping","x":01}', NOT_JSON),
        ('{"op":"ping","x":+1}', NOT_JSON),
        ('{"op":"ping","x":0x1}', NOT_JSON),
        ('{"op":"ping","x":' + "9" * 5000 + "}", NOT_JSON),
        ("[" * 50_000, NOT_JSON),
        ("[" * 30_000 + "]" * 30_000, NOT_JSON),
        ('{"a":' * 1_900 + "1" + "}" * 1_900, NOT_JSON),
        ('{"a":' * 10_000 + "1" + "}" * 10_000, f"it has more than {MOST_MEMBERS} members, or colons"),
        ('{"op":"ping","x":NaN}', "NaN is not JSON"),
        ('{"op":"ping","x":[-Infinity]}', "-Infinity is not JSON"),
        ('{"op":"ping"}' + " " * MOST_LETTERS, f"it has more than {MOST_LETTERS} letters"),
    ],
)
def test_what_somebody_might_read_in_another_way_is_not_clear(text: str, words: str) -> None:
    with pytest.raises(UnclearError) as raised:
        STREAM.clear(text)
    assert str(raised.value) == words


@pytest.mark.parametrize(
    "text",
    [
        '{"op":"ping"}',
        ' \r\n\t{ "op" : "ping" } ',
        '{"op":"p\\u0069ng"}',  # a value may be written so: it has one meaning
        '{"op":"ping","x":"a\\"b\\\\"}',
        '{"op":"ping","x":"\\": "}',
        '{"op":"ping","x":["\\u0061"]}',
        '{"op":"ping","x":"\\ud83d\\ude00"}',
        '{"op":"ping","\u00fc":1,"u":2}',
        '{"op":"ping","a":{"x":1},"b":{"X":1}}',
        '{"op":"ping","x":1e999,"y":-0,"z":1.0e-8}',
        '{"args":[{"channel":"a"},{"channel":"b"}]}',
        "[]",
        "[[[[[[[]]]]]]]",
        "null",
        "5",
        '"x"',
        "{}",
        '{"":1}',
    ],
)
def test_what_has_one_meaning_is_read(text: str) -> None:
    assert STREAM.clear(text) == json.loads(text)


@pytest.mark.parametrize("text", ["ping", "pong*"])
def test_a_bare_text_must_be_as_the_file_writes_it(text: str) -> None:
    document = STREAM.clear(text)
    assert document == text
    rule, route = STREAM.find(document, Kind.HMAC)
    assert rule is not None
    assert route.needs is Permission.READ


def test_a_number_of_the_file_is_no_bare_text() -> None:
    assert STREAM.clear("5") == 5


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(st.characters(codec="ascii", categories=["Ll", "Nd"])), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(JSON, st.booleans(), st.sampled_from([None, 2]))
def test_what_a_plain_client_writes_is_clear(document: Any, is_ascii: bool, indent: int | None) -> None:
    text = json.dumps(document, ensure_ascii=is_ascii, indent=indent)
    assert STREAM.clear(text) == document


@given(st.text('{}[]":,\\u0061opOP \n1', max_size=20))
def test_whatever_comes_is_read_or_refused(text: str) -> None:
    """What is read must be what Python's own parser reads, with no name that comes twice."""
    try:
        document = STREAM.clear(text)
    except UnclearError:
        return
    assert document == json.loads(text, object_pairs_hook=unique)


def unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name.casefold() for name, _ in members]
    assert len(set(names)) == len(names)
    return dict(members)


def test_a_stream_without_messages_is_not_read() -> None:
    plain = Stream("x", ("ws.example.com",), (), Permission.READ)
    assert not plain.is_read
    assert STREAM.is_read
