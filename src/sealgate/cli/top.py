"""`sealgate top`: the live page's figures in a terminal, from the same stream."""

import json
from collections.abc import Generator, Iterator
from contextlib import closing
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sealgate.cli.causes import plain_cause
from sealgate.cli.frame import config_option, leave
from sealgate.cli.own_address import admin_address, own_address

if TYPE_CHECKING:
    from sealgate.config import Address

_PATIENCE_S = 10.0  # pictures come twice a second
_OTHER_WAY = ", or use --admin HOST:PORT"


class GoneError(Exception):
    """The gateway does not answer, or not as one. `str()` is one line: cause and fix."""


@click.command("top")
@config_option
@click.option("--once", is_flag=True, help="Print one picture and end.")
@click.option("--json", "as_json", is_flag=True, help="Print each picture as a line of JSON.")
@click.option("--admin", metavar="HOST:PORT", help="The gateway's admin address (admin.tcp).")
def command(config_file: Path | None, admin: str | None, *, once: bool, as_json: bool) -> None:
    """Show how close the limit is, who spends it, what waits, the clock, and what went wrong.

    It reads the admin address of the configuration that the gateway runs with, or the default one where there
    is none, until Ctrl-C.
    """
    address, host_name = _given(admin) if admin else admin_address(config_file, _OTHER_WAY)
    try:
        with closing(pictures(address, host_name)) as stream:
            _show(stream, once=once, as_json=as_json)
    except GoneError as error:
        leave(str(error))
    except KeyboardInterrupt:
        pass


def _given(admin: str) -> tuple["Address", str]:
    """Return an address that was given, so that no configuration is needed."""
    from sealgate.config.address import parse_address

    try:
        address = parse_address(admin)
    except ValueError as error:
        raise click.BadParameter(f"{admin} {error}", param_hint="--admin") from None
    return address, address.host


def _show(stream: Iterator[dict[str, Any]], *, once: bool, as_json: bool) -> None:
    from rich.console import Console
    from rich.live import Live

    from sealgate.cli.tables import drawn
    from sealgate.cli.top_screen import screen

    if as_json:
        for picture in stream:
            click.echo(json.dumps(picture))
            if once:
                return
        return
    if once:
        click.echo(drawn(screen(next(stream))))
        return
    console = Console()
    with Live(console=console, screen=console.is_terminal, auto_refresh=False) as view:
        for picture in stream:
            view.update(screen(picture), refresh=True)


def pictures(address: "Address", host_name: str) -> Generator[dict[str, Any], None, None]:
    """Yield each picture as it comes, the first at once. Raises GoneError."""
    connection = HTTPConnection(own_address(address.host), address.port, timeout=_PATIENCE_S)
    try:
        connection.request("GET", "/events", headers={"Host": host_name})
        reply = connection.getresponse()
        if reply.status != HTTPStatus.OK:
            raise GoneError(f"{address} answers {reply.status} to /events; is it the gateway's admin.tcp?")
        yield from _events(reply)
    except (OSError, HTTPException) as error:
        cause = plain_cause(error) if isinstance(error, OSError) else "it does not speak HTTP"
        raise GoneError(f"no gateway answers at {address}: {cause}; start it with `sealgate serve`") from None
    finally:
        connection.close()
    raise GoneError("the gateway has ended")


def _events(reply: HTTPResponse) -> Iterator[dict[str, Any]]:
    """Read an event stream: each `data:` line is one whole document here."""
    for line in reply:
        if line.startswith(b"data: "):
            picture: dict[str, Any] = json.loads(line.removeprefix(b"data: "))["now"]
            yield picture
