"""`sealgate healthcheck`: asks the running gateway whether it is ready, or only whether it runs."""

from contextlib import closing
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sealgate.cli.control import admin_address
from sealgate.cli.frame import config_option
from sealgate.machine.terminal import plain_cause
from sealgate.observe.running import tcp_connection

if TYPE_CHECKING:
    from sealgate.config import Address

_TIMEOUT_S = 5.0


@click.command("healthcheck")
@config_option
@click.option("--live", is_flag=True, help="Ask only whether it runs: for checks that restart it.")
def command(config_file: Path | None, *, live: bool) -> None:
    """Exit with 0 if the running gateway is ready, else with 1 and the reasons on stderr.

    It asks /-/ready (with --live, /-/healthy) at admin.tcp of the gateway's configuration, or at the default
    address if no configuration is found.
    """
    word = "healthy" if live else "ready"
    reasons = _reasons(*admin_address(config_file), f"/-/{word}")
    for reason in reasons:
        click.echo(f"sealgate: {reason}", err=True)
    if reasons:
        raise click.exceptions.Exit(1)
    click.echo(word)


def _reasons(address: "Address", host_name: str, path: str) -> list[str]:
    """Return why the answer is not yes, nothing if it is."""
    try:
        status, text = _ask(address, host_name, path)
    except (OSError, HTTPException) as error:
        return [f"no gateway answers at {address}: {_cause(error)}"]
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        return text.splitlines()
    is_yes = status == HTTPStatus.OK
    return [] if is_yes else [f"{address} answers {status} to {path}; is it the gateway's admin.tcp?"]


def _cause(error: OSError | HTTPException) -> str:
    """Return cause and fix in plain words."""
    if isinstance(error, TimeoutError):
        return f"no reply within {_TIMEOUT_S:g} s; see its log, or restart it"
    if isinstance(error, HTTPException):
        return "what listens there does not speak HTTP; is it the gateway's admin.tcp?"
    return f"{plain_cause(error)}; start it with `sealgate serve`"


def _ask(address: "Address", host_name: str, path: str) -> tuple[int, str]:
    with closing(tcp_connection(address, _TIMEOUT_S)) as connection:
        connection.request("GET", path, headers={"Host": host_name})
        reply = connection.getresponse()
        return reply.status, reply.read().decode(errors="replace")
