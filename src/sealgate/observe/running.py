"""A gateway that runs already: how to reach it, and what it says of itself."""

import json
import os
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from sealgate.config import Address, Config
from sealgate.config.files import OFF, default_places

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
        from sealgate.machine.process import process_of  # noqa: PLC0415 - most commands do not ask for it

        return process_of(self.sock)

    def connect(self) -> None:
        """Connect to the socket instead of a host."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(os.fspath(self.path))


def tcp_connection(address: Address, timeout_s: float = _TIMEOUT_S) -> HTTPConnection:
    """Return the way to an address that a gateway listens at."""
    return HTTPConnection(_OWN.get(address.host, address.host), address.port, timeout=timeout_s)


def ask_running(config: Config, environ: Mapping[str, str]) -> dict[str, Any] | None:
    """Return `/status.json` of a gateway with these addresses, None where none answers as one."""
    return first_status(config, list(by_tcp(config)) or by_socket(config, environ))


def first_status(config: Config, ways: Iterable[HTTPConnection]) -> dict[str, Any] | None:
    """Return the status of the first gateway that answers, None where none does."""
    for connection in ways:
        with closing(connection):
            document = status_of(connection, config.admin.hosts[0])
        if document is not None:
            return document
    return None


def by_tcp(config: Config) -> Iterator[HTTPConnection]:
    """Yield the way to `admin.tcp`, where it is set and its port is known."""
    address = config.admin.tcp
    if address is not None and address.port:
        yield tcp_connection(address)


def by_socket(config: Config, environ: Mapping[str, str]) -> Iterator[HTTPConnection]:
    """Yield the ways to the places of the admin socket."""
    place = config.admin.unix
    if place != OFF:
        for path in default_places(environ) if place is None else (Path(place),):
            yield UnixConnection(path)


def status_of(connection: HTTPConnection, host_name: str) -> dict[str, Any] | None:
    """Return what a gateway says of itself, None where none answers."""
    try:
        connection.request("GET", "/status.json", headers={"Host": host_name})
        document = json.loads(connection.getresponse().read())
    except (OSError, HTTPException, ValueError):
        return None
    is_gateways = isinstance(document, dict) and {"not_ready", "keys", "base_url"} <= document.keys()
    return document if is_gateways else None


def have_one_in_common(urls: str, others: str) -> bool:
    """Return whether two gateways serve one exchange, at least: `Config.exchange_urls` of each.

    A file to which an exchange was added, or from which one was taken, is still the file of that gateway.
    """
    return not set(urls.split()).isdisjoint(others.split())
