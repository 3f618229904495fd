"""What `sealgate halt` and `sealgate resume` share: their options, and the answer in words."""

import json
from pathlib import Path
from typing import Any

import click

from sealgate.cli.control_client import places_of, socket_option, tell


def scope_options(command: Any) -> Any:
    """Add `--bot`, `--key`, `--json` and where the gateway is."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        click.option("--key", metavar="KEY", help="Only with this key (its alias)."),
        click.option("--bot", metavar="BOT", help="Only of this bot."),
        socket_option,
    ):
        command = option(command)
    return command


def change(
    action: str, scope: dict[str, str | None], files: tuple[Path | None, Path | None], *, as_json: bool
) -> None:
    """Tell the gateway, and print what stands now."""
    said = tell(action, scope, places_of(*files))
    if as_json:
        click.echo(json.dumps(said))
        return
    click.echo(f"gateway to {said['base_url']}")
    if action == "halt":
        refused = f"waiting orders refused: {said['refused']}"
        click.echo("already halted; nothing has changed" if said["had_been"] else refused)
    for line in [_line(halt) for halt in said["halts"]] or ["no orders are halted"]:
        click.echo(line)
    if said["halts"] and not said["survives_restart"]:
        click.echo(f"sealgate: a restart forgets this: {said['forgotten_because']}", err=True)


def _line(halt: dict[str, Any]) -> str:
    named = [f"{kind} {halt[kind]}" for kind in ("bot", "key") if halt[kind] is not None]
    return f"halted: {' with '.join(named) or 'all orders'}"
