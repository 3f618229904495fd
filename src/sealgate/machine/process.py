"""What the gateway asks of the machine: whose files they are, descriptors, memory, core dumps, systemd."""

import asyncio
import ctypes
import os
import resource
import socket
import struct
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

import structlog

from sealgate.machine.system import System

_RESERVE = 38  # listeners, the loop, journal, log, admin socket, clock, resolver
_MOST_ADMIN = 64  # connections of the admin address: 50 viewers of the page, and programs
_ADMIN_PART = 8  # it gets an eighth of the limit, where that is less
_MOST = 65_536  # where the system grants more than anybody needs
_PR_SET_DUMPABLE = 4  # linux/prctl.h
_UCRED = struct.Struct("3i")  # struct ucred of unix(7): process, user, group
# macOS, sys/un.h and sys/ucred.h: the level, its options, and struct xucred as far as it is read.
_SOL_LOCAL, _LOCAL_PEERCRED, _LOCAL_PEERPID = 0, 1, 2
_XUCRED = struct.Struct("IIh2xI60x")  # version, user, number of groups, the first of them
_PID = struct.Struct("i")
_LOOK_S = 1.0
_CROWD = 50  # connections: as many have to have left since the last time
_STATUS_EVERY_S = 5.0
REDIS_MISSING = "the package redis is missing"
REDIS_FIX = f"install redis, 5.2 or later, into {sys.prefix}"

log = structlog.get_logger("sealgate.machine")


class StartError(Exception):
    """Something of this machine keeps it from starting. `str()` is one line: cause and fix."""


def room_for_bots(wanted: int, upstream: int) -> int:
    """Raise the limit as far as the system lets us; return how many bots may be connected at a time.

    `wanted` is `listen.max_connections`, `upstream` the most connections to the exchange.

    Each bot's connection is a descriptor, each connection to the upstream another, each reader of the admin
    address a third. A process that has none left can neither accept nor connect, so each side has its share.
    """
    limit, room = grantable(wanted, upstream)
    _raise_to(limit)
    if room < wanted:
        fix = "raise it (ulimit -n, LimitNOFILE=), or lower listen.max_connections"
        log.warning("few_descriptors", limit=limit, bots=room, wanted=wanted, fix=fix)
    return room


def grantable(wanted: int, upstream: int) -> tuple[int, int]:
    """Return the limit as far as the system would let us raise it, and the room for bots that it leaves."""
    limit = _grantable(wanted + upstream + _RESERVE + _MOST_ADMIN)
    return limit, max(1, min(wanted, limit - upstream - _RESERVE - _admin_share(limit)))


def room_for_admin() -> int:
    """Return how many connections the admin address may have at a time."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _admin_share(_MOST if soft == resource.RLIM_INFINITY else soft)


def _admin_share(limit: int) -> int:
    return max(1, min(_MOST_ADMIN, limit // _ADMIN_PART))


def _grantable(needed: int) -> int:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    hard = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return _MOST if soft == resource.RLIM_INFINITY else soft
    return max(soft, min(needed, hard))


def _raise_to(limit: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft not in (resource.RLIM_INFINITY, limit):
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def process_of(sock: Any) -> int | None:
    """Return the process at the other end of a Unix socket, None where the system does not say."""
    credentials = _credentials(sock)
    return None if credentials is None else credentials[0]


def caller_of(transport: asyncio.BaseTransport) -> tuple[int | None, int | None]:
    """Return user and process at the other end of a Unix socket, None where the system does not say."""
    sock = transport.get_extra_info("socket")
    credentials = None if sock is None else _credentials(sock)
    # The process is 0 where it is in another container's namespace, in which it has no number here.
    return (None, None) if credentials is None else (user_of(sock), credentials[0] or None)


def user_of(sock: Any) -> int | None:
    """Return the user at the other end of a Unix socket, None where the system does not say."""
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


def forbid_core_dumps() -> None:
    """Let this process leave no core dump and, on Linux, no other process of its user read its memory.

    Call it before the first secret is read. The process itself may still look at its own descriptors and
    memory figures under /proc/self.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's own; others do without


class Memory:
    """Looks at a number of connections from time to time.

    glibc keeps what was freed between two blocks that are still in use. After a thousand connections with
    large heads that is most of what these took, and where memory is bounded others then get no more.
    """

    def __init__(self, connections: Callable[[], int], system: System) -> None:
        self._connections = connections
        self._system = system

    async def keep_small(self) -> None:
        """Give memory back whenever many connections are gone, until cancelled."""
        most = 0
        while _trim is not None:
            await self._system.sleep(_LOOK_S)
            most = max(most, now := self._connections())
            if most - now >= _CROWD:
                most = now
                await asyncio.to_thread(_trim, 0)


class ServiceManager:
    """The service manager of this process, if there is one."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        address = environ.get("NOTIFY_SOCKET", "")
        self._address = f"\0{address[1:]}" if address.startswith("@") else address  # "@": it has no file
        self._status = ""
        is_watched = environ.get("WATCHDOG_PID", "") in ("", str(os.getpid()))
        limit_us = environ.get("WATCHDOG_USEC", "") if is_watched else ""
        self._watchdog_s = int(limit_us) / 1e6 if limit_us.isdecimal() else 0.0

    def notify(self, *lines: str) -> None:
        """Send assignments as sd_notify(3) lists them; what cannot be sent is logged."""
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
                sock.setblocking(False)
                sock.sendto("\n".join(lines).encode(), self._address)
        except OSError as error:
            log.warning("service_manager_not_notified", what=lines[0], cause=error.strerror)

    def notify_status(self, status: str) -> None:
        """Set the line that `systemctl status` shows, unless it shows it already."""
        if status != self._status:
            self._status = status
            self.notify(f"STATUS={' '.join(status.split())}")

    async def keep_up(self, status: Callable[[], str], system: System) -> None:
        """Keep the status true, and the watchdog quiet as long as the event loop turns."""
        pause_s = min(self._watchdog_s / 2 or _STATUS_EVERY_S, _STATUS_EVERY_S)
        while self._address:
            self.notify_status(status())
            if self._watchdog_s:
                self.notify("WATCHDOG=1")
            await system.sleep(pause_s)


def has_redis() -> bool:
    """Ask whether limits can be shared."""
    return find_spec("redis") is not None
