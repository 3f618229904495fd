"""The strict reader against Python's own, on texts that are JSON and texts that are not quite."""

import json

import pytest

from rig.strict_json import NotJsonError, Value, read


def plain(value: Value) -> object:
    if value.kind == "{":
        return {name: plain(inner) for name, inner in value.members.items()}
    if value.kind == "[":
        return [plain(inner) for inner in value.items]
    return value.text if value.kind == "string" else json.loads(value.raw)


@pytest.mark.parametrize(
    "text",
    [
        b"{}",
        b"[]",
        b' [1, -0, 0.5, 1e5, 1E+2, "a\\u00e4\\n", true, false, null, {}, [[]]] \n',
        b'{"a": {"b": [{"c": "\\ud83d\\ude00"}]}, "": 1}',
        '{"ä": "€"}'.encode(),
        b"0",
        b'"x"',
        b"[" * 5000 + b"]" * 5000,
    ],
)
def test_reads_as_python_does(text: bytes) -> None:
    found = read(text)
    assert found.raw == text.strip()
    if len(text) < 5000:
        assert plain(found) == json.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            b"",
            b" ",
            b"{",
            b"}",
            b"[1",
            b"[1,]",
            b"[,1]",
            b'{"a"}',
            b'{"a":}',
            b'{"a":1,}',
            b"{a:1}",
            b"{1:2}",
        ),
        *(b"[1}", b'{"a":1]', b"01", b"+1", b".5", b"1.", b"1e", b"NaN", b"-Infinity", b"0x1", b"'a'"),
        *(
            b'"\x01"',
            b'"\\x"',
            b'"\\u12"',
            b'"a',
            b"\xef\xbb\xbf{}",
            b"\xff",
            b'"\xc0\xaf"',
            b'"\xed\xa0\x80"',
        ),
        *(
            b"{} {}",
            b"{},",
            b"{}x",
            b"{}\x00",
            b"//\n{}",
            b'{"a":1,"a":2}',
            b'{"a":1,"\\u0061":2}',
            b"tru",
            b"[1 2]",
        ),
        *(
            b'[{"a":{"b":1,"b":1}}]',
            b"\x0b{}",
            "{}\u00a0".encode(),
            "{}".encode("utf-16"),
            b"[1:2]",
            b'{"a",1}',
        ),
    ],
)
def test_refuses_what_is_not_json_or_repeats_a_name(text: bytes) -> None:
    with pytest.raises(NotJsonError):
        read(text)


def test_keeps_how_members_are_written() -> None:
    written = [("a", b'"a" : 1.50'), ("b", b'"\\u0062":[ 2 ]')]
    assert read(b'{ "a" : 1.50 ,"\\u0062":[ 2 ]}').written == written
    assert read(b'{"a":1,"a":2}', may_repeat=True).written == [("a", b'"a":1'), ("a", b'"a":2')]
