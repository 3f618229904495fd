"""The benchmark's upstream: raw protocol, fixed answers, as little work as possible. Prints its port.

`GET /last` answers with the request before it, as it came: so a signature can be checked. With two files as
arguments, certificate chain and key, it speaks TLS.
"""

import asyncio
import re
import ssl
import sys
import time

import uvloop

ANSWER = b'{"order_id":1,"status":"open","client_order_id":null}'
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
_FIXED = _HEAD % (len(ANSWER), ANSWER)
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_LAST = b"GET /last "


class Upstream(asyncio.Protocol):
    """One connection."""

    last = b""

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
            self._answer(self._buffer[:whole])
            self._buffer = self._buffer[whole:]

    def _answer(self, message: bytes) -> None:
        if message.startswith(b"POST "):
            Upstream.last = message
            self._transport.write(_FIXED)
        elif message.startswith(_LAST):
            self._transport.write(_HEAD % (len(Upstream.last), Upstream.last))
        else:
            self._transport.write(_time())


def _time() -> bytes:
    body = b'{"server_time":%d}' % (time.time_ns() // 1_000_000)
    return _HEAD % (len(body), body)


def _tls() -> ssl.SSLContext | None:
    if len(sys.argv) < 3:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1], sys.argv[2])
    return context


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Upstream, "127.0.0.1", 0, ssl=_tls())
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as running:
        running.run(main())
