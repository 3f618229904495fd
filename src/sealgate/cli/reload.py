"""`sealgate reload`: lets the running gateway take up its configuration and secrets anew."""

import json
from pathlib import Path

import click

from sealgate.cli.control_client import places_of, socket_option, tell


@click.command("reload")
@socket_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(config_file: Path | None, socket_file: Path | None, *, as_json: bool) -> None:
    """Reload configuration and secrets, as SIGHUP does, and say how it went.

    New keys are tried with a signed read first. Whatever is wrong changes nothing: exit code 1 and the cause.
    """
    said = tell("reload", {}, places_of(config_file, socket_file, is_told_by_gateway=True))
    if as_json:
        click.echo(json.dumps(said))
        return
    for warning in said["warnings"]:
        click.echo(f"sealgate: {warning}", err=True)
    click.echo("reloaded")
