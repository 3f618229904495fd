"""`sealgate keys`: list and audit API keys, read with their session tokens; make new private keys."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click
from rich.console import RenderableType
from rich.text import Text

from sealgate.cli.frame import Program, config_option, exchange_option, json_option
from sealgate.cli.tables import drawn, plain_table
from sealgate.config import load_config
from sealgate.diagnose.arguments import chosen_exchange
from sealgate.diagnose.key_reading import Account, read_account
from sealgate.keys.key_records import KeyState, ListedKey
from sealgate.machine.findings import Level, span
from sealgate.machine.loop import run
from sealgate.machine.terminal import shortened

_key_option = click.option(
    "--key",
    "alias",
    metavar="ALIAS",
    help="Use only this API key's session.  [default: each key that has one]",
)
_exchange_option = exchange_option(
    "An exchange of the configuration.  [default: the only one, or the only one that lists keys]"
)
_COLOURS = {Level.FAIL: "bold red", Level.WARN: "yellow"}


_COMMANDS = {
    "list": ("sealgate.cli.keys:list_command", "List the account's API keys."),
    "audit": ("sealgate.cli.keys:audit_command", "Find problems of the account's API keys."),
    "new": ("sealgate.cli.new_key", "Make a private key, and print the public key for the exchange."),
}


@click.group("keys", cls=Program, table=_COMMANDS)
def command() -> None:
    """List the API keys at the exchange, find their problems, and make new keys."""


@click.command("list")
@config_option
@_exchange_option
@_key_option
@json_option
def list_command(
    config_file: Path | None, exchange_name: str | None, alias: str | None, *, as_json: bool
) -> None:
    """List the account's API keys: permissions, whitelist, expiry, age, use. HERE is the alias in keys.*."""
    account = _account(config_file, exchange_name, alias)
    document = {"exchange": account.exchange, "keys": _keys(account)}
    click.echo(json.dumps(document) if as_json else list_text(account))


@click.command("audit")
@config_option
@_exchange_option
@_key_option
@click.argument("api_key", required=False)
@click.option(
    "--limit",
    type=click.IntRange(1, 100),
    metavar="N",
    help="The number of entries to show of the key's audit log.  [default: 20]",
)
@json_option
def audit_command(  # noqa: PLR0913 - one for each option
    config_file: Path | None,
    exchange_name: str | None,
    alias: str | None,
    api_key: str | None,
    limit: int | None,
    *,
    as_json: bool,
) -> None:
    """Report problems of the account's API keys, or of API_KEY alone, and then also its log.

    API_KEY is an alias under [keys], or an id that `keys list` shows. The exit code is 1 if a finding has the
    level "fail".
    """
    if limit is not None and api_key is None:
        raise click.UsageError("--limit needs API_KEY: it is about the log of one key.")

    account = _account(config_file, exchange_name, alias, api_key, limit)
    click.echo(audit_json(account) if as_json else audit_text(account))
    if any(finding.level is Level.FAIL for finding in account.findings):
        raise click.exceptions.Exit(1)


def _account(
    config_file: Path | None,
    exchange_name: str | None,
    alias: str | None,
    api_key: str | None = None,
    limit: int | None = None,
) -> Account:
    config = load_config(config_file)
    exchange = chosen_exchange(config, exchange_name, alias, suits=lambda one: bool(one.venue.key_list))
    return run(read_account(config, exchange, alias, api_key, limit))


def list_text(account: Account) -> str:
    """Return the keys as a table."""
    if not account.keys:
        return "the account has no keys"
    table = plain_table("here", "id", "label", "may", "whitelist", "expires", "age", "used")
    for column in table.columns:
        column.no_wrap = column.header != "label"  # only this column gives way on a narrow terminal
    for key in account.keys:
        table.add_row(*_row(key, account), style="" if key.record.is_active else "dim")
    return drawn(table)


def audit_text(account: Account) -> str:
    """Return the findings, and the log if one was asked for."""
    findings = plain_table("", "key", "what is wrong", "what to do")
    for finding in account.findings:
        name = account.aliases.get(finding.api_key) or shortened(finding.api_key)
        level = Text(finding.level.value, style=_COLOURS[finding.level])
        findings.add_row(level, Text(name), finding.words, finding.advice)
    parts = [drawn(findings) if account.findings else "nothing is wrong with the keys"]
    if account.log is not None:
        log = plain_table("when (UTC)", "action", "from", "details")
        for entry in account.log:
            at = entry.at and datetime.fromtimestamp(entry.at, UTC)
            when = at.strftime("%Y-%m-%d %H:%M:%S") if at else "-"
            log.add_row(when, Text(entry.action), Text(entry.ip_address), Text(entry.details))
        parts.append(drawn(log) if account.log else "the log has no entries")
    return "\n\n".join(parts)


def audit_json(account: Account) -> str:
    """Return keys, findings and log as JSON."""
    findings = [
        {"alias": account.aliases.get(finding.api_key), **asdict(finding)} for finding in account.findings
    ]
    log = account.log and [{**entry._asdict(), "at": _iso(entry.at)} for entry in account.log]
    return json.dumps(
        {"exchange": account.exchange, "keys": _keys(account), "findings": findings, "log": log}
    )


def _keys(account: Account) -> list[dict[str, object]]:
    return [
        {
            "alias": account.aliases.get(key.api_key),
            "api_key": key.api_key,
            "label": key.label,
            "permissions": key.permissions,
            "ip_whitelist": key.ip_whitelist,
            "created_at": _iso(key.created_at),
            "expires_at": _iso(key.record.expires_at),
            "last_used_at": _iso(key.last_used_at),
            "is_active": key.record.is_active,
        }
        for key in account.keys
    ]


def _row(key: ListedKey, account: Account) -> Iterator[RenderableType]:
    yield account.aliases.get(key.api_key, "-")
    yield Text(shortened(key.api_key))
    yield Text(key.label, no_wrap=True, overflow="ellipsis")
    yield Text(" ".join(key.permissions) or "-")
    yield (
        Text("\n".join(key.ip_whitelist), overflow="fold")
        if key.ip_whitelist
        else Text("anywhere", style="yellow")
    )
    yield _expiry(key, account.now)
    yield "-" if key.created_at is None else span(account.now - key.created_at)
    yield "never" if key.last_used_at is None else f"{span(account.now - key.last_used_at)} ago"


def _expiry(key: ListedKey, now: float) -> RenderableType:
    ends_at, state = key.record.expires_at, key.record.state(now)
    if state is KeyState.INACTIVE:
        return Text("revoked", style="red")
    if ends_at is None:
        return "never"
    if state is KeyState.ENDED:
        return Text(f"{span(now - ends_at)} ago", style="red")
    return Text(f"in {span(ends_at - now)}", style="yellow" if state is KeyState.ENDS_SOON else "")


def _iso(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
