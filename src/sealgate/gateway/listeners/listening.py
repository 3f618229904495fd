"""Listening by TCP."""

import asyncio
import contextlib
import errno
import os
import socket

from sealgate.config import Address
from sealgate.gateway.platform.start import StartError

BACKLOG = 1024
_AHEAD_BYTES = 64 * 1024  # that the kernel takes of whoever connects; by itself it would take megabytes

_PATIENCE_S = 0.5
# The name is for the log of the gateway that is asked, where the request stands as any other does.
_QUESTION = b"TRACE / HTTP/1.1\r\nHost: who-listens.sealgate.invalid\r\nConnection: close\r\n\r\n"
_MARKS = (b"X-Gateway-Error: ", b"use a name of admin.hosts")  # at listen.tcp, and at admin.tcp


async def bind(address: Address, setting: str, backlog: int = BACKLOG) -> list[socket.socket]:
    """Return listening sockets. Raises StartError naming the setting.

    Never with `reuse_port`: another program of this user could then take a share of the connections.
    """
    loop = asyncio.get_running_loop()
    bound: list[socket.socket] = []
    try:
        for family, _, _, _, where in await loop.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM
        ):
            bound.append(socket.create_server(where[:2], family=family, backlog=backlog))
            # Connections inherit it.
            bound[-1].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _AHEAD_BYTES)
            bound[-1].setblocking(False)
    except OSError as error:
        for sock in bound:
            sock.close()
        raise await cannot_listen(address, setting, error) from None
    return bound


async def cannot_listen(address: Address, setting: str, error: OSError) -> StartError:
    """Return the error of an address that cannot be had; it asks who has it."""
    # Python appends the address to `strerror`; what a look-up of a name fails with has a negative number.
    number = error.errno or 0
    cause = os.strerror(number).lower() if number > 0 else error.strerror or str(error)
    fix = f"set {setting} to another one"
    if error.errno == errno.EADDRINUSE:
        cause = "another program listens there"
        if await _is_gateway(address):
            cause, fix = "a Sealgate gateway runs there already", "stop it, or `sealgate reload`"
    return StartError(f"cannot listen on {address}: {cause}; {fix}")


async def _is_gateway(address: Address) -> bool:
    """Ask by a request that a gateway refuses at its door, so that nothing of it is sent on."""
    try:
        async with asyncio.timeout(_PATIENCE_S):
            reader, writer = await asyncio.open_connection(address.host, address.port)
            with contextlib.closing(writer):
                writer.write(_QUESTION)
                reply = await reader.read()
    except OSError:
        return False
    return any(mark in reply for mark in _MARKS)
