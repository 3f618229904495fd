"""Frames as Autobahn's cases have them: the gateway judges a bot's as the library's own server does.

Each sequence goes, byte by byte the same, to a gateway and to a server of the library `websockets`. The same
messages must arrive, and the bot must be told the same close code. What an exchange sends arrives unchanged.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from pathlib import Path
from random import Random  # noqa: TID251 - with a seed

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from rig.station import ENVIRON, make_config
from rig.upstream import running_upstream
from rig.websocket import (
    BINARY,
    CLOSE,
    PING,
    PONG,
    TEXT,
    FrameReader,
    accepted,
    close_frame,
    code_and_reason,
    frame,
    upgrade,
)
from rig.wire import PATIENCE_S, let_pass
from sealgate.server.gateway import running_gateway

VENUE = """
name = "passing"
like = "service"
[[streams]]
host = "frames.example"
"""
MASK = b"\x12\xf0\x55\x9a"


@dataclass(frozen=True)
class F:
    """A frame of a sequence, masked where a bot sends it."""

    opcode: int
    payload: bytes = b""
    fin: bool = True
    rsv: int = 0

    def raw(self, mask: bytes = b"") -> bytes:
        """Write it."""
        return frame(self.opcode, self.payload, fin=self.fin, rsv=self.rsv, mask=mask)


def parts(opcode: int, *payloads: bytes) -> list[F]:
    """Return a message in that many frames."""
    last = len(payloads) - 1
    return [F(0 if at else opcode, payload, at == last) for at, payload in enumerate(payloads)]


def close(code: int, reason: bytes = b"") -> F:
    """Return a close frame."""
    return F(CLOSE, code.to_bytes(2, "big") + reason)


HELLO, BYE = F(TEXT, b"hello"), close(1000, b"bye")
LETTERS = "κόσμε €\U00010000\ufffd".encode()
NO_UTF8 = (
    *(
        b"\x80",
        b"\xbf",
        b"\xc0\x80",
        b"\xc0\xaf",
        b"\xc1\xbf",
        b"\xc3",
        b"\xc3\x28",
        b"\xe0\x80\xaf",
        b"\xe2\x82",
    ),
    *(
        b"\xe2\x28\xa1",
        b"\xed\xa0\x80",
        b"\xed\xbf\xbf",
        b"\xf0\x80\x80\xaf",
        b"\xf0\x9f\x98",
        b"\xf4\x90\x80\x80",
    ),
    *(b"\xf8\x88\x80\x80\x80", b"\xfe", b"\xff", LETTERS + b"\xed\xa0\x80edited", b"a\x00\xff"),
)
CODES = (*(0, 1, 999, *range(1000, 1017), 1100, 1999, 2000, 2999, 3000, 3001, 3999, 4000, 4999, 5000, 65535),)
CASES: dict[str, list[list[F]]] = {
    "sizes": [
        [F(opcode, b"*" * size)]
        for opcode, size in product((TEXT, BINARY), (0, 1, 125, 126, 127, 128, 65535, 65536, 70000))
    ],
    "pings": [
        *([F(opcode, b"p" * size), HELLO] for opcode, size in product((PING, PONG), (0, 5, 125, 126, 200))),
        [F(PING, b"%d" % number) for number in range(10)],
        [F(PING, b"\x00\xff\xfe"), HELLO, F(PONG, b"nobody asked"), HELLO],
    ],
    "reserved bits": [
        [HELLO, F(opcode, b"x" if opcode != CLOSE else b"", rsv=rsv), HELLO]
        for opcode, rsv in product((TEXT, BINARY, PING, PONG, CLOSE), range(1, 8))
    ]
    + [[F(TEXT, b"a", fin=False), F(0, b"b", rsv=rsv)] for rsv in (1, 2, 4)],
    "opcodes": [[HELLO, F(opcode, b"x"), HELLO] for opcode in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15)],
    "fragments": [
        *(parts(opcode, b"on", b"e", b"", b" more") for opcode in (TEXT, BINARY)),
        parts(TEXT, b"", b"", b""),
        parts(BINARY, *(b"x" * size for size in (0, 1, 126, 65536, 3))),
        *([*parts(TEXT, b"on", b"e")[:1], F(PING, b"!"), *parts(TEXT, b"on", b"e")[1:]] for _ in range(1)),
        [F(TEXT, b"a", fin=False), F(PONG), F(0, b"b", fin=False), F(PING), F(0, b"c"), HELLO],
        [F(PING, b"x", fin=False), F(0, b"y")],
        [F(PONG, b"x", fin=False)],
        [F(CLOSE, b"\x03\xe8", fin=False)],
        [F(0, b"of nothing"), HELLO],
        [F(0, b"of nothing", fin=False), HELLO],
        [HELLO, F(0, b"of nothing")],
        [F(TEXT, b"a", fin=False), HELLO],
        [F(TEXT, b"a", fin=False), F(BINARY, b"b", fin=False), F(0, b"c")],
        [F(TEXT, b"a", fin=False)],
        [F(TEXT, b"a", fin=False), F(0, b"b"), F(0, b"c")],
    ],
    "UTF-8": [
        [F(TEXT, LETTERS)],
        [HELLO, F(BINARY, b"\xff\xfe")],
        *([HELLO, F(TEXT, bad), HELLO] for bad in NO_UTF8),
        *([HELLO, *parts(TEXT, LETTERS, bad), HELLO] for bad in NO_UTF8),
        *(parts(TEXT, LETTERS[:at], LETTERS[at:]) for at in range(len(LETTERS))),
        parts(TEXT, *(bytes([letter]) for letter in LETTERS)),
        parts(TEXT, b"\xf0\x9f", b"\x98"),
        parts(TEXT, b"\xf4\x90", b"\x80\x80"),
    ],
    "closes": [
        [F(CLOSE)],
        [F(CLOSE, b"\x03")],
        *([HELLO, close(code)] for code in CODES),
        *([close(code, b"a reason")] for code in CODES),
        [close(1000, b"r" * 123)],
        [close(1000, b"r" * 124)],
        [close(1000, LETTERS)],
        *([close(1000, bad)] for bad in NO_UTF8),
        [close(1000), HELLO],
        [close(1000), F(PING), close(1001)],
        [HELLO, F(PING), close(4000, b"mine"), F(TEXT, b"\xff")],
    ],
}


def drawn(seed: int) -> list[F]:
    """Draw a sequence, mostly of what is allowed."""
    chance = Random(seed)
    sequence: list[F] = []
    is_open = False
    for _ in range(chance.randint(1, 12)):
        payload = chance.choice((b"", b"x", LETTERS, chance.randbytes(3), b"y" * chance.randint(0, 300)))
        if chance.random() < 0.2:
            sequence.append(F(chance.choice((PING, PONG)), payload[:125]))
        elif chance.random() < 0.04:
            sequence.append(
                F(chance.randrange(16), payload, chance.random() < 0.5, chance.choice((0, 0, 1, 2)))
            )
        else:
            fin = chance.random() < 0.6
            sequence.append(F(0 if is_open else chance.choice((TEXT, BINARY)), payload, fin))
            is_open = not fin
    return [*sequence, close(chance.choice(CODES))] if chance.random() < 0.3 else sequence


@dataclass
class Verdict:
    """What became of a sequence: the messages that arrived, and the close frame that the bot got."""

    messages: list[tuple[int, bytes]] = field(default_factory=list)
    closed: bytes | None = None

    @property
    def told(self) -> tuple[list[tuple[int, bytes]], int | None]:
        """What must be the same everywhere."""
        return self.messages, None if self.closed is None else code_and_reason(self.closed)[0]


class ExchangeEnd(asyncio.Protocol):
    """An exchange that notes messages, answers pings and closes, and says what it is told to."""

    def __init__(self, exchange: "Exchange") -> None:
        self._exchange = exchange
        self._head = b""
        self._reader: FrameReader | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._reader is None:
            self._head += data
            if self._head.endswith(b"\r\n\r\n"):
                self._transport.write(accepted(self._head))
                self._reader = FrameReader(is_masked=True)
                for piece in self._exchange.says:
                    self._transport.write(piece)
            return
        for opcode, payload in self._reader.feed(data):
            if opcode == CLOSE:
                self._transport.write(b"" if self._exchange.says else frame(CLOSE, payload))
                self._transport.close()
            elif opcode == PING:
                self._transport.write(frame(PONG, payload))
            elif opcode != PONG:
                self._exchange.messages.append((opcode, payload))

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._exchange.is_over.set()


@dataclass
class Exchange:
    """What the exchange says right behind its 101, and what came of the stream that is open."""

    says: Sequence[bytes] = ()
    messages: list[tuple[int, bytes]] = field(default_factory=list)
    is_over: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass
class Lab:
    """A gateway before an exchange, and a server of the library: where each listens, and what arrived."""

    gateway_port: int
    library_port: int
    exchange: Exchange
    served: list[tuple[int, bytes]]
    is_served: asyncio.Event

    async def through_gateway(self, pieces: Sequence[bytes]) -> Verdict:
        """Send a sequence to the gateway."""
        self.exchange.messages, self.exchange.is_over = [], asyncio.Event()
        closed = await talk(self.gateway_port, "/frames.example/x", pieces)
        await _come(self.exchange.is_over)
        return Verdict(self.exchange.messages, closed)

    async def by_library(self, pieces: Sequence[bytes]) -> Verdict:
        """Send a sequence to the library's server."""
        self.served.clear()
        self.is_served.clear()
        closed = await talk(self.library_port, "/", pieces)
        await _come(self.is_served)
        return Verdict(list(self.served), closed)


async def _come(event: asyncio.Event) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await event.wait()


async def talk(port: int, target: str, pieces: Sequence[bytes]) -> bytes | None:
    """Open a stream and send bytes; return the payload of the close frame that comes."""
    async with asyncio.timeout(PATIENCE_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(upgrade(target))
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
        for piece in pieces:
            writer.write(piece)
            await let_pass(0)
        frames, closed = FrameReader(is_masked=False), None
        with contextlib.suppress(ConnectionError):
            while closed is None and (data := await reader.read(1 << 16)):
                closed = next((payload for opcode, payload in frames.feed(data) if opcode == CLOSE), None)
        writer.close()
    return closed


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[Lab]:
    (tmp_path / "passing.toml").write_text(VENUE)
    exchange, served, is_served = Exchange(), list[tuple[int, bytes]](), asyncio.Event()

    async def note(connection: ServerConnection) -> None:
        with contextlib.suppress(ConnectionClosed):
            while True:
                message = await connection.recv()
                served.append((TEXT, message.encode()) if isinstance(message, str) else (BINARY, message))
        await connection.wait_closed()
        is_served.set()

    server = await asyncio.get_running_loop().create_server(lambda: ExchangeEnd(exchange), "127.0.0.1", 0)
    async with serve(note, "127.0.0.1", 0, compression=None) as library, running_upstream() as upstream:
        streams = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        config = make_config(
            upstream.base_url, venue=str(tmp_path / "passing.toml"), upstream={"streams": streams}
        )
        async with running_gateway(config, (), ENVIRON) as gateway:
            port = next(iter(library.sockets)).getsockname()[1]
            yield Lab(gateway.address.port, port, exchange, served, is_served)
    server.close()


def cut(data: bytes, chance: Random) -> list[bytes]:
    """Cut bytes at a few places."""
    places = sorted({0, len(data), *(chance.randint(0, len(data)) for _ in range(chance.randint(0, 6)))})
    return [data[start:end] for start, end in pairwise(places)]


def ended(sequence: list[F]) -> list[F]:
    """Return a sequence that ends with a close, or with a text that is no UTF-8.

    The library decodes a text when it is asked for: what follows decides by chance which code it sends.
    """
    message, opcode = b"", 0
    for at, one in enumerate(sequence):
        if one.opcode == CLOSE:
            return sequence
        if one.opcode in (0, TEXT, BINARY):
            opcode, message = one.opcode or opcode, message + one.payload if one.opcode == 0 else one.payload
            if one.fin and opcode == TEXT and not _is_utf8(message):
                return sequence[: at + 1]
    return [*sequence, BYE]


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


async def check_as_library(lab: Lab, raw: bytes, chance: Random) -> None:
    """Demand the library's verdict on what a bot sends, in one piece and in several."""
    by_library = await lab.by_library([raw])
    for pieces in ([raw], cut(raw, chance)):
        verdict = await lab.through_gateway(pieces)
        assert verdict.told == by_library.told, raw[:200]


@pytest.mark.parametrize("section", CASES)
async def test_of_a_bots_frames_the_gateway_thinks_as_the_library(lab: Lab, section: str) -> None:
    chance = Random(section)
    for sequence in CASES[section]:
        await check_as_library(lab, b"".join(one.raw(MASK) for one in ended(sequence)), chance)


@pytest.mark.parametrize("seed", range(10))
async def test_of_drawn_frames_too(lab: Lab, seed: int) -> None:
    chance = Random(seed)
    for number in range(20):
        sequence = ended(drawn(seed * 1000 + number))
        await check_as_library(lab, b"".join(one.raw(chance.randbytes(4)) for one in sequence), chance)


async def test_heads_that_no_client_may_write(lab: Lab) -> None:
    bye = BYE.raw(MASK)
    for raw in (
        HELLO.raw(),  # without a mask
        b"\x81\xfe\x00\x05" + MASK + HELLO.raw(MASK)[6:],  # a length of 16 bits where 7 do
        b"\x81\xff" + (5).to_bytes(8, "big") + MASK + HELLO.raw(MASK)[6:],
        b"\x82\xff" + (1 << 63).to_bytes(8, "big") + MASK,
        b"\x82\xff" + (1 << 40).to_bytes(8, "big") + MASK,  # more than either takes
    ):
        await check_as_library(lab, raw + bye, Random(1))


@pytest.mark.parametrize("section", CASES)
async def test_what_an_exchange_sends_arrives_unchanged(lab: Lab, section: str) -> None:
    chance = Random(section)
    for sequence in CASES[section]:
        whole = sequence if any(one.opcode == CLOSE for one in sequence) else [*sequence, BYE]
        upto = next(at for at, one in enumerate(whole) if one.opcode == CLOSE) + 1
        raw = b"".join(one.raw() for one in whole[:upto])
        lab.exchange.says, lab.exchange.is_over = cut(raw, chance), asyncio.Event()
        async with asyncio.timeout(PATIENCE_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", lab.gateway_port)
            writer.write(upgrade("/frames.example/x"))
            await reader.readuntil(b"\r\n\r\n")
            came = await reader.readexactly(len(raw))
            writer.write(close_frame(1000, mask=MASK))
            came += await reader.read()
            writer.close()
            await lab.exchange.is_over.wait()
        assert came == raw
