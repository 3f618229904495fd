"""What `sealgate halt` and `sealgate resume` share: their options, and the answer in words."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import click

from sealgate.cli.control_client import Way, gateway_options, tell
from sealgate.core.halts import Scope


def scope_options(command: Any) -> Any:
    """Add `--bot`, `--key`, `--reason`, `--json` and where the gateway is."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        click.option("--key", metavar="KEY", help="Only with this key (its alias)."),
        click.option("--bot", metavar="BOT", help="Only of this bot."),
        click.option("--reason", metavar="TEXT", help="Why, for page, status and log."),
        gateway_options,
    ):
        command = option(command)
    return command


def change(
    action: str, scope: dict[str, str | None], *, as_json: bool, reason: str | None, **way: Any
) -> None:
    """Send the command to the gateway, and print what stands now. `scope` has `bot` and `key`."""
    said = tell(action, {**scope, "reason": reason}, Way(**way))
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
        yield f"no halt is of {Scope(**scope).words} alone; nothing has changed"
