"""A gateway that runs already: how to reach it, and what it says of itself."""

import json
import os
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from sealgate.config import Config
from sealgate.config.files import OFF, default_places
from sealgate.config.load import addresses_of
from sealgate.machine.process import process_of
from sealgate.orders.journal import JournalError
from sealgate.orders.journal.lock import user_of

_TIMEOUT_S = 3.0
_OWN = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared with, not bound to


class UnixConnection(HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path, timeout_s: float = _TIMEOUT_S) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self.path = path

    @property
    def process(self) -> int | None:
        """The process at the other end, None where the system does not say."""
        return process_of(self.sock)

    def connect(self) -> None:
        """Connect to the socket instead of a host."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(os.fspath(self.path))


def own_address(host: str) -> str:
    """Return the host to connect to."""
    return _OWN.get(host, host)


def ask_running(config: Config, environ: Mapping[str, str]) -> dict[str, Any] | None:
    """Return `/status.json` of a gateway with these addresses, None where none answers as one."""
    return first_status(config, list(by_tcp(config)) or by_socket(config, environ))


def second_of(config: Config, environ: Mapping[str, str]) -> str | None:
    """Return that a gateway has one of these addresses already, and what to do; None if none has.

    Its process is known by its admin socket or, without one, by the lock of the journal.
    """
    own = addresses_of(config.listen, config.admin).items()
    for connection in (*by_socket(config, environ), *by_tcp(config)):
        with closing(connection):
            document = _status(connection, config.admin.hosts[0])
            process = connection.process if document and isinstance(connection, UnixConnection) else None
        theirs = document.get("addresses", {}) if document else {}
        # Port 0 is another one at each start.
        if not any(theirs.get(setting) == at for setting, at in own if at and not at.endswith(":0")):
            continue
        if process is None and config.journal.file is not None:
            with suppress(OSError, JournalError):
                process = user_of(config.journal.file) or None
        who = "a Sealgate gateway" if process is None else f"pid {process}"
        where = theirs["listen.tcp"] or theirs["listen.unix"]
        stop = "stop it" if process is None else f"stop it (kill {process})"
        return (
            f"already running: {who}, at {where}; apply changes to it with `sealgate reload`, or {stop}; for "
            "another exchange, give this gateway addresses of its own"
        )
    return None


def first_status(config: Config, ways: Iterable[HTTPConnection]) -> dict[str, Any] | None:
    """Return the status of the first gateway that answers, None where none does."""
    for connection in ways:
        with closing(connection):
            document = _status(connection, config.admin.hosts[0])
        if document is not None:
            return document
    return None


def by_tcp(config: Config) -> Iterator[HTTPConnection]:
    """Yield the way to `admin.tcp`, where it is set and its port is known."""
    address = config.admin.tcp
    if address is not None and address.port:
        yield HTTPConnection(own_address(address.host), address.port, timeout=_TIMEOUT_S)


def by_socket(config: Config, environ: Mapping[str, str]) -> Iterator[HTTPConnection]:
    """Yield the ways to the places of the admin socket."""
    place = config.admin.unix
    if place != OFF:
        for path in default_places(environ) if place is None else (Path(place),):
            yield UnixConnection(path)


def _status(connection: HTTPConnection, host_name: str) -> dict[str, Any] | None:
    try:
        connection.request("GET", "/status.json", headers={"Host": host_name})
        document = json.loads(connection.getresponse().read())
    except (OSError, HTTPException, ValueError):
        return None
    is_gateways = isinstance(document, dict) and {"not_ready", "keys", "base_url"} <= document.keys()
    return document if is_gateways else None
