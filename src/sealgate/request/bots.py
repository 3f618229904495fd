"""The bots' listener: its connections, their identities, and the bodies that they send."""

import asyncio
import socket
import ssl
from typing import Any, Final

from sealgate.errors import Refusal
from sealgate.http.places import Guest, Places
from sealgate.http.server import Incoming, ServerConnection, Service
from sealgate.machine.process import user_of
from sealgate.request.admission import Peer

_HTTP_11: Final = (1, 1)
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_TOO_MANY = Refusal("queue_full", "The gateway already has listen.max_connections connections open.")
_TOO_FEW_FILES = Refusal(
    "queue_full", "The gateway has as many connections as its limit of open files (ulimit -n) allows."
)


def whole_body(request: Incoming, max_body: int) -> bytes:
    """Return a body that has already arrived. Raises Refusal `body_too_large`."""
    body = request.body.take()
    if len(body) > max_body:
        raise _too_large(max_body)
    return body


async def read_body(request: Incoming, max_body: int, timeout_s: float, *, expects_continue: bool) -> bytes:
    """Read a body of at most `max_body` bytes that is still arriving.

    Raises Refusal `body_too_large`, `body_timeout`, or the connection's own refusal: `bad_request` (wrong
    framing), `headers_too_large` (of chunks or trailers).
    """
    # RFC 9110 section 10.1.1; other values of Expect were refused before, and HTTP/1.0 has no 100.
    if expects_continue and request.head.version >= _HTTP_11:
        request.connection.write(_CONTINUE)
    try:
        async with asyncio.timeout(timeout_s):
            parts: list[bytes] = []
            size = 0
            while part := await request.body.read():
                size += len(part)
                if size > max_body:
                    raise _too_large(max_body)
                parts.append(part)
            await request.connection.check_presence()
            return b"".join(parts)
    except TimeoutError:
        raise Refusal("body_timeout", f"The body did not arrive within {timeout_s:g} s.") from None


def _too_large(max_body: int) -> Refusal:
    return Refusal("body_too_large", f"The body is larger than listen.max_body ({max_body} bytes).")


def peer_of(transport: asyncio.BaseTransport) -> Peer:
    """Return the user of a Unix socket's connection, or the name in a verified certificate."""
    tls = transport.get_extra_info("ssl_object")
    if tls is not None:
        return Peer(name=_common_name(tls) if tls.context.verify_mode is ssl.CERT_REQUIRED else None)
    sock = transport.get_extra_info("socket")
    if sock is None or sock.family != socket.AF_UNIX:
        return Peer()
    return Peer(uid=user_of(sock))


def client_of(transport: asyncio.BaseTransport | None, peer: Peer) -> str:
    """Return the client of a connection as text: a user or an address, "" if the client is gone."""
    if peer.uid is not None:
        return f"user {peer.uid}"
    address = transport.get_extra_info("peername") if transport is not None else None
    return str(address[0]).partition("%")[0] if isinstance(address, tuple) else ""


def _common_name(tls: ssl.SSLObject) -> str:
    """Return the subject's common name, "" if there is none or more than one."""
    certificate: dict[str, Any] = tls.getpeercert() or {}
    subject = certificate.get("subject", ())
    names = [value for part in subject for name, value in part if name == "commonName"]
    return names[0] if len(names) == 1 else ""


class BotServer:
    """Creates the protocol of each new connection, and has places for `max_connections` of them, or `room`.

    `room` is the number of connections that the system's limit of open files allows. A connection in its TLS
    handshake also has a place, but is not among `connections` yet.
    """

    def __init__(self, service: Service, max_connections: int, room: int) -> None:
        self._service = service
        self._max_connections = max_connections
        too_many = _TOO_FEW_FILES if room < max_connections else _TOO_MANY
        self.places = Places(min(max_connections, room), too_many)
        self.connections: set[ServerConnection] = set()

    def beside(self, service: Service) -> "BotServer":
        """Return a server for another service, with the same places and connections."""
        other = BotServer(service, self._max_connections, self.places.most)
        other.places, other.connections = self.places, self.connections
        return other

    def make_room(self, room: int) -> None:
        """Adjust the places to the present limit of open files; existing connections keep theirs."""
        self.places.most = min(self._max_connections, room)

    def __call__(self) -> ServerConnection:
        """Return the protocol of a new connection."""
        return ServerConnection(self._service, self.connections, self.places)

    def admit(self, handshake: Guest) -> ServerConnection:
        """Return the protocol of a connection, which takes over the place of its handshake."""
        return ServerConnection(self._service, self.connections, self.places, handshake)

    async def wait_until_empty(self, at_most_s: float) -> None:
        """Return when all bots have disconnected, or the time is over."""
        tasks = [connection.task for connection in self.connections if connection.task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=at_most_s)

    async def close(self, within_s: float) -> None:
        """Close all connections: idle ones immediately, others after their reply or when the time is over."""
        if ends := [connection.finish() for connection in self.connections]:
            # Waiting for their tasks is not enough: a bot may read a reply long after it was written.
            await asyncio.wait(ends, timeout=within_s)
        tasks = [connection.task for connection in self.connections if connection.task is not None]
        for task in tasks:
            task.cancel()
        for connection in set(self.connections):
            connection.reset()
