"""`sealgate check`: find faults of the set-up, and say how to fix them (diagnose/check.py)."""

import json
import os
from pathlib import Path

import click

from sealgate.cli.frame import config_option, exchange_option, json_option
from sealgate.machine.findings import Finding


@click.command("check")
@config_option
@click.option("--offline", is_flag=True, help="Check only what needs no network.")
@click.option(
    "--streams", "has_streams", is_flag=True, help="Also log in on a stream (WebSocket) with each key."
)
@click.option(
    "--path",
    metavar="PATH",
    help="The path to read with each key, as a test.  [default: the venue's own signed read]",
)
@click.option(
    "--explain", is_flag=True, help="Show all causes, most likely first, then where each setting comes from."
)
@exchange_option("Check only this exchange.  [default: all]")
@json_option
def command(  # noqa: PLR0913 - one for each option
    config_file: Path | None,
    path: str | None,
    exchange_name: str | None,
    *,
    offline: bool,
    has_streams: bool,
    explain: bool,
    as_json: bool,
) -> None:
    """Check configuration, secrets, files, addresses, clock and keys; say what is wrong and how to fix it.

    It changes nothing and sends only reads. Each exchange gets three for the time, one without a signature,
    and one for each key and session token. With --streams it also opens a stream with each key, logs in and
    closes it. After a 429 it sends nothing more to that exchange. The gateway may be running. Run this as the
    user that the gateway runs as.

    Exit code 0: nothing failed; 1: something did; 2: the configuration cannot be used.
    """
    from sealgate.cli.report import as_document, closing_lines, finding_lines, line_width
    from sealgate.diagnose.check import check

    def show(finding: Finding, name_length: int) -> None:
        if not as_json:
            lines = finding_lines(finding, line_width(), explains=explain, name_length=name_length)
            click.echo("\n".join(lines))

    checked = check(
        config_file,
        path,
        os.environ,
        show,
        is_offline=offline,
        has_streams=has_streams,
        exchange_name=exchange_name,
    )
    if as_json:
        click.echo(json.dumps(as_document(checked, explains=explain)))
    else:
        click.echo("\n".join(closing_lines(checked, explains=explain)))
    raise click.exceptions.Exit(checked.code)
