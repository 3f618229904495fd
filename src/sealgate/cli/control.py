"""`sealgate halt`, `resume` and `reload`: commands to the running gateway, through its admin socket.

The socket is found as the gateway itself chooses it.
"""

import contextlib
import errno
import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sealgate.cli.frame import config_option
from sealgate.machine.terminal import coloured, leave, leave_with_error, plain_cause, waiting_for
from sealgate.orders.halts import Scope

if TYPE_CHECKING:
    from sealgate.config import Address
    from sealgate.config.load import OwnGateway
from sealgate.observe.running import UnixConnection

_TIMEOUT_S = 120.0  # a reload tries new keys, and may wait for the limit
_NO_GATEWAY = "what listens there is not a gateway; see admin.unix"
_WITHOUT_FILE = (
    "in a hurry, pass --socket with the path of the running gateway's admin.unix: that needs no configuration"
)
_QUESTIONS = {
    "halt": "Halt its orders?",
    "resume": "Release its orders?",
    "reload": "Reload it?",
}
_ABSENT = frozenset({errno.ENOENT, errno.ECONNREFUSED})


def gateway_options(command: Any) -> Any:
    """Add `--config`, `--socket` and `--yes`, which arrive as the fields of `Way`."""
    for option in (
        click.option("--yes", "is_agreed", is_flag=True, help="Without a configuration, act without asking."),
        click.option(
            "--socket",
            "socket_file",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Act on the gateway at this admin socket, whichever it is. Default: admin.unix.",
        ),
    ):
        command = option(command)
    return config_option(command)


@dataclass(frozen=True, slots=True)
class Way:
    """What the user said of the gateway that is meant."""

    config_file: Path | None = None
    socket_file: Path | None = None
    is_agreed: bool = False


@dataclass(frozen=True, slots=True)
class Places:
    """Where the gateway's socket may be, and which gateway it must be.

    `is_given` says that the user named the socket, so that any gateway there is meant. `fix` is what to do
    about `--socket` where nobody listens.
    """

    sockets: tuple[Path, ...]
    own: "OwnGateway"
    is_given: bool = False
    fix: str = "give --socket"


def send(
    action: str, command: Mapping[str, str | None], way: Way, *, is_checked_by_gateway: bool = False
) -> dict[str, Any]:
    """Send a command to the gateway that is meant, and return its answer.

    Leaves with exit code 1 where that one does not answer, or says no, with 2 where nobody can be asked which
    one is meant. `is_checked_by_gateway` says that it tells mistakes in the configuration itself.
    """
    places = _places_of(way, is_checked_by_gateway=is_checked_by_gateway)
    if not places.is_given and places.own.base_url is None:
        places = _agreed(action, places, is_agreed=way.is_agreed)
    with _connected(places) as connection:
        body = json.dumps({name: value for name, value in command.items() if value is not None})
        status, document = _ask(connection, "POST", f"/-/{action}", body)
    if status != HTTPStatus.OK:
        leave(str(document.get("error", f"the gateway answered {status}")))
    return document


def _places_of(way: Way, *, is_checked_by_gateway: bool) -> Places:
    """Return where the gateway may be.

    In an emergency there may be no configuration at hand: then the default places are tried. If there is one
    with a mistake in it, the mistake is reported, unless the gateway itself will report it; it stops nobody
    as long as admin.unix can be read. Where it cannot be, the message says how to do without.
    """
    from sealgate.config import ConfigError
    from sealgate.config.files import OFF, default_places
    from sealgate.config.load import OwnGateway, load_own_gateway

    if way.socket_file is not None:
        return Places((way.socket_file,), OwnGateway(), is_given=True, fix="correct --socket")
    try:
        own = load_own_gateway(way.config_file, os.environ)
    except ConfigError as error:
        raise ConfigError([str(error), _WITHOUT_FILE]) from None
    for line in str(own.trouble).splitlines() if own.trouble and not is_checked_by_gateway else ():
        click.echo(f"sealgate: {coloured('warning:', 'warn')} {line}", err=True)
    if own.socket == OFF:
        leave_with_error("admin.unix is off, so the gateway takes no commands; give it a path")
    return Places(_private(default_places(os.environ)) if own.socket is None else (Path(own.socket),), own)


def _agreed(action: str, places: Places, *, is_agreed: bool) -> Places:
    """Name the gateway that answers and ask whether it is meant; return the places of that one alone."""
    from sealgate.config.load import OwnGateway

    with _connected(places) as connection:
        found, path = _status(connection), connection.path
        name = _name(path, found, connection.process)
    if not is_agreed and not sys.stdin.isatty():
        leave_with_error(
            f"no configuration says which gateway is meant, and there is no terminal to ask on; {name}; "
            "pass --yes if it is the right one"
        )
    click.echo(f"sealgate: no configuration says which gateway is meant; {name}", err=True)
    if not is_agreed and not click.confirm(_QUESTIONS[action], err=True):
        leave("nothing has changed")
    own = OwnGateway(path, found["base_url"], found.get("addresses", {}))
    return replace(places, sockets=(path,), own=own)


@contextlib.contextmanager
def _connected(places: Places) -> Iterator["UnixConnection"]:
    """Connect to the first gateway that is meant.

    What is asked and said on one connection goes to one process, so that no other gateway can come between
    the look and the command.
    """
    others = []
    for path in places.sockets:
        with contextlib.closing(UnixConnection(path)) as connection:
            try:
                connection.connect()
                connection.auto_open = 0  # never again: another gateway may listen there by then
            except OSError as error:
                if error.errno in _ABSENT:
                    continue
                fix = "; run this as the gateway's user" if error.errno == errno.EACCES else ""
                leave(f"{path}: {plain_cause(error)}{fix}")
            if places.is_given or places.own.base_url is None:
                yield connection
                return
            found = _status(connection)
            if not (differences := list(_differences(places.own, found))):
                yield connection
                return
            name = _name(path, found, connection.process)
            others.append(f"{name}, not this configuration's ({'; '.join(differences)})")
    if others:
        leave(f"{' and '.join(others)}; nothing has changed; pass --socket to act on it all the same")
    tried = " or ".join(str(path.absolute()) for path in places.sockets)
    is_relative = not all(path.is_absolute() for path in places.sockets)
    here = "run this in the folder in which it runs, " if is_relative and not places.is_given else ""
    leave(f"no gateway listens at {tried}; start it with `sealgate serve`, {here}or {places.fix}")


def _differences(own: "OwnGateway", found: Mapping[str, Any]) -> Iterator[str]:
    """Yield what tells the gateway that was found from the configuration's own."""
    if found["base_url"] != own.base_url:
        yield f"base_url is {own.base_url} here"
    addresses = found.get("addresses", {})
    for name, address in own.addresses.items():
        there = addresses.get(name, "unknown")
        if there != address:
            yield f"{name} is {address or 'off'} here, and {there or 'off'} there"


def _name(path: Path, found: Mapping[str, Any], process: int | None) -> str:
    """Say which gateway was found."""
    number = "" if process is None else f" (process {process})"
    bots = " and ".join(
        address for name, address in found.get("addresses", {}).items() if address and "listen" in name
    )
    return f"the gateway{number} at {path} forwards to {found['base_url']}" + (
        f", for bots at {bots}" if bots else ""
    )


def _status(connection: "UnixConnection") -> dict[str, Any]:
    status, document = _ask(connection, "GET", "/status.json")
    if status != HTTPStatus.OK or "base_url" not in document:
        leave(f"{connection.path}: {_NO_GATEWAY}")
    return document


def _private(places: tuple[Path, ...]) -> tuple[Path, ...]:
    """Refuse a folder in which another user could listen in the gateway's place."""
    from sealgate.config.files import why_not_private

    for path in places:
        if path.parent.exists() and (trouble := why_not_private(path.parent)) is not None:
            leave_with_error(f"{path.parent} {trouble}; it may not be the gateway that listens there")
    return places


def _ask(
    connection: "UnixConnection", method: str, target: str, body: str | None = None
) -> tuple[int, dict[str, Any]]:
    """Leaves with exit code 1 where what listens there does not answer as a gateway."""
    try:
        with waiting_for("asking the gateway"):
            connection.request(method, target, body, {"Content-Type": "application/json"} if body else {})
            reply = connection.getresponse()
            document = json.loads(reply.read())
        if not isinstance(document, dict):
            raise ValueError("no JSON object")  # noqa: TRY004, TRY301 - as unreadable as no JSON
    except (HTTPException, ValueError):
        leave(f"{connection.path}: {_NO_GATEWAY}")
    except OSError as error:
        leave(f"{connection.path}: {plain_cause(error)}")
    return reply.status, document


def admin_address(config_file: Path | None, other_way: str = "") -> tuple["Address", str]:
    """Return `admin.tcp` of the configuration, and a Host name that is taken there.

    Without any configuration it is the default, as the gateway's may stand in another terminal alone. Leaves
    with exit code 2 where nobody can be asked there; `other_way` is what may be done instead of fixing a free
    port.
    """
    from sealgate.config.load import load_admin

    admin = load_admin(config_file, os.environ)
    if admin.tcp is None:
        leave_with_error("admin.tcp is off, so there is nothing to ask; give it an address")
    if admin.tcp.port == 0:
        leave_with_error(
            f"admin.tcp has port 0, which means a new port at each start; give it a fixed one{other_way}"
        )
    return admin.tcp, admin.hosts[0]


def scope_options(command: Any) -> Any:
    """Add `--bot`, `--key`, `--reason`, `--json` and where the gateway is."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        click.option("--key", metavar="KEY", help="Only orders with this key (its alias)."),
        click.option("--bot", metavar="BOT", help="Only orders of this bot."),
        click.option(
            "--reason", metavar="TEXT", help="The reason, shown on the page, in the status and in the log."
        ),
        gateway_options,
    ):
        command = option(command)
    return command


def change(
    action: str, scope: dict[str, str | None], *, as_json: bool, reason: str | None, **way: Any
) -> None:
    """Send the command to the gateway, and print what stands now. `scope` has `bot` and `key`."""
    said = send(action, {**scope, "reason": reason}, Way(**way))
    if as_json:
        click.echo(json.dumps(said))
        return
    click.echo(f"gateway to {said['base_url']}")
    for line in _halted(said) if action == "halt" else _resumed(said, scope):
        click.echo(line)
    for line in map(_halt, said["halts"]) if said["halts"] else ["no orders are halted"]:
        click.echo(line)
    if said["halts"] and not said["survives_restart"]:
        click.echo(f"sealgate: a restart forgets this: {said['forgotten_because']}", err=True)


def _halt(halt: dict[str, Any]) -> str:
    since = datetime.fromtimestamp(halt["since_ms"] / 1000, UTC).astimezone().isoformat(" ", "seconds")
    reason = f": {halt['reason']}" if halt["reason"] else ""
    return f"halted: {halt['words']} (since {since} by {halt['who']}{reason})"


def _halted(said: dict[str, Any]) -> Iterator[str]:
    refused = f"waiting orders refused: {said['refused']}"
    yield "already halted; nothing has changed" if said["had_been"] else refused


def _resumed(said: dict[str, Any], scope: dict[str, str | None]) -> Iterator[str]:
    for alias in said["keys"]:
        yield f"key {alias}: used again from now on"
    for halt in said["lifted"]:
        yield f"resumed: {halt['words']}"
    if said["halts"] and not said["lifted"]:
        yield f"there is no halt of {Scope(**scope).words} alone; nothing has changed"


@click.command("halt")
@scope_options
def halt(bot: str | None, key: str | None, **options: Any) -> None:
    """Stop orders at once: all of them, or only those of one bot, with one key, or both.

    Transfers and withdrawals stop as well, and what waits in the gateway is refused too. Reads and cancels
    still pass; an order that was already sent is not recalled. The halt lasts until `sealgate resume`, and
    over a restart only with journal.file.
    """
    change("halt", {"bot": bot, "key": key}, **options)


@click.command("resume")
@scope_options
def resume(bot: str | None, key: str | None, **options: Any) -> None:
    """Release halted orders: all of them, or only the halt of one bot, one key, or both.

    A wider halt stays in force, and is printed. A key that the exchange had refused is used again at once,
    and is named.
    """
    change("resume", {"bot": bot, "key": key}, **options)


@click.command("reload")
@gateway_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def reload(*, as_json: bool, **way: Any) -> None:
    """Reload configuration and secrets, as SIGHUP does, and report the result.

    New keys are first tried with a signed read. If anything is wrong, nothing changes: the cause is printed,
    and the exit code is 1.
    """
    said = send("reload", {}, Way(**way), is_checked_by_gateway=True)
    if as_json:
        click.echo(json.dumps(said))
        return
    for warning in said["warnings"]:
        click.echo(f"sealgate: {warning}", err=True)
    click.echo("reloaded")
