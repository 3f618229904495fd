"""The HTTP parser: bytes in, events out; whole, byte by byte, and from memory."""

import tracemalloc
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.parser_fuzz import REPLIES, REQUESTS, mutate, read_reply
from rig.bad_requests import framing, heads, targets
from sealgate.http.head_memory import HeadMemory
from sealgate.http.parser import (
    MOST_HEAD_BYTES,
    Malformed,
    RawReplyHead,
    ReplyParser,
    RequestHead,
    RequestParser,
)

Shown = list[tuple[Any, ...]]
RequestMemory = HeadMemory[RequestHead]
ReplyMemory = HeadMemory[RawReplyHead]
END = ("end",)
REFUSED, TOO_LARGE = ("malformed", False), ("malformed", True)
SURPLUS = REFUSED  # what comes behind a reply


def shown(events: Sequence[RequestHead | RawReplyHead | bytes | Malformed]) -> Shown:
    """Return events as values that can be compared, the parts of a body joined."""
    made: Shown = []
    for event in events:
        if isinstance(event, RequestHead):
            made.append((event.method, event.target, event.version, event.fields, event.keep_alive))
        elif isinstance(event, RawReplyHead):
            made.append((event.status, event.phrase, event.fields, event.keep_alive))
        elif isinstance(event, Malformed):
            return [*made, ("malformed", event.is_too_large)]  # whatever comes behind it is ignored
        elif event:
            before = made.pop()[1] if made and made[-1][0] == "body" else b""
            made.append(("body", before + event))
        else:
            made.append(END)
    return made


def requests(*parts: bytes) -> Shown:
    parser = RequestParser()
    return shown([event for part in parts for event in parser.feed(part)])


def reply(
    *parts: bytes, is_head: bool = False, memory: ReplyMemory | None = None, is_closed: bool = True
) -> Shown:
    parser = ReplyParser(ReplyMemory() if memory is None else memory)
    parser.expect(is_head=is_head)
    events = [event for part in parts for event in read_reply(parser, part)]
    return shown(events + ([b""] if is_closed and parser.ends_with_connection else []))


def each(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


@given(st.randoms(use_true_random=False))
def test_requests_read_the_same_whole_and_byte_by_byte(rng: object) -> None:
    data = mutate(rng, REQUESTS)  # type: ignore[arg-type]
    assert requests(data) == requests(*each(data))


@pytest.mark.parametrize("table", [targets, framing, heads], ids=["targets", "framing", "heads"])
def test_where_a_piece_ends_changes_nothing_of_a_bad_request(table: ModuleType) -> None:
    for bad in table.CASES.values():
        if len(bad.raw) < 1000:
            whole = requests(bad.raw)
            assert requests(*each(bad.raw)) == whole, bad
            assert all(requests(bad.raw[:cut], bad.raw[cut:]) == whole for cut in range(len(bad.raw))), bad


@given(st.randoms(use_true_random=False))
def test_replies_read_the_same_whole_byte_by_byte_and_from_memory(rng: object) -> None:
    memory = ReplyMemory()
    for data in REPLIES:
        reply(data, memory=memory)
    data = mutate(rng, REPLIES)  # type: ignore[arg-type]
    whole = reply(data)
    assert whole == reply(*each(data))
    assert whole == reply(data, memory=memory) == reply(data, memory=memory)


ORDER = (
    b"POST /o HTTP/1.1\r\nHost: a\r\nX-Empty:\r\nX-Spaces: \t b c \t\r\nX-Bytes: \xe9\r\n"
    b"Content-Length: 2\r\n\r\nab"
)


def test_a_request_has_its_raw_target_and_fields() -> None:
    head, body, end = RequestParser().feed(ORDER)
    assert isinstance(head, RequestHead)
    assert (head.method, head.target, head.version, head.length) == ("POST", "/o", (1, 1), 2)
    assert head.fields == (
        (b"Host", b"a"),
        (b"X-Empty", b""),
        (b"X-Spaces", b"b c"),
        (b"X-Bytes", b"\xe9"),
        (b"Content-Length", b"2"),
    )
    assert (body, end) == (b"ab", b"")


@pytest.mark.parametrize("piece", [1, 4096, 1 << 20])
@pytest.mark.parametrize(
    "data",
    [
        b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n",
        b"GET /a HTTP/1.1\r\nA: " + b"b" * 9000 + b"\r\n\r\n",
        b"GET /a HTTP/1.1\r\n" + b"A: b\r\n" * 129 + b"\r\n",
        b"GET /a HTTP/1.1\r\nA: " + b"b" * 100_000,
        b"GET /a HTTP/1.1\r\n" + b"A" * 100_000,
        b"\r\n" * 33_000,
        b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;" + b"x" * 40_000,
        b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"T: u\r\n" * 9000,
    ],
)
def test_a_head_or_a_framing_that_is_too_large_is_refused_as_it_arrives(data: bytes, piece: int) -> None:
    assert requests(*(data[at : at + piece] for at in range(0, len(data), piece)))[-1] == ("malformed", True)


def test_it_is_said_what_is_wrong_where_another_exception_is_being_handled() -> None:
    try:
        int("x")
    except ValueError:
        assert requests(b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n") == [("malformed", True)]


def test_an_unfinished_head_just_below_the_bound_is_kept() -> None:
    fields = b"".join(b"A: %b\r\n" % (b"b" * 8000) for _ in range(8))
    head = b"GET /a HTTP/1.1\r\n" + fields
    assert requests(head, b"B: " + b"b" * (MOST_HEAD_BYTES - len(head) - 4)) == []


def test_many_small_chunks_are_no_attack() -> None:
    body = b"1\r\na\r\n" * 20_000
    events = requests(b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + body + b"0\r\n\r\n")
    assert events[1:] == [("body", b"a" * 20_000), END]


@pytest.mark.parametrize(
    "framing", [b"Content-Length: 3\r\n\r\nabc", b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"]
)
def test_an_offer_of_another_protocol_is_ignored_and_its_body_is_read(framing: bytes) -> None:
    offer = b"POST /a HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n" + framing
    events = requests(offer * 300 + ORDER)
    assert events[1:3] == [("body", b"abc"), END]
    assert [event[1] for event in events if event[0] == "POST"] == ["/a"] * 300 + ["/o"]


def test_connect_ends_the_connection() -> None:
    assert [event[0] for event in requests(b"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n" + ORDER)] == [
        "CONNECT",
        "end",
    ]


def test_a_coding_in_http_1_0_ends_the_connection() -> None:
    chunked = b"POST /a HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    assert [event[0] for event in requests(chunked + ORDER)] == ["POST", "end"]


@pytest.mark.parametrize("coding", [b"chunked", b"gzip, chunked"])
@pytest.mark.parametrize("more", [b"", b"Content-Length: 2\r\n", b"Connection: keep-alive\r\n"])
def test_a_reply_with_a_coding_in_http_1_0_is_not_believed(coding: bytes, more: bytes) -> None:
    """RFC 9112 section 6.1: its framing is faulty, even if a Content-Length is present."""
    head = b"HTTP/1.0 200 OK\r\n%bTransfer-Encoding: %b\r\n\r\n" % (more, coding)
    for events in (reply(head + b"2\r\n{}\r\n0\r\n\r\n"), reply(*each(head + b"2\r\n{}\r\n0\r\n\r\n"))):
        assert events == [("malformed", False)]


def test_a_trailer_reaches_no_head() -> None:
    chunked = b"POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Service-Apikey: u\r\n\r\n"
    heads = [event for event in requests(chunked + ORDER + chunked) if event[0] == "POST"]
    assert all(b"X-Service-Apikey" not in dict(head[3]) for head in heads)


def test_a_memory_knows_heads_and_not_bodies() -> None:
    memory = RequestMemory()
    head = RequestParser().feed(ORDER)[0]
    assert isinstance(head, RequestHead)
    memory.put(head)
    assert memory.find(ORDER[:-2] + b"cd") == (head, b"cd")
    assert memory.find(ORDER[:-1]) is None
    assert memory.find(ORDER.partition(b"\r\n\r\n")[0]) is None
    assert memory.find(ORDER + b"e") is None
    memory.clear()
    assert memory.find(ORDER) is None


@pytest.mark.parametrize(
    "data",
    [
        ORDER[:-1],
        ORDER + ORDER,
        ORDER.replace(b"X-Empty:", b"Connection: close"),
        b"POST /o HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ORDER.replace(b"X-Empty:", b"X: " + b"a" * 5000),
    ],
)
def test_what_is_no_plain_whole_request_is_not_kept(data: bytes) -> None:
    memory = RequestMemory()
    for event in RequestParser().feed(data):
        if isinstance(event, RequestHead):
            memory.put(event)
    assert len(memory) == 0


HEADS = {
    "small": b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n",
    "many fields": b"GET /%d HTTP/1.1\r\nHost: a\r\n" + b"A: b\r\n" * 100 + b"\r\n",
    "large": b"GET /%d HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 4000 + b"\r\n\r\n",
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
def test_a_memory_is_bounded_by_what_its_heads_take_and_forgets_the_oldest(head: bytes) -> None:
    memory = RequestMemory(most_bytes=200_000)
    parser = RequestParser()
    tracemalloc.start()
    try:
        for number in range(600):
            memory.put(parser.feed(head % number)[0])
        assert tracemalloc.get_traced_memory()[0] <= 200_000
    finally:
        tracemalloc.stop()
    assert memory.find(head % 599) is not None
    assert memory.find(head % 0) is None


OK = b"HTTP/1.1 200 OK\r\nDate: now\r\nContent-Length: 2\r\nX-Id: 1\r\n\r\n{}"
PIECE = b"HTTP/1.1 200 OK\r\nContent-Length: 16342\r\n\r\n" + b"x" * 16_342  # 16 KB: what is parsed at once


@pytest.mark.parametrize(
    "data",
    [
        OK + b"junk",
        OK.replace(b"X-Id: 1", b"Connection: close") + b"HTTP/1.1 200 OK\r\n",
        OK + OK,
        b"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 304 Not Modified\r\nX: y\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n{}",
        PIECE + OK[:20],
        PIECE + b"\r\n" + PIECE,
    ],
)
def test_a_whole_reply_is_delivered_whatever_comes_behind_it(data: bytes) -> None:
    events = reply(data)
    assert events[-2:] == [END, SURPLUS]
    assert events[0][0] == int(data[9:12])


@pytest.mark.parametrize("body", [b"", b"{}", b"2\r\n{}\r\n0\r\n\r\n", b"2", b"2;x=", b"2\r\n"])
@pytest.mark.parametrize("framing", [b"Content-Length: 2", b"Transfer-Encoding: chunked"])
def test_a_reply_to_head_has_no_body(framing: bytes, body: bytes) -> None:
    events = reply(b"HTTP/1.1 200 OK\r\n%b\r\n\r\n" % framing + body, is_head=True)
    assert events[1] == END
    assert all(event == SURPLUS for event in events[2:])
    assert not events[0][3], "the connection ends with it, whatever comes behind it"


@pytest.mark.parametrize("length", [b"2", b"3", b"2, 2"])
def test_a_length_stated_twice_is_malformed(length: bytes) -> None:
    assert reply(OK.replace(b"X-Id: 1", b"Content-Length: " + length)) == [REFUSED]


def expecting() -> ReplyParser:
    parser = ReplyParser(ReplyMemory())
    parser.expect(is_head=False)
    return parser


@pytest.mark.parametrize("length", [b"1" + b"0" * 18, b"0" + b"1" * 19], ids=["zeros", "a zero first"])
@pytest.mark.parametrize("parser", [RequestParser, expecting], ids=["request", "reply"])
def test_a_length_of_nineteen_digits_is_malformed_and_its_sender_is_told_of_its_own(
    parser: Any, length: bytes
) -> None:
    start = b"POST / HTTP/1.1\r\nHost: a" if parser is RequestParser else b"HTTP/1.1 200 OK"
    (event,) = parser().feed(start + b"\r\nContent-Length: %b\r\n\r\n" % length)
    assert isinstance(event, Malformed)
    assert ("reply" in event.detail) == (parser is not RequestParser)


@pytest.mark.parametrize("zeros", [1, 20, 5000])
@pytest.mark.parametrize("size", [0, 10, 1_000_000])
def test_zeros_before_a_length_do_not_count(size: int, zeros: int) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %b%d\r\n\r\n" % (b"0" * zeros, size)
    assert reply(head + b"x" * size)[1:] == [*([("body", b"x" * size)] if size else []), END]


def test_a_reply_may_have_many_and_large_fields() -> None:
    fields = b"A: b\r\n" * 200 + b"B: " + b"c" * 17_000 + b"\r\n"
    assert reply(b"HTTP/1.1 200 OK\r\n" + fields + b"Content-Length: 0\r\n\r\n")[-1] == END


def test_a_reply_without_a_length_ends_with_the_connection() -> None:
    data = b"HTTP/1.1 200 OK\r\n\r\nto the end"
    assert reply(data)[1:] == [("body", b"to the end"), END]
    assert reply(data, is_closed=False)[1:] == [("body", b"to the end")]
    assert reply(OK[:-1])[1:] == [("body", b"{")]


def test_interim_replies_are_skipped_unless_they_never_end() -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\n"
    assert reply(interim * 16 + OK) == reply(OK)
    assert reply(interim * 17 + OK) == [REFUSED]


def test_an_interim_reply_that_states_a_body_does_not_end_with_the_connection() -> None:
    assert reply(b"HTTP/1.1 199 Nearly\r\nContent-Length: 5\r\n\r\n", is_closed=True) == []


def test_interim_replies_of_earlier_requests_count_for_nothing() -> None:
    parser = ReplyParser(ReplyMemory())
    for _ in range(70):
        parser.expect(is_head=False)
        assert parser.feed(b"HTTP/1.1 103 Early Hints\r\nLink: %b\r\n\r\n" % (b"x" * 1000)) == []
        assert parser.find(OK) or len(parser.feed(OK)) == 3


def test_nobody_switches_to_another_protocol() -> None:
    assert reply(b"HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n") == [REFUSED]


SWITCH = b"HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Own: 1\r\n\r\n"


@pytest.mark.parametrize("interim", [b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"])
@pytest.mark.parametrize("behind", [b"", b"\x81\x02hi", b"\x82\x7e" * 20_000])
def test_where_it_was_asked_for_a_101_is_the_last_reply(interim: bytes, behind: bytes) -> None:
    parser = ReplyParser(ReplyMemory())
    parser.expect(is_head=False, may_switch=True)
    data = interim + SWITCH + behind
    events: list[Any] = parser.feed(data[:16_000])
    head, end = events
    assert (head.status, dict(head.fields)[b"X-Own"], end) == (101, b"1", b"")
    assert parser.behind_switch == behind[: 16_000 - len(interim + SWITCH)]


def test_a_101_that_is_no_upgrade_has_nothing_behind_it() -> None:
    parser = ReplyParser(ReplyMemory())
    parser.expect(is_head=False, may_switch=True)
    events: list[Any] = parser.feed(b"HTTP/1.1 101 X\r\n\r\n")
    assert events[0].status == 101
    assert parser.behind_switch is None


def test_what_nobody_asked_for_is_surplus() -> None:
    parser = ReplyParser(ReplyMemory())
    assert parser.feed(b"\r\n") == []
    assert shown(parser.feed(OK)) == [SURPLUS]


def test_a_phrase_with_control_characters_is_dropped() -> None:
    assert reply(b"HTTP/1.1 200 O\x07K\r\nContent-Length: 0\r\n\r\n")[0][:2] == (200, "")


@pytest.mark.parametrize(
    "line",
    [
        b"Transfer-Encoding: chunked",
        b"Content-Length: 2",
        b"X : y",
        b" folded",
        b"X: a\rb",
        b"X: \0",
        b"no colon",
        b"Content-Length: x",
        b"X: " + b"y" * 70_000,
        b"X: a\nY: b",
        b"Transfer-Encoding: keep-alive",
    ],
)
def test_a_line_that_memory_does_not_know_is_judged_as_by_the_parser(line: bytes) -> None:
    memory = ReplyMemory()
    reply(OK, memory=memory)
    data = OK.replace(b"X-Id: 1", line)
    assert reply(data, memory=memory) == reply(data)


@pytest.mark.parametrize("date", [b"", b"Date: Mon, 23 Nov 2026", b"X-Id:"])
def test_a_part_of_a_head_is_no_reply_though_its_size_is_the_length_that_it_states(date: bytes) -> None:
    memory = ReplyMemory()
    for length in range(80):
        reply(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % length + b"x" * length, memory=memory)
    for length in range(80):
        part = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n" % length + date
        for data in (part, part[:-1]):
            assert reply(data, memory=memory) == []


def test_memory_knows_that_a_reply_in_http_1_0_is_the_last_unless_it_says_otherwise() -> None:
    memory = ReplyMemory()
    for line in (b"Connection: keep-alive\r\n", b""):
        data = b"HTTP/1.0 200 OK\r\n%bContent-Length: 2\r\n\r\n{}" % line
        assert reply(data, memory=memory) == reply(data)


def test_memory_learns_nothing_of_a_body_behind_lines_that_end_with_lf_alone() -> None:
    memory = ReplyMemory()
    reply(OK, memory=memory)
    planted = b"HTTP/1.1 200 OK\r\nA: b\nContent-Length: 9\n\r\nX: y\r\n\r\nq"
    assert reply(planted, memory=memory)[-1] == END
    data = b"HTTP/1.1 200 OK\r\nX: y\r\n\r\nto the end"
    assert reply(data[:-1], memory=memory) == reply(data[:-1])


@pytest.mark.parametrize("status", [b"000", b"099", b"102", b"199"])
@pytest.mark.parametrize(
    "framing", [b"Content-Length: 5\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n5\r\n"]
)
def test_no_body_comes_from_another_reply(status: bytes, framing: bytes) -> None:
    """What an odd one brings would go before the body of the reply behind it."""
    odd = b"HTTP/1.1 %b X\r\n%bhello" % (status, framing)
    end = b"\r\n0\r\n\r\n" if b"chunked" in framing else b""
    for events in (reply(odd + end + OK), reply(*each(odd + end + OK))):
        assert events[-1] == ("malformed", False)
        assert all(event[0] != "body" for event in events)
