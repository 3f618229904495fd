"""Who is at the other end of a connection, as the system and TLS say."""

import asyncio
import socket
import ssl
import struct
import sys
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Any

from sealgate.core.admission import Peer

_UCRED = struct.Struct("3i")  # struct ucred of unix(7): process, user, group

# macOS, sys/un.h and sys/ucred.h: the level, its options, and struct xucred as far as it is read.
_SOL_LOCAL, _LOCAL_PEERCRED, _LOCAL_PEERPID = 0, 1, 2
_XUCRED = struct.Struct("IIh2xI60x")  # version, user, number of groups, the first of them
_PID = struct.Struct("i")
_ONE_CUSTOMER = 64  # bits of an IPv6 address that a provider gives to one


def peer_of(transport: asyncio.BaseTransport) -> Peer:
    """Return the user of a Unix socket's connection, or the name in a verified certificate."""
    tls = transport.get_extra_info("ssl_object")
    if tls is not None:
        return Peer(name=_common_name(tls) if tls.context.verify_mode is ssl.CERT_REQUIRED else None)
    sock = transport.get_extra_info("socket")
    if sock is None or sock.family != socket.AF_UNIX:
        return Peer()
    return Peer(uid=_user(sock))


def origin_of(transport: asyncio.BaseTransport | None, peer: Peer) -> str:
    """Return where a connection comes from, as text: a user, or an address (of IPv6 the customer's part)."""
    if peer.uid is not None:
        return f"user {peer.uid}"
    address = transport.get_extra_info("peername") if transport is not None else None
    return _network(address[0]) if isinstance(address, tuple) else ""


def _network(host: str) -> str:
    address = ip_address(host.partition("%")[0])
    if isinstance(address, IPv6Address) and not address.is_loopback:
        return str(IPv6Network((address, _ONE_CUSTOMER), strict=False))
    return str(address)


def process_of(sock: Any) -> int | None:
    """Return the process at the other end of a Unix socket, None where the system does not say."""
    credentials = _credentials(sock)
    return None if credentials is None else credentials[0]


def caller_of(transport: asyncio.BaseTransport) -> tuple[int | None, int | None]:
    """Return user and process at the other end of a Unix socket, None where the system does not say."""
    sock = transport.get_extra_info("socket")
    credentials = None if sock is None else _credentials(sock)
    # The process is 0 where it is in another container's namespace, in which it has no number here.
    return (None, None) if credentials is None else (_user(sock), credentials[0] or None)


def _user(sock: Any) -> int | None:
    credentials = _credentials(sock)
    return None if credentials is None else credentials[1] & 0xFFFFFFFF


def _credentials(sock: Any) -> tuple[int, int, int] | None:
    """Return process, user and group (SO_PEERCRED, LOCAL_PEERCRED); None where the system does not say."""
    if hasattr(socket, "SO_PEERCRED"):
        process, user, group = _UCRED.unpack(
            sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
        )
        return process, user, group
    if sys.platform == "darwin":
        _, user, _, group = _XUCRED.unpack(sock.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, _XUCRED.size))
        (process,) = _PID.unpack(sock.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID, _PID.size))
        return process, user, group
    return None


def _common_name(tls: ssl.SSLObject) -> str:
    """Return the subject's common name, "" where there is none or more than one."""
    certificate: dict[str, Any] = tls.getpeercert() or {}
    subject = certificate.get("subject", ())
    names = [value for part in subject for name, value in part if name == "commonName"]
    return names[0] if len(names) == 1 else ""
