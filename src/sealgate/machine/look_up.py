"""The addresses of a host name, looked up in a thread that nobody else waits for."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Any

from aiohappyeyeballs import AddrInfoType

Addresses = list[AddrInfoType]


async def look_up(host: str, port: int, family: int = socket.AF_UNSPEC) -> Addresses:
    """Return the addresses of a host for TCP. Raises OSError as `socket.getaddrinfo` does.

    Each look-up has a thread of its own: one whose DNS server does not answer keeps it for half a minute. A
    loop's own look-ups share a few threads (on uvloop two), so one exchange's name would hold up another's.
    """
    # 1. A number needs no look-up. glibc does not count loopback as an address, hence not the flag below.
    with contextlib.suppress(socket.gaierror):
        return _addresses(host, port, family, socket.AI_NUMERICHOST)
    # 2. A name.
    loop = asyncio.get_running_loop()
    found: asyncio.Future[Addresses] = loop.create_future()

    def end(put: Callable[[Any], None], result: object) -> None:
        if not found.done():
            put(result)

    def run() -> None:
        ended: tuple[Callable[[Any], None], object]
        try:
            ended = found.set_result, _addresses(host, port, family, socket.AI_ADDRCONFIG)
        except Exception as error:  # noqa: BLE001 - it is raised where the result is awaited
            ended = found.set_exception, error
        with contextlib.suppress(RuntimeError):  # the loop is closed by now
            loop.call_soon_threadsafe(end, *ended)

    threading.Thread(target=run, name="sealgate-dns", daemon=True).start()
    return await found


def _addresses(host: str, port: int, family: int, flags: int) -> Addresses:
    return [*socket.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM, flags=flags)]
