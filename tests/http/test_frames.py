"""Frames in bytes that are passed on, held against the library that reads them."""

from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Close, Frame, Opcode

from sealgate.errors import Refusal
from sealgate.http.frames import HELD_BYTES, FrameFollower
from sealgate.http.parser import RequestHead
from sealgate.http.websocket import (
    BotFrames,
    BotMessage,
    accept_fault,
    accept_of,
    check_offer,
    close_frame,
    code_and_reason,
    key_of,
    offer_lines,
    offered_protocols,
    offers_websocket,
    without_offer,
)


def server(opcode: Opcode, data: bytes = b"", *, fin: bool = True) -> bytes:
    return Frame(opcode, data, fin=fin).serialize(mask=False)


def bot(opcode: Opcode, data: bytes = b"", *, fin: bool = True) -> bytes:
    return Frame(opcode, data, fin=fin).serialize(mask=True)


def cut(raw: bytes, steps: list[int]) -> list[bytes]:
    """Cut bytes at places that these steps make, again and again."""
    at, pieces = 0, []
    for step in cycle(steps):
        if at >= len(raw):
            break
        pieces.append(raw[at : at + step])
        at += step
    return pieces


STEPS = st.lists(st.sampled_from([1, 2, 3, 9, 200, 5000, 70_000]), min_size=1, max_size=9)


SIZES = st.sampled_from(
    [0, 1, 125, 126, 127, 300, 65_535, 65_536, HELD_BYTES - 4, HELD_BYTES, HELD_BYTES + 1]
)


@given(
    st.lists(st.tuples(st.sampled_from([Opcode.TEXT, Opcode.BINARY, Opcode.PING]), SIZES), max_size=12),
    STEPS,
)
def test_all_bytes_pass_and_messages_are_counted(frames: list[tuple[Opcode, int]], steps: list[int]) -> None:
    sizes = [(opcode, size % 126 if opcode is Opcode.PING else size) for opcode, size in frames]
    raw = b"".join(server(opcode, b"x" * size) for opcode, size in sizes)
    follower = FrameFollower()
    passed = b""
    for piece in cut(raw, steps):
        passed += follower.feed(piece)
        assert len(raw) - len(passed) >= 0
        if follower.is_between:  # a frame of our own could stand here
            assert whole(passed)
    assert passed == raw
    assert follower.messages == sum(opcode is not Opcode.PING for opcode, _ in frames)
    assert follower.bytes == len(raw)


def whole(raw: bytes) -> bool:
    """Ask whether bytes are frames to their end."""
    at = 0
    while at < len(raw):
        length, head = raw[at + 1] & 127, 2
        if length == 126:
            length, head = int.from_bytes(raw[at + 2 : at + 4], "big"), 4
        elif length == 127:
            length, head = int.from_bytes(raw[at + 2 : at + 10], "big"), 10
        at += head + length
    return at == len(raw)


@given(st.lists(st.tuples(st.text(max_size=300), st.integers(0, 300)), max_size=8), STEPS)
def test_texts_are_read_where_that_is_asked_for(parted: list[tuple[str, int]], steps: list[int]) -> None:
    raw, texts = b"", [text for text, _ in parted]
    for text, place in parted:
        data = text.encode()
        raw += server(Opcode.TEXT, data[:place], fin=False) + server(Opcode.PONG)
        raw += server(Opcode.CONT, data[place:]) + server(Opcode.BINARY, b"not read")
    follower = FrameFollower()
    follower.reads = True
    for piece in cut(raw, steps):
        follower.feed(piece)
    assert follower.take_texts() == texts
    assert follower.take_texts() == []


def test_what_is_too_large_is_not_read() -> None:
    follower = FrameFollower()
    follower.reads = True
    large = server(Opcode.TEXT, b"x" * 70_000)
    parts = server(Opcode.TEXT, b"x" * 40_000, fin=False) + server(Opcode.CONT, b"x" * 40_000)
    for raw in (large[:1000], large[1000:], parts, server(Opcode.TEXT, b"small")):
        assert follower.feed(raw) == raw
    assert follower.take_texts() == ["small"]


def test_reading_begins_with_a_message() -> None:
    follower = FrameFollower()
    follower.feed(server(Opcode.TEXT, b"a", fin=False))
    follower.reads = True
    follower.feed(server(Opcode.CONT, b"b") + server(Opcode.TEXT, b"c"))
    assert follower.take_texts() == ["c"]


@pytest.mark.parametrize(
    ("data", "code", "reason"),
    [
        (b"", 1005, ""),
        (b"\x03\xe8", 1000, ""),
        (b"\x0f\xa1bye", 4001, "bye"),
        (b"\x0f\xa1\xff", 4001, "\ufffd"),
    ],
)
def test_a_close_is_seen(data: bytes, code: int, reason: str) -> None:
    follower = FrameFollower()
    follower.feed(server(Opcode.CLOSE, data) + server(Opcode.CLOSE, b"\x03\xe9"))
    assert (follower.has_closed, follower.code, follower.reason) == (True, code, reason)


def test_a_mask_of_a_server_is_followed() -> None:
    follower = FrameFollower()
    raw = bot(Opcode.TEXT, b"x") + server(Opcode.TEXT, b"y")
    assert (follower.feed(raw), follower.messages) == (raw, 2)


def read(frames: BotFrames, raw: bytes) -> list[BotMessage]:
    """Return all messages that these bytes complete."""
    frames.add(raw)
    return [*iter(frames.next, None)]


def test_a_flood_of_empty_fragments_is_read_bit_by_bit() -> None:
    frames = BotFrames(1000)
    parts = [bot(Opcode.TEXT, b"a", fin=False), *[bot(Opcode.CONT, fin=False)] * 2000, bot(Opcode.CONT, b"b")]
    frames.add(b"".join(parts))
    before, found = frames.unread_bytes, None
    while before:
        found = frames.next(in_turns=True)
        assert before - frames.unread_bytes <= 512
        before = frames.unread_bytes
    assert found == BotMessage(Opcode.TEXT, b"ab")


def test_a_flood_of_small_messages_is_read_bit_by_bit() -> None:
    frames = BotFrames(1000)
    frames.add(bot(Opcode.TEXT) * 10_000)
    assert frames.next() == BotMessage(Opcode.TEXT, b"")
    assert frames.unread_bytes > 50_000
    assert len([*iter(frames.next, None)]) == 9_999
    frames.add(bot(Opcode.TEXT) * 10_000)
    assert frames.has_more
    frames.clear()
    assert (frames.next(), frames.unread_bytes, frames.has_more) == (None, 0, False)


def test_a_bots_messages_are_whole() -> None:
    frames = BotFrames(1000)
    raw = bot(Opcode.TEXT, b"on", fin=False) + bot(Opcode.PING, b"?") + bot(Opcode.CONT, b"e")
    assert read(frames, raw[:5]) == []
    assert read(frames, raw[5:]) == [BotMessage(Opcode.PING, b"?"), BotMessage(Opcode.TEXT, b"one")]
    assert read(frames, bot(Opcode.BINARY, b"\xff") + bot(Opcode.CLOSE, b"\x03\xe8")) == [
        BotMessage(Opcode.BINARY, b"\xff"),
        BotMessage(Opcode.CLOSE, b"\x03\xe8"),
    ]
    assert frames.fault is None


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (bot(Opcode.TEXT, b"ok") + bot(Opcode.TEXT, b"\xff"), 1007),
        (bot(Opcode.TEXT, b"ok") + bot(Opcode.CONT, b"x"), 1002),
        (bot(Opcode.TEXT, b"ok") + bot(Opcode.BINARY, b"x" * 2000), 1009),
        (bot(Opcode.TEXT, b"ok") + server(Opcode.TEXT, b"x"), 1002),
    ],
)
def test_what_is_no_message_is_a_fault(raw: bytes, code: int) -> None:
    frames = BotFrames(1000)
    assert read(frames, raw) == [BotMessage(Opcode.TEXT, b"ok")]
    assert frames.fault is not None
    assert frames.fault[0] == code


@pytest.mark.parametrize("code", [1000, 1008, 1012, 4999])
def test_a_close_frame_of_our_own(code: int) -> None:
    raw = close_frame(code, "é" * 100, is_masked=False)
    close = Close.parse(raw[2:])
    assert (close.code, close.reason) == (code, "é" * 61)
    assert close_frame(1005, "x", is_masked=False) == server(Opcode.CLOSE)
    assert code_and_reason(raw[2:]) == (code, "é" * 61)


KEY = b"dGhlIHNhbXBsZSBub25jZQ=="  # RFC 6455 section 1.3
OFFER = (
    (b"Upgrade", b"WebSocket"),
    (b"Connection", b"keep-alive, Upgrade"),
    (b"Sec-WebSocket-Version", b"13"),
    (b"Sec-WebSocket-Key", KEY),
    (b"Sec-WebSocket-Protocol", b"one, two"),
    (b"sec-websocket-protocol", b"three"),
    (b"X", b"y"),
)


def head(*fields: tuple[bytes, bytes], method: str = "GET", version: tuple[int, int] = (1, 1)) -> RequestHead:
    return RequestHead(method, "/", version, fields)


def test_an_offer() -> None:
    offer = head(*OFFER)
    assert offers_websocket(offer)
    assert check_offer(offer) == KEY
    assert offered_protocols(offer) == [b"one", b"two", b"three"]
    assert without_offer(OFFER) == (*OFFER[:2], OFFER[-1])
    assert accept_of(KEY) == b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="


@pytest.mark.parametrize("value", [b"h2c", b"", b"websockets", b"x/websocket"])
def test_other_offers(value: bytes) -> None:
    assert not offers_websocket(head((b"Upgrade", value)))


@pytest.mark.parametrize("value", [b"websocket/13", b"h2c, websocket", b" WebSocket "])
def test_offers_in_other_words(value: bytes) -> None:
    assert offers_websocket(head((b"Upgrade", value)))


@pytest.mark.parametrize(
    ("offer", "slug"),
    [
        (head(*OFFER, method="POST"), "upgrade_refused"),
        (head(*OFFER, version=(1, 0)), "upgrade_refused"),
        (head(*OFFER, (b"Content-Length", b"1")), "bad_request"),
        (head(*OFFER, (b"Transfer-Encoding", b"chunked")), "bad_request"),
        (head(OFFER[0], *OFFER[2:]), "bad_request"),
        (head(*OFFER[:2], *OFFER[3:]), "bad_request"),
        (head(*OFFER[:3], *OFFER[4:]), "bad_request"),
        (head(*OFFER, (b"Sec-WebSocket-Key", KEY)), "bad_request"),
        (head(*OFFER[:3], (b"Sec-WebSocket-Key", b"????")), "bad_request"),
    ],
)
def test_what_is_no_offer(offer: RequestHead, slug: str) -> None:
    with pytest.raises(Refusal) as refused:
        check_offer(offer)
    assert refused.value.slug == slug


def test_an_offer_of_our_own() -> None:
    key = key_of("00000000-0000-0000-0000-000000000000")
    assert key == b"AAAAAAAAAAAAAAAAAAAAAA=="
    assert b"Sec-WebSocket-Protocol: a, b\r\n" in offer_lines(key, [b"a", b"b"])
    assert b"Protocol" not in offer_lines(key, [])


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ([(b"Upgrade", b"h2c"), (b"Sec-WebSocket-Accept", accept_of(KEY))], "not switch to WebSocket"),
        ([(b"Sec-WebSocket-Accept", accept_of(KEY))], ""),
        ([(b"Sec-WebSocket-Accept", accept_of(KEY)), (b"Sec-WebSocket-Protocol", b"one")], ""),
        ([], "does not match"),
        ([(b"Sec-WebSocket-Accept", b"x")], "does not match"),
        ([(b"Sec-WebSocket-Accept", accept_of(KEY)), (b"Sec-WebSocket-Extensions", b"x")], "extension"),
        ([(b"Sec-WebSocket-Accept", accept_of(KEY)), (b"Sec-WebSocket-Protocol", b"zwei")], "subprotocol"),
    ],
)
def test_the_answer_to_an_offer_of_our_own(fields: list[tuple[bytes, bytes]], fault: str) -> None:
    upgrade = [] if fields and fields[0][0] == b"Upgrade" else [(b"Upgrade", b"WebSocket")]
    found = accept_fault([*upgrade, *fields], KEY, [b"one"])
    assert bool(found) == bool(fault)
    assert fault in found


def test_a_flood_of_small_frames_is_followed_bit_by_bit() -> None:
    follower, raw = FrameFollower(), server(Opcode.TEXT) * 5000
    passed = [follower.feed(raw)]
    while follower.has_more:
        passed.append(follower.feed(b""))
    assert (b"".join(passed), follower.messages, len(passed)) == (raw, 5000, 3)
