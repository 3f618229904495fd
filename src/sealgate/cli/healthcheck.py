"""`sealgate healthcheck`: asks the running gateway whether it is ready, or only whether it runs."""

from http import HTTPStatus
from pathlib import Path
from urllib.parse import quote

import click

from sealgate.cli.admin import GoneError, admin_address, asking
from sealgate.cli.frame import config_option
from sealgate.machine.terminal import leave

_PATIENCE_S = 5.0


@click.command("healthcheck")
@config_option
@click.option("--live", is_flag=True, help="Ask only whether it runs: for checks that restart it.")
@click.option("--exchange", metavar="NAME", help="Ask whether this exchange is ready, of several.")
def command(config_file: Path | None, exchange: str | None, *, live: bool) -> None:
    """Exit with 0 if the running gateway is ready, else with 1 and the reasons on stderr.

    Of several exchanges, one that is ready is enough. It asks /-/ready (with --live, /-/healthy) at admin.tcp
    of the gateway's configuration, or at the default address if no configuration is found.
    """
    if live and exchange is not None:
        raise click.UsageError(
            "--live asks about the process, --exchange about an exchange: give one of them"
        )
    word = "healthy" if live else "ready"
    path = f"/-/{word}" if exchange is None else f"/-/{word}?exchange={quote(exchange, safe='')}"
    usual = (HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.NOT_FOUND)
    try:
        with asking(admin_address(config_file), path, _PATIENCE_S, usual) as reply:
            text = reply.read().decode(errors="replace")
    except GoneError as error:
        leave(str(error))
    if reply.status == HTTPStatus.OK:
        click.echo(word)
        return
    for reason in text.splitlines():
        click.echo(f"sealgate: {reason}", err=True)
    raise click.exceptions.Exit(1)
