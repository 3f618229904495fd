"""What a parser says of itself between two pieces, and how it names what is wrong with a target."""

import pytest

from sealgate.http.head_memory import HeadMemory
from sealgate.http.parser import Malformed, RequestHead, RequestParser

WHOLE = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


@pytest.mark.parametrize(
    ("data", "is_between", "is_in_head", "is_over"),
    [
        (b"", True, False, False),
        (b"\r\n", True, True, False),
        (WHOLE[:20], False, True, False),
        (WHOLE, True, False, False),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{", False, False, False),
        (b"\x00", False, False, True),
    ],
    ids=["nothing", "an empty line", "a part of a head", "a request", "a part of a body", "no HTTP"],
)
def test_it_says_what_the_next_byte_belongs_to(
    data: bytes, is_between: bool, is_in_head: bool, is_over: bool
) -> None:
    parser = RequestParser()
    parser.feed(data)
    assert (parser.is_between, parser.is_in_head, parser.is_over) == (is_between, is_in_head, is_over)


def test_once_closed_it_is_over() -> None:
    parser = RequestParser()
    parser.close()
    assert parser.is_over


def test_a_head_is_looked_up_only_where_a_message_begins() -> None:
    memory: HeadMemory[RequestHead] = HeadMemory()
    parser = RequestParser()
    head = parser.feed(WHOLE)[0]
    assert isinstance(head, RequestHead)
    memory.put(head)
    found = parser.find(memory, WHOLE)
    assert found is not None
    assert (found[0].target, found[1]) == ("/", b"")
    parser.feed(WHOLE[:20])
    assert parser.find(memory, WHOLE) is None


@pytest.mark.parametrize(
    ("target", "detail"),
    [
        ("/ü".encode(), "The target has ü unescaped; it is written %C3%BC."),
        (b"/\xff", "The target has a character beyond ASCII that is not escaped."),
        ("/x?a=\x85".encode(), "The target has a character beyond ASCII that is not escaped."),
        (b"/\x01", "This is not HTTP/1.1."),
        (b"/x?a=\x01\r\nX-Name: \xe9", "This is not HTTP/1.1."),
    ],
)
def test_a_letter_that_should_have_been_escaped_is_named(target: bytes, detail: str) -> None:
    (event,) = RequestParser().feed(b"GET %b HTTP/1.1\r\nHost: a\r\n\r\n" % target)
    assert isinstance(event, Malformed)
    assert event.detail == detail
