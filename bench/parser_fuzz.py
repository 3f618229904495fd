"""Holds the HTTP parser against h11's and aiohttp's over mutated messages; every difference has a name.

Each message is read whole, in pieces, and with a warm memory, which must agree; then by the two others. A
message that all take must be read alike: method, target, fields, body, and where the next begins. What the
parser takes and another does not, or reads otherwise, is counted under a name of JUDGED, or fails the run.

    scripts/bench parser_fuzz --count 1000000 --seed 7
"""

import argparse
import asyncio
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import h11
from aiohttp.http import HttpRequestParser as AiohttpRequests
from aiohttp.http import HttpResponseParser as AiohttpReplies
from aiohttp.http_exceptions import HttpProcessingError

from sealgate.http.head_memory import HeadMemory
from sealgate.http.parser import (
    Malformed,
    RawReplyHead,
    ReplyEvent,
    ReplyParser,
    RequestHead,
    RequestParser,
)

REQUESTS = [
    b"GET /v1/trade/time HTTP/1.1\r\nHost: a\r\n\r\n",
    (
        b"POST /v1/trade/order HTTP/1.1\r\nHost: a:8787\r\nContent-Type: application/json\r\n"
        b'Content-Length: 9\r\n\r\n{"a": 12}'
    ),
    (
        b"POST /o HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"4\r\nabcd\r\n3;x=y\r\nefg\r\n0\r\nT: u\r\n\r\n"
    ),
    b"DELETE /o?id=1&x=%2B HTTP/1.1\r\nHost: a\r\nAuthorization: Basic abc\r\nConnection: keep-alive\r\n\r\n",
    b"GET /a HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n",
    b"GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    (
        b"POST /a HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
        b"HTTP2-Settings: AAM\r\nContent-Length: 3\r\n\r\nabc"
    ),
    b"HEAD /a HTTP/1.1\r\nHost: a\r\nX-A:\r\nX-B:  b c \t\r\nX-C: \xe9\r\n\r\n",
    b"POST /a HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{}",
    b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
]
REPLIES = [
    b"HTTP/1.1 200 OK\r\nDate: Sun, 22 Nov 2026 10:00:00 GMT\r\nContent-Length: 2\r\nServer: x\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\nT: u\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 1\r\n\r\na",
    b"HTTP/1.1 204 No Content\r\nX-RateLimit-Remaining: 3\r\n\r\n",
    b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3\r\nContent-Length: 4\r\nConnection: close\r\n\r\nslow",
    b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc",
    b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nETag: x\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nto the end",
]
TOKENS = [
    *(b"\r\n", b"\n", b"\r", b" ", b"\t", b"\0", b":", b",", b";", b"0", b"1", b"-1", b"+1", b"0x1"),
    *(b"\x0b", b"\x7f", b"\xff", b"\xc3\xa9", b"\xe2\x80\xa8", b"/../", b"%", b"#", b"http://b/"),
    *(b"Content-Length: 3\r\n", b"Content-Length: 9\r\n", b"content-length:2\r\n", b"2, 2"),
    *(b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: gzip, chunked\r\n"),
    *(b"Transfer-Encoding: identity\r\n", b"Transfer-Encoding : chunked\r\n"),
    *(b"Transfer-Encoding:\r\n chunked\r\n", b"Transfer_Encoding: chunked\r\n"),
    *(b"Connection: close\r\n", b"Connection: keep-alive\r\n", b"Connection: Upgrade\r\nUpgrade: h2c\r\n"),
    *(b"Host: b\r\n", b"X: y\r\n", b" X: y\r\n", b"X : y\r\n", b": y\r\n", b"X\r\n", b"\r\n\r\n"),
    *(b"0\r\n\r\n", b"1\r\na\r\n", b"200", b"204", b"101", b"099", b"1000"),
    *(b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0", b"HTTP/0.9", b"RTSP/1.0"),
    *(b"GET ", b"POST ", b"CONNECT ", b"PRI ", b"FOO "),
]
Memories = tuple[HeadMemory[RequestHead], HeadMemory[RawReplyHead]]
_SHOWN = 5  # messages of a difference


@dataclass
class Reading:
    """What a parser made of a stream: its whole messages, and how it ended: "", "refused" or "more"."""

    messages: list[tuple[Any, ...]] = field(default_factory=list)
    end: str = ""
    _head: Any = None
    _body: bytes = b""

    def take(self, event: object) -> None:
        """Add an event of the gateway's parser, or h11's."""
        if isinstance(event, Malformed):
            self.end = "refused"
        elif event == b"" or isinstance(event, h11.EndOfMessage):
            self.messages.append(_message(self._head, self._body))
            self._body = b""
        elif isinstance(event, h11.InformationalResponse):
            pass
        elif isinstance(event, bytes | h11.Data):
            self._body += bytes(event.data) if isinstance(event, h11.Data) else event
        else:
            self._head = event


def _message(head: Any, body: bytes) -> tuple[Any, ...]:
    if isinstance(head, RequestHead):
        return head.method, head.target.encode(), head.version, _stripped(head.fields), body
    if isinstance(head, RawReplyHead):
        return head.status, _stripped(head.fields), body
    fields = _stripped(head.headers.raw_items())
    if isinstance(head, h11.Request):
        version = tuple(int(digit) for digit in head.http_version.split(b"."))
        return head.method.decode(), bytes(head.target), version, fields, body
    return head.status_code, fields, body


def _stripped(fields: Iterable[tuple[bytes, bytes]]) -> tuple[tuple[bytes, bytes], ...]:
    lower = [(bytes(name).lower(), bytes(value).strip(b" \t")) for name, value in fields]
    return tuple((name, value.lower() if name == b"transfer-encoding" else value) for name, value in lower)


def mutate(rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Return a few messages in a row, damaged in up to four places."""
    data = bytearray(b"".join(rng.choices(seeds, k=rng.choice((1, 1, 1, 2, 3)))))
    for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3, 4))):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(8)
        if kind == 0:
            data[at:at] = rng.choice(TOKENS)
        elif kind == 1:
            data[at : at + rng.choice((1, 1, 2, 5))] = b""
        elif kind == 2:
            data[at : at + 1] = bytes([rng.randrange(256)])
        elif kind == 3:
            lines = bytes(data).split(b"\r\n")
            lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines))
            data = bytearray(b"\r\n".join(lines))
        elif kind == 4:
            lines = bytes(data).split(b"\r\n")
            lines.insert(rng.randrange(1, len(lines) + 1), rng.choice(TOKENS).removesuffix(b"\r\n"))
            data = bytearray(b"\r\n".join(lines))
        elif kind == 5:  # cut off, as by a proxy that dies
            del data[rng.randrange(len(data) // 2, len(data) + 1) :]
        elif kind == 6:  # a length that fits the piece, from some place in it
            length = b"Content-Length: %d" % max(0, len(data) - at + rng.randrange(-4, 5))
            data = bytearray(re.sub(rb"Content-Length: \d+", length, bytes(data), count=1))
        else:
            at = rng.randrange(len(data) + 1)
            data[at:at] = data[max(0, at - rng.randrange(1, 30)) : at]
    return bytes(data)


def pieces(rng: random.Random, data: bytes) -> list[bytes]:
    """Cut a stream at random places, or everywhere."""
    if rng.random() < 0.2:
        return [data[at : at + 1] for at in range(len(data))]
    cuts = sorted(rng.randrange(len(data) + 1) for _ in range(rng.randrange(1, 4)))
    return [data[one:two] for one, two in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def our_requests(parts: Sequence[bytes], memory: HeadMemory[RequestHead] | None = None) -> Reading:
    """Read a stream of requests by the gateway's parser, its memory in front of it."""
    parser, reading = RequestParser(), Reading()
    for part in parts:
        known = None if memory is None else parser.find(memory, part)
        remembered = () if known is None else (*known, b"") if known[1] else known
        for event in remembered or parser.feed(part):
            reading.take(event)
            if memory is not None and isinstance(event, RequestHead):
                memory.put(event)
    if not reading.end and not parser.is_between and not parser.is_over:
        reading.end = "more"
    return reading


def read_reply(parser: ReplyParser, data: bytes) -> list[ReplyEvent]:
    """Return what these bytes are, by the parser's memory where it knows them."""
    found = parser.find(data)
    if found is None:
        return parser.feed(data)
    return [*found, b""] if found[1] else [*found]


def our_replies(parts: Sequence[bytes], memory: HeadMemory[RawReplyHead] | None = None) -> Reading:
    """Read replies by the gateway's parser, each as that to a request, to the end of the connection."""
    parser, reading = ReplyParser(HeadMemory() if memory is None else memory), Reading()
    for part in parts:
        if parser.is_over:
            if reading.end:
                break
            parser.expect(is_head=False)
        for event in read_reply(parser, part):
            reading.take(event)
    if not reading.end and not parser.is_between and not parser.is_over:
        reading.end = "more"
    if (not reading.end or reading.end == "more") and parser.ends_with_connection:
        reading.take(b"")
        reading.end = ""
    return reading


def by_h11(data: bytes, *, is_reply: bool) -> Reading:
    reading = Reading()
    connection = h11.Connection(h11.CLIENT if is_reply else h11.SERVER, max_incomplete_event_size=1 << 20)
    if is_reply:
        connection.send(h11.Request(method="GET", target="/", headers=[("Host", "a")]))
        connection.send(h11.EndOfMessage())
    connection.receive_data(data)
    if is_reply:
        connection.receive_data(b"")
    try:
        for event in _events_of_h11(connection):
            reading.take(event)
            if is_reply and isinstance(event, h11.EndOfMessage):
                return reading
    except h11.RemoteProtocolError:
        reading.end = "refused"
    else:
        is_cut = connection.their_state is h11.SEND_BODY or bool(connection.trailing_data[0])
        reading.end = "more" if is_cut and connection.next_event() is h11.NEED_DATA else ""
    return reading


def _events_of_h11(connection: h11.Connection) -> Iterator[object]:
    """Yield heads, parts and ends; each request is answered, as h11 takes no next one before."""
    while True:
        event = connection.next_event()
        if event is h11.PAUSED and connection.their_state is h11.DONE:
            connection.send(h11.Response(status_code=200, headers=[("Content-Length", "0")]))
            connection.send(h11.EndOfMessage())
            if connection.states != {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}:
                return
            connection.start_next_cycle()
        elif event is h11.NEED_DATA or event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
            return
        else:
            yield event


class _Nothing(asyncio.Protocol):
    """What aiohttp's parser wants of a connection."""

    _reading_paused = False
    connected = True

    def pause_reading(self) -> None: ...

    def resume_reading(self, *_: bool, **__: bool) -> None: ...


def by_aiohttp(data: bytes, loop: asyncio.AbstractEventLoop, *, is_reply: bool) -> Reading:
    reading = Reading()
    kind: Any = AiohttpReplies if is_reply else AiohttpRequests
    limits = {"max_line_size": 8190, "max_field_size": 8190, "auto_decompress": False}
    parser = kind(_Nothing(), loop, 1 << 20, **limits, **({"read_until_eof": True} if is_reply else {}))
    try:
        messages, _, __ = parser.feed_data(data)
    except (HttpProcessingError, LookupError, ValueError):
        reading.end = "refused"
        return reading
    for head, content in messages:
        if content.exception() is not None:
            reading.end = "refused"
            return reading
        body = b"".join(getattr(content, "_buffer", ()))
        if not content.is_eof() and not is_reply:
            reading.end = "more"
            return reading
        if is_reply:
            if head.code >= 200:
                reading.messages.append((head.code, _stripped(head.raw_headers), body))
        else:
            target = (head.path or "").encode("utf-8", "surrogateescape")
            version = tuple(head.version)
            reading.messages.append((head.method, target, version, _stripped(head.raw_headers), body))
    return reading


# What we take and h11 or aiohttp do not, or read otherwise, and why it may be so; the first that fits names
# it. `data` is the stream, `extra` our first message that they do not have.
Judge = Callable[[bytes, tuple[Any, ...]], Any]


_ONCE = {b"content-type", b"user-agent", b"content-location", b"content-range", b"max-forwards"}
_SPACES = re.compile(rb"[A-Z]{3}  | {2,}HTTP/")
_PLAIN_TARGET = re.compile(rb"/[A-Za-z0-9/_.?=&+~%-]*")
_STRANGE_HOST = re.compile(rb"[^A-Za-z0-9.:\[\]-]")


def _hosts(extra: tuple[Any, ...]) -> int:
    return sum(name == b"host" for name, _ in extra[3])


REQUEST_JUDGED: dict[str, Judge] = {
    "Host missing or twice: admission refuses it": lambda _, extra: _hosts(extra) != 1,
    "another version: admission refuses it": lambda _, extra: extra[2] not in {(1, 0), (1, 1)},
    "a coding other than one chunked: admission refuses it": lambda _, extra: (
        [value for name, value in extra[3] if name == b"transfer-encoding"] not in ([], [b"chunked"])
    ),
    "RTSP or ICE for HTTP: read as HTTP/1.0, and the line is made anew": lambda data, _: re.search(
        rb" (RTSP|ICE)/", data
    ),
    "an offer of another protocol is ignored; they stop there": lambda data, _: b"pgrade" in data,
    "a Host that aiohttp refuses: admission looks at it": lambda _, extra: _STRANGE_HOST.search(
        dict(extra[3])[b"host"]
    ),
    "spaces in the request line: the line is made anew": lambda data, _: _SPACES.search(data),
    "a target that yarl cannot read: http/target.py looks at it": lambda _, extra: (
        not _PLAIN_TARGET.fullmatch(extra[1])
    ),
    "bytes behind the last message (HTTP/1.0, or Connection: close): ignored": lambda data, extra: (
        extra[2] == (1, 0) or b"close" in data.lower()
    ),
    "a field that may come once comes twice: http/headers.py refuses it": lambda _, extra: any(
        count > 1 for name, count in Counter(name for name, _ in extra[3]).items() if name in _ONCE
    ),
    "a trailer by the name of a field that may come once: trailers are dropped": lambda data, _: re.search(
        rb"(?i)\n0\r\n(?:[^\r\n]+\r\n)*?(?:%b):" % b"|".join([b"host", *_ONCE]), data
    ),
    "an empty line or a CR in front, which RFC 9112 section 2.2 lets us skip": lambda data, _: re.search(
        rb"(^|\r\n\r\n|\n)[\r\n]+[A-Z]|(\r|[^\n]\r\n)[A-Z]+ [^\r\n]+ HTTP/", data
    ),
}
REPLY_JUDGED: dict[str, Judge] = {
    "a status line with a strange phrase, which is dropped": lambda data, _: re.search(
        rb"^[\r\n]*HTTP/1.[^\r\n]*[^\x20-\x7e\r\n]", data
    ),
    "an empty line in front": lambda data, _: data[:1] in b"\r\n",
    "a fault behind the reply: it is delivered, and the connection closed": lambda _, __: True,
}


def read_by_us(data: bytes, rng: random.Random, memories: Memories, *, is_reply: bool) -> Reading:
    """Return what the gateway's parser makes of a stream. Raises AssertionError where that depends on how."""
    parts = pieces(rng, data)
    if is_reply:  # one reply is asked for; what comes behind it may be surplus at another moment
        whole, cut, warm = our_replies([data]), our_replies(parts), our_replies([data], memories[1])
        is_same = whole.messages[:1] == cut.messages[:1]
    else:
        whole, cut, warm = our_requests([data]), our_requests(parts), our_requests([data], memories[0])
        is_same = (whole.messages, whole.end) == (cut.messages, cut.end)
    is_same = is_same and (whole.messages, whole.end) == (warm.messages, warm.end)
    assert is_same, f"not the same:\n{data!r}\nwhole: {whole}\n{parts}: {cut}\nfrom memory: {warm}"
    return whole


class Fuzz:
    """A run. `seen` counts agreements and differences by name, `examples` has some messages of each."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._loop = asyncio.new_event_loop()
        self._memories: Memories = HeadMemory(), HeadMemory()
        self.seen: Counter[str] = Counter()
        self.examples: dict[str, list[bytes]] = {}

    def read_one(self) -> None:
        """Make a stream, and compare how it is read."""
        is_reply = self._rng.random() < 0.4
        data = mutate(self._rng, REPLIES if is_reply else REQUESTS)
        if not data:
            return
        whole = read_by_us(data, self._rng, self._memories, is_reply=is_reply)
        others = {
            "h11": by_h11(data, is_reply=is_reply),
            "aiohttp": by_aiohttp(data, self._loop, is_reply=is_reply),
        }
        until = 1 if is_reply else None  # each of them is asked for one reply
        for name, other in others.items():
            if whole.messages[:until] == other.messages[:until]:
                self.seen[f"{name}: same"] += 1
            else:
                label = f"{name} {'reply' if is_reply else 'request'}: {describe(data, whole, other)}"
                self.seen[label] += 1
                self.examples.setdefault(label, []).append(data)
                del self.examples[label][_SHOWN:]


def main() -> None:
    """Run."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=100_000)
    options.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    options.add_argument("--show", help="print some messages of the differences whose name contains this")
    given = options.parse_args()
    fuzz = Fuzz(given.seed)
    print(f"{given.count} messages, seed {given.seed}", flush=True)
    for _ in range(given.count):
        fuzz.read_one()
    for label, count in fuzz.seen.most_common():
        print(f"{count:9,}  {label}")
        if given.show and given.show in label:
            for one in fuzz.examples.get(label, ()):
                print("           ", one)
    if any("READ OTHERWISE" in label or "LOOSER" in label for label in fuzz.seen):
        sys.exit(1)


def describe(data: bytes, whole: Reading, other: Reading) -> str:
    """Name a difference."""
    mine, theirs = whole.messages, other.messages
    common = min(len(mine), len(theirs))
    for one, two in zip(mine, theirs, strict=False):
        if one != two:
            is_trailer = one[:3] == two[:3] and len(one[3]) < len(two[3]) and b"chunked" in data.lower()
            return "a trailer, which aiohttp puts into the next head" if is_trailer else "READ OTHERWISE"
    if len(mine) <= len(theirs):
        return "stricter: taken by them alone"
    if other.end == "refused" and whole.end in {"refused", "more"}:
        return "a fault behind: what came whole before it is served"
    judged = REQUEST_JUDGED if isinstance(mine[common][0], str) else REPLY_JUDGED
    for name, fits in judged.items():
        if any(fits(data, extra) for extra in mine[common:]):
            return name
    return "LOOSER, and not judged"


if __name__ == "__main__":
    main()
