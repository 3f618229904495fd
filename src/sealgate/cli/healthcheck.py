"""`sealgate healthcheck`: ask the running gateway whether it is ready, or only whether it is alive."""

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
@click.option(
    "--live", is_flag=True, help="Check only that the process is alive (liveness); without it, readiness."
)
@click.option("--exchange", metavar="NAME", help="Check only this exchange, if there are several.")
def command(config_file: Path | None, exchange: str | None, *, live: bool) -> None:
    """Exit with 0 if the running gateway is ready, else with 1 and the reasons on stderr.

    With several exchanges, it is enough that one is ready. The command reads /-/ready (with --live,
    /-/healthy) at admin.tcp of the gateway's configuration, or at the default address if there is no
    configuration.
    """
    if live and exchange is not None:
        raise click.UsageError(
            "--live is about the process, --exchange about one exchange: give only one of them"
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
