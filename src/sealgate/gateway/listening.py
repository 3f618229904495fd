"""Listening by TCP, and the error of a gateway that cannot start here."""

import asyncio
import errno
import socket

from sealgate.config import Address
from sealgate.gateway.server import BotServer

BACKLOG = 1024


class StartError(Exception):
    """The gateway cannot start here. `str()` is one line: cause and fix."""


async def listen(server: BotServer, address: Address, setting: str) -> asyncio.Server:
    """Listen at an address. Raises StartError naming the setting.

    Never with `reuse_port`: another program of this user could then take a share of the connections.
    """
    loop = asyncio.get_running_loop()
    try:
        return await loop.create_server(server, address.host, address.port, backlog=BACKLOG)
    except OSError as error:
        raise cannot_listen(address, setting, error) from None


async def bind(address: Address, setting: str) -> list[socket.socket]:
    """Return listening sockets for who accepts by hand. Raises StartError naming the setting."""
    loop = asyncio.get_running_loop()
    bound: list[socket.socket] = []
    try:
        for family, _, _, _, where in await loop.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM
        ):
            bound.append(socket.create_server(where[:2], family=family, backlog=BACKLOG))
            bound[-1].setblocking(False)
    except OSError as error:
        for sock in bound:
            sock.close()
        raise cannot_listen(address, setting, error) from None
    return bound


def cannot_listen(address: Address, setting: str, error: OSError) -> StartError:
    """Return the error of an address that cannot be had."""
    return StartError(f"cannot listen on {address}: {_cause(error)}; set {setting} to another one")


def _cause(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "another program listens there"
    return error.strerror or str(error)
