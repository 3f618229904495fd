"""`sealgate halt`, `resume` and `reload`: commands to the running gateway, through its admin socket."""

import contextlib
import errno
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sealgate.cli.frame import config_option, json_option
from sealgate.machine.terminal import coloured, leave, leave_with_error, plain_cause, waiting_for
from sealgate.observe.running import UnixConnection, have_one_in_common
from sealgate.orders.halts import Scope

if TYPE_CHECKING:
    from sealgate.config.load import OwnGateway

_TIMEOUT_S = 120.0  # a reload tries new keys, and may wait for the limit
_NO_GATEWAY = "the program that listens there is not a Sealgate gateway; check admin.unix"
_ABSENT = frozenset({errno.ENOENT, errno.ECONNREFUSED})
_WIDER = "Lift a wider halt with its own options, or all halts with `sealgate resume`."


def gateway_options(command: Any) -> Any:
    """Add `--config` and `--socket`, which `send` takes."""
    option = click.option(
        "--socket",
        "socket_file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Act on the gateway at this admin socket, whichever it is. Default: admin.unix.",
    )
    return config_option(option(command))


def send(
    action: str,
    command: Mapping[str, str | None],
    config_file: Path | None,
    socket_file: Path | None,
    *,
    is_checked_by_gateway: bool = False,
) -> tuple[dict[str, Any], str]:
    """Send a command to the intended gateway; return its answer, and a description of the gateway.

    With `socket_file`, any gateway at that socket is accepted, else only the configuration's own. Exits with
    code 1 if the gateway does not answer or refuses the command, and with 2 if no configuration says which
    gateway is intended. `is_checked_by_gateway`: the gateway itself reports mistakes in the configuration.
    """
    own = _own_gateway(config_file, socket_file)
    if own.trouble and not is_checked_by_gateway:  # only a warning: a halt is urgent
        for line in str(own.trouble).splitlines():
            click.echo(f"sealgate: {coloured('warning:', 'warn')} {line}", err=True)
    with _connected(own) as connection:
        body = json.dumps({name: value for name, value in command.items() if value is not None})
        status, document = _ask(connection, "POST", f"/-/{action}", body)
        if status != HTTPStatus.OK:
            leave(str(document.get("error", f"the gateway answered {status}")))
        exchanges = ", ".join(dict.fromkeys(str(document["base_url"]).split()))
        return document, f"gateway to {exchanges} at {connection.path}"


def _own_gateway(config_file: Path | None, socket_file: Path | None) -> "OwnGateway":
    """Return how to recognize the intended gateway, from the options or else from the configuration.

    Raises ConfigError, whose text says how to act without a configuration.
    """
    from sealgate.config import ConfigError
    from sealgate.config.files import default_places
    from sealgate.config.load import OwnGateway, load_own_gateway

    if socket_file is not None:
        return OwnGateway(socket_file)
    try:
        return load_own_gateway(config_file, os.environ)
    except ConfigError as error:
        default = " or ".join(map(str, default_places(os.environ)))
        hint = (
            "if it is urgent, pass --socket with the path of the running gateway's admin.unix "
            f"(by default {default}): that needs no configuration"
        )
        raise ConfigError([str(error), hint]) from None


def _places(own: "OwnGateway") -> tuple[Path, ...]:
    """Return the paths where the gateway's socket may be."""
    from sealgate.config.files import OFF, default_places, why_not_private

    if own.socket == OFF:
        leave_with_error("admin.unix is off, so the gateway accepts no commands; set it to a path")
    if own.socket is not None:
        return (Path(own.socket),)
    places = default_places(os.environ)
    for path in places:  # in a folder that is not private, another user could listen in the gateway's place
        if path.parent.exists() and (trouble := why_not_private(path.parent)) is not None:
            leave_with_error(f"{path.parent} {trouble}; the program listening there may not be the gateway")
    return places


@contextlib.contextmanager
def _connected(own: "OwnGateway") -> Iterator[UnixConnection]:
    """Connect to the intended gateway.

    The command uses the same connection as the check of the gateway, so that it cannot reach another one.
    """
    places, others = _places(own), dict[Path, str]()
    for path in places:
        with contextlib.closing(UnixConnection(path, _TIMEOUT_S)) as connection:
            try:
                connection.connect()
                connection.auto_open = 0  # no reconnection: another gateway may listen there by then
            except OSError as error:
                if error.errno in _ABSENT:
                    continue
                fix = "; run this as the gateway's user" if error.errno == errno.EACCES else ""
                leave(f"{path}: {plain_cause(error)}{fix}")
            if not (doubt := _doubt(own, connection)):
                yield connection
                return
            others[path] = doubt
    if others:
        sockets = " or ".join(f"--socket {path}" for path in others)
        text = f"{' and '.join(others.values())}; nothing has changed; pass {sockets} to act on it"
        leave(text) if own.identity else leave_with_error(text)
    tried = " or ".join(str(path.absolute()) for path in places)
    is_relative = not all(path.is_absolute() for path in places)
    here = "run this in the folder in which it runs, " if is_relative else ""
    leave(f"no gateway listens at {tried}; start it with `sealgate serve`, {here}or give the right --socket")


def _doubt(own: "OwnGateway", connection: UnixConnection) -> str:
    """Return which gateway listens, and why it may not be the intended one; "" if it is."""
    # There are three cases:
    # 1. The configuration identifies its gateway: the gateway at the socket must report the same.
    # 2. It does not, but --socket or admin.unix names the socket: any gateway at it is accepted.
    # 3. Only the default path is left, where any gateway of this user may listen.
    if not own.identity and own.socket is not None:
        return ""
    status, found = _ask(connection, "GET", "/status.json")
    if status != HTTPStatus.OK or "base_url" not in found:
        leave(f"{connection.path}: {_NO_GATEWAY}")
    addresses = found.get("addresses", {})
    there = {"base_url": found["base_url"], **addresses}
    differences = [
        f"{name} is {here or 'off'} here, and {there.get(name, 'unknown') or 'off'} there"
        for name, here in own.identity.items()
        if there.get(name) != here
        and not (name == "base_url" and have_one_in_common(here, found["base_url"]))
    ]
    if own.identity and not differences:
        return ""
    process = f" (process {connection.process})" if connection.process is not None else ""
    bots = " and ".join(address for name, address in addresses.items() if address and "listen" in name)
    gateway = f"the gateway{process} at {connection.path} forwards to {found['base_url']}"
    why = (
        f"not this configuration's ({'; '.join(differences)})"
        if differences
        else "and no configuration names it"
    )
    return f"{gateway}{f', for bots at {bots}' if bots else ''}, {why}"


def _ask(
    connection: UnixConnection, method: str, target: str, body: str | None = None
) -> tuple[int, dict[str, Any]]:
    """Return status and document. Exits with code 1 if the program listening there is not a gateway."""
    try:
        with waiting_for("asking the gateway"):
            connection.request(method, target, body, {"Content-Type": "application/json"} if body else {})
            reply = connection.getresponse()
            document = json.loads(reply.read())
    except OSError as error:
        leave(f"{connection.path}: {plain_cause(error)}")
    except (HTTPException, ValueError):
        document = None
    if not isinstance(document, dict):
        leave(f"{connection.path}: {_NO_GATEWAY}")
    return reply.status, document


def scope_options(reason_help: str) -> Callable[[Any], Any]:
    """Return a decorator that adds the options for scope, reason, JSON and the intended gateway."""

    def add(command: Any) -> Any:
        for option in (
            json_option,
            click.option(
                "--exchange", metavar="NAME", help="Only orders to this exchange. Default: all exchanges."
            ),
            click.option("--key", metavar="KEY", help="Only orders with this API key (its alias)."),
            click.option("--bot", metavar="BOT", help="Only orders of this bot."),
            click.option("--reason", metavar="TEXT", help=reason_help),
            gateway_options,
        ):
            command = option(command)
        return command

    return add


@click.command("halt")
@scope_options("The reason, shown on the page, in the status and in the log.")
def halt(
    bot: str | None, key: str | None, exchange: str | None, reason: str | None, *, as_json: bool, **way: Any
) -> None:
    """Halt orders immediately: all of them, or only those of one bot, with one API key, to one exchange.

    Transfers and withdrawals stop as well, and orders waiting in the gateway are refused. Reads and cancels
    still pass. Orders already sent are not cancelled. The halt lasts until `sealgate resume`; it survives a
    restart only if journal.file is set.
    """
    said, gateway = send("halt", {"bot": bot, "key": key, "exchange": exchange, "reason": reason}, **way)
    refused = f"waiting orders refused: {said['refused']}"
    changes = ["already halted; nothing has changed" if said["had_been"] else refused]
    _print_halts(said, gateway, changes, as_json=as_json)


@click.command("resume")
@scope_options("The reason, written to the log.")
def resume(
    bot: str | None, key: str | None, exchange: str | None, reason: str | None, *, as_json: bool, **way: Any
) -> None:
    """Lift halts, so that orders pass again: all halts, or only those of one bot, key or exchange.

    A wider halt stays in force, and is printed. An API key that was disabled because the exchange refused it
    is used again immediately, and is named. Orders refused while halted are not sent later.
    """
    said, gateway = send("resume", {"bot": bot, "key": key, "exchange": exchange, "reason": reason}, **way)
    changes = [f"{words}: used again from now on" for words in said["used_again"]]
    changes += [f"resumed: {halt['words']}" for halt in said["lifted"]]
    if said["halts"] and not said["lifted"]:
        scope = Scope(bot, key, exchange).words
        changes.append(f"no halt lies within this scope: {scope}; nothing has changed. {_WIDER}")
    _print_halts(said, gateway, changes, as_json=as_json)


def _print_halts(said: dict[str, Any], gateway: str, changes: Sequence[str], *, as_json: bool) -> None:
    """Print the gateway, the changes that it made, and the halts now in force."""
    if as_json:
        click.echo(json.dumps(said))
        return
    for line in (gateway, *changes):
        click.echo(line)
    for halt in said["halts"]:
        since = datetime.fromtimestamp(halt["since_ms"] / 1000, UTC).astimezone().isoformat(" ", "seconds")
        reason = f": {halt['reason']}" if halt["reason"] else ""
        click.echo(f"halted: {halt['words']} (since {since} by {halt['who']}{reason})")
    if not said["halts"]:
        click.echo("no orders are halted")
    elif not said["survives_restart"]:
        click.echo(f"sealgate: this does not survive a restart: {said['forgotten_because']}", err=True)


@click.command("reload")
@gateway_options
@json_option
def reload(*, as_json: bool, **way: Any) -> None:
    """Reload configuration and secrets, as SIGHUP does, and report the result.

    The gateway first tests new keys with a signed read. If anything is wrong, nothing changes: the cause is
    printed, and the exit code is 1.
    """
    said, gateway = send("reload", {}, **way, is_checked_by_gateway=True)
    if as_json:
        click.echo(json.dumps(said))
        return
    for warning in said["warnings"]:
        click.echo(f"sealgate: {warning}", err=True)
    click.echo(f"{gateway}\nreloaded")
