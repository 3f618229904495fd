"""`sealgate check`: what is wrong with the set-up, and what to do about it (diagnose/check.py)."""

import os
from pathlib import Path

import click

from sealgate.cli.frame import config_option, json_option


@click.command("check")
@config_option
@click.option("--offline", "is_offline", is_flag=True, help="Stop before the network.")
@click.option(
    "--path", metavar="PATH", help="What to read with each key.  [default: the venue's own signed read]"
)
@click.option(
    "--explain", is_flag=True, help="Show all causes, most likely first, then where each setting comes from."
)
@json_option
def command(
    config_file: Path | None, path: str | None, *, is_offline: bool, explain: bool, as_json: bool
) -> None:
    """Check configuration, secrets, files, addresses, clock and keys; say what is wrong and how to fix it.

    It changes nothing and sends only reads: three for the time, one without a signature, and one for each key
    and session token. After a 429 nothing more is sent. The gateway may be running. Run this as the user that
    the gateway runs as.

    Exit code 0: nothing failed; 1: something did; 2: the configuration cannot be used.
    """
    from sealgate.cli.report import Report
    from sealgate.diagnose.check import CheckOptions, check

    report = Report(as_json=as_json, explains=explain)
    code = check(CheckOptions(config_file, path, is_offline), report, os.environ)
    report.end()
    raise click.exceptions.Exit(code)
