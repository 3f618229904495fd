"""The benchmark's upstream: raw protocol, fixed answers, as little work as possible. Prints its port.

`GET /last` answers with the request before it, as it came: so a signature can be checked. With two files as
arguments, certificate chain and key, it speaks TLS. A connection that brings a request before the reply to
the last one is cut: whoever pipelines is not measured.
"""

import argparse
import asyncio
import re
import ssl
import time
from collections.abc import Callable
from email.utils import formatdate
from functools import cache
from itertools import count

import uvloop

ANSWER = b'{"order_id":1,"status":"open","client_order_id":null}'
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
_FIXED = _HEAD % (len(ANSWER), ANSWER)
_CHUNKED = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"%x\r\n%b\r\n0\r\n\r\n"
) % (len(ANSWER), ANSWER)
_OWN_FIELDS = b"\r\nDate: %b\r\nCF-RAY: %016x-FRA\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_LAST = b"GET /last "


class Upstream(asyncio.Protocol):
    """One connection."""

    last = b""
    reply: Callable[[], bytes]  # to an order

    def __init__(self) -> None:
        self._buffer = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            stated = _LENGTH.search(self._buffer, 0, end)
            whole = end + 4 + (int(stated[1]) if stated else 0)
            if len(self._buffer) < whole:
                return
            if len(self._buffer) > whole:
                self._transport.abort()
                return
            message, self._buffer = self._buffer, b""
            self._answer(message)

    def _answer(self, message: bytes) -> None:
        if message.startswith(b"POST "):
            Upstream.last = message
            self._transport.write(Upstream.reply())
        elif message.startswith(_LAST):
            self._transport.write(_HEAD % (len(Upstream.last), Upstream.last))
        else:
            self._transport.write(_time())


def _time() -> bytes:
    body = b'{"server_time":%d}' % (time.time_ns() // 1_000_000)
    return _HEAD % (len(body), body)


@cache
def _date(second: int) -> bytes:
    return formatdate(second, usegmt=True).encode()


def replying(is_dated: bool, is_chunked: bool) -> Callable[[], bytes]:
    """Return what writes a reply to an order; dated ones have a ray id, too, each another one."""
    fixed = _CHUNKED if is_chunked else _FIXED
    if not is_dated:
        return lambda: fixed
    start, _, rest = fixed.partition(b"\r\n")
    numbers = count(time.time_ns())
    return lambda: b"".join((start, _OWN_FIELDS % (_date(int(time.time())), next(numbers)), rest))


def _tls(files: list[str]) -> ssl.SSLContext | None:
    if not files:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*files)
    return context


async def main() -> None:
    parser = argparse.ArgumentParser(description="Answer orders at once.")
    parser.add_argument("--dated", action="store_true", help="replies have a Date and a ray id")
    parser.add_argument("--chunked", action="store_true", help="replies are chunked")
    parser.add_argument("tls", nargs="*", metavar="FILE", help="certificate chain and key")
    options = parser.parse_args()
    Upstream.reply = staticmethod(replying(options.dated, options.chunked))
    server = await asyncio.get_running_loop().create_server(Upstream, "127.0.0.1", 0, ssl=_tls(options.tls))
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as running:
        running.run(main())
