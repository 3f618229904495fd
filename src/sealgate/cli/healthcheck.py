"""`sealgate healthcheck`: asks the running gateway whether it is ready, or only whether it runs."""

from http import HTTPStatus
from pathlib import Path

import click

from sealgate.cli.admin import GoneError, admin_address, asking
from sealgate.cli.frame import config_option
from sealgate.machine.terminal import leave

_PATIENCE_S = 5.0


@click.command("healthcheck")
@config_option
@click.option("--live", is_flag=True, help="Ask only whether it runs: for checks that restart it.")
def command(config_file: Path | None, *, live: bool) -> None:
    """Exit with 0 if the running gateway is ready, else with 1 and the reasons on stderr.

    It asks /-/ready (with --live, /-/healthy) at admin.tcp of the gateway's configuration, or at the default
    address if no configuration is found.
    """
    word = "healthy" if live else "ready"
    usual = (HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE)
    try:
        with asking(admin_address(config_file), f"/-/{word}", _PATIENCE_S, usual) as reply:
            text = reply.read().decode(errors="replace")
    except GoneError as error:
        leave(str(error))
    if reply.status == HTTPStatus.OK:
        click.echo(word)
        return
    for reason in text.splitlines():
        click.echo(f"sealgate: {reason}", err=True)
    raise click.exceptions.Exit(1)
