"""How a command reaches the running gateway: the admin socket, found as the gateway itself chooses it."""

import errno
import json
import os
import socket
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import click

from sealgate.cli.causes import plain_cause
from sealgate.cli.colours import coloured
from sealgate.cli.frame import config_option, leave, leave_with_error
from sealgate.cli.progress import waiting_for

_TIMEOUT_S = 120.0  # a reload tries new keys, and may wait for the limit
_ABSENT = frozenset({errno.ENOENT, errno.ECONNREFUSED})


class UnixConnection(HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path, timeout_s: float = _TIMEOUT_S) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket instead of a host."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(os.fspath(self._path))


def socket_option(command: Any) -> Any:
    """Add `--config` and `--socket`, which arrive as `config_file` and `socket_file`, for `tell`."""
    option = click.option(
        "--socket",
        "socket_file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="The gateway's admin socket. Default: admin.unix of the configuration.",
    )
    return config_option(option(command))


@dataclass(frozen=True, slots=True)
class Places:
    """Where the gateway's socket may be, and what to do about `--socket` where nobody listens."""

    sockets: tuple[Path, ...]
    fix: str = "give --socket"


def tell(action: str, scope: dict[str, str | None], places: Places) -> dict[str, Any]:
    """Send a command to the gateway at the first of these places that answers, and return its answer.

    Leaves with exit code 1 where no gateway answers, or it says no.
    """
    for path in places.sockets:
        try:
            with waiting_for("asking the gateway"):
                status, document = _ask(path, action, scope)
        except OSError as error:
            if error.errno in _ABSENT:
                continue
            leave(f"{path}: {plain_cause(error)}")
        except (HTTPException, ValueError):
            leave(f"{path}: what listens there is no gateway; see admin.unix")
        if status != HTTPStatus.OK:
            leave(str(document.get("error", f"the gateway answered {status}")))
        return document
    tried = " or ".join(map(str, places.sockets))
    return leave(f"no gateway listens at {tried}; start it with `sealgate serve`, or {places.fix}")


def places_of(
    config_file: Path | None, socket_file: Path | None, *, is_told_by_gateway: bool = False
) -> Places:
    """Return where the gateway's socket may be.

    In an emergency there may be no configuration at hand, and the default places are tried then; or one with
    a mistake in it, which is told unless the gateway itself will tell it, and stops nobody as long as
    admin.unix can be read.
    """
    from sealgate.config.admin_socket import OFF, default_places
    from sealgate.config.load import load_admin_socket

    if socket_file is not None:
        return Places((socket_file,), "correct --socket")
    setting, trouble = load_admin_socket(config_file, os.environ)
    for line in str(trouble).splitlines() if trouble and not is_told_by_gateway else ():
        click.echo(f"sealgate: {coloured('warning:', 'warn')} {line}", err=True)
    if setting == OFF:
        leave_with_error("admin.unix is off, so the gateway takes no commands; give it a path")
    return Places(_private(default_places(os.environ)) if setting is None else (Path(setting),))


def _private(places: tuple[Path, ...]) -> tuple[Path, ...]:
    """Refuse a folder in which another user could listen in the gateway's place."""
    from sealgate.config.admin_socket import why_not_private

    for path in places:
        if path.parent.exists() and (trouble := why_not_private(path.parent)) is not None:
            leave_with_error(f"{path.parent} {trouble}; it may not be the gateway that listens there")
    return places


def _ask(path: Path, action: str, scope: dict[str, str | None]) -> tuple[int, dict[str, Any]]:
    connection = UnixConnection(path)
    try:
        body = json.dumps({name: value for name, value in scope.items() if value is not None})
        connection.request("POST", f"/-/{action}", body, {"Content-Type": "application/json"})
        reply = connection.getresponse()
        document = json.loads(reply.read())
    finally:
        connection.close()
    if not isinstance(document, dict):
        raise ValueError("no JSON object")  # noqa: TRY004 - as unreadable as no JSON
    return reply.status, document
