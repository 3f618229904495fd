"""`sealgate reload`: lets the running gateway take up its configuration and secrets anew."""

import json
from typing import Any

import click

from sealgate.cli.control_client import Way, gateway_options, tell


@click.command("reload")
@gateway_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(*, as_json: bool, **way: Any) -> None:
    """Reload configuration and secrets, as SIGHUP does, and say how it went.

    New keys are tried with a signed read first. Whatever is wrong changes nothing: exit code 1 and the cause.
    """
    said = tell("reload", {}, Way(**way), is_told_by_gateway=True)
    if as_json:
        click.echo(json.dumps(said))
        return
    for warning in said["warnings"]:
        click.echo(f"sealgate: {warning}", err=True)
    click.echo("reloaded")
