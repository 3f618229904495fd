"""Bots that are slow in every way: heads that drip, bodies that drip, replies that nobody reads."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from urllib.parse import urlsplit

from rig.bot import bot_at, request
from rig.wire import PATIENCE_S

_HEAD = b"GET /v1/trade/symbols/list HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
_BODY = b"POST /v1/trade/order HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n\r\n"
_GAP_S = 0.2
_RECEIVE_BYTES = 4096  # so that the kernel takes next to nothing on behalf of who does not read

Address = tuple[str, int]


def address_of(url: str) -> Address:
    """Return host and port of a URL."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


class Deaf:
    """A bot that sends, and reads nothing until it is told to."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def send(self, raw: bytes) -> int:
        """Send what the kernel takes at once, and return how much that was."""
        try:
            return self._sock.send(raw)
        except BlockingIOError:
            return 0

    async def read_all(self) -> int:
        """Read to the end, whatever that is; return how many bytes came."""
        loop, count = asyncio.get_running_loop(), 0
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(PATIENCE_S):
                while part := await loop.sock_recv(self._sock, 1 << 16):
                    count += len(part)
        return count


@contextlib.contextmanager
def deaf_bot(address: Address, raw: bytes = b"") -> Iterator[Deaf]:
    """Connect such a bot as long as the block lasts, and send a request."""
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES)
        sock.connect(address)  # on loopback, into the backlog
        sock.setblocking(False)
        bot = Deaf(sock)
        assert bot.send(raw) == len(raw)
        yield bot


async def _drip(address: Address, first: bytes) -> None:
    async with bot_at(*address) as bot:
        await bot.send(first)
        await bot.drip(b"x", _GAP_S)


@contextlib.asynccontextmanager
async def slow_bots(address: Address, of_each_kind: int) -> AsyncIterator[None]:
    """Keep three times as many slow bots busy as long as the block lasts."""
    with contextlib.ExitStack() as stack:
        tasks = [
            asyncio.create_task(_drip(address, first))
            for first in (_HEAD, _BODY)
            for _ in range(of_each_kind)
        ]
        for _ in range(of_each_kind):
            stack.enter_context(deaf_bot(address, request(target=b"/v1/trade/large")))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
