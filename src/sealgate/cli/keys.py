"""`sealgate keys`: what the exchange says of the keys, read with their session tokens."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sealgate.cli.frame import config_option

if TYPE_CHECKING:
    from sealgate.cli.key_reading import Account

_key_option = click.option(
    "--key", "alias", metavar="ALIAS", help="The key whose session is used.  [default: each that has one]"
)
_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group("keys")
def command() -> None:
    """List the keys at the exchange, and see what is wrong with them."""


@command.command("list")
@config_option
@_key_option
@_json_option
def list_command(config_file: Path | None, alias: str | None, *, as_json: bool) -> None:
    """List the account's keys: permissions, whitelist, expiry, age and use. HERE is the alias in keys.*."""
    from sealgate.cli import key_screen

    account = _read(config_file, alias)
    click.echo(key_screen.list_json(account) if as_json else key_screen.list_text(account))


@command.command("audit")
@config_option
@_key_option
@click.argument("api_key", required=False)
@click.option(
    "--limit", type=click.IntRange(1, 100), metavar="N", help="How many entries of its log.  [default: 20]"
)
@_json_option
def audit_command(
    config_file: Path | None, alias: str | None, api_key: str | None, limit: int | None, *, as_json: bool
) -> None:
    """Say what is wrong with the account's keys; with API_KEY, with that one, and show its log.

    API_KEY is an alias of keys.*, or an id as `keys list` shows it. The exit code is 1 where a finding is
    "fail".
    """
    if limit is not None and api_key is None:
        raise click.UsageError("--limit needs API_KEY: it is about the log of one key.")
    from sealgate.cli import key_screen

    account = _read(config_file, alias, api_key, limit)
    click.echo(key_screen.audit_json(account) if as_json else key_screen.audit_text(account))
    if account.has_failed:
        raise click.exceptions.Exit(1)


def _read(
    config_file: Path | None, alias: str | None, api_key: str | None = None, limit: int | None = None
) -> "Account":
    from sealgate.cli.key_reading import Wanted, read_account
    from sealgate.config import load_config

    return read_account(load_config(config_file), Wanted(alias, api_key, limit))
