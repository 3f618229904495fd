"""What `sealgate keys` prints: tables for people, JSON for programs. Nothing here is secret."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from sealgate.cli.choosing import shortened
from sealgate.cli.key_reading import Account
from sealgate.cli.tables import drawn, plain_table
from sealgate.core.findings import Level
from sealgate.core.key_records import KeyState, ListedKey
from sealgate.core.spans import span

_COLOURS = {Level.FAIL: "bold red", Level.WARN: "yellow"}


def list_text(account: Account) -> str:
    """Return the keys as a table."""
    if not account.keys:
        return "the account has no keys"
    table = plain_table("here", "id", "label", "may", "whitelist", "expires", "age", "used")
    for column in table.columns:
        column.no_wrap = column.header != "label"  # the one that gives way where it is narrow
    for key in account.keys:
        table.add_row(*_row(key, account), style="" if key.record.is_active else "dim")
    return drawn(table)


def audit_text(account: Account) -> str:
    """Return the findings, and the log where one was asked for."""
    parts = [drawn(_findings(account)) if account.findings else "nothing is wrong with the keys"]
    if account.log is not None:
        parts.append(drawn(_log(account)) if account.log else "the log has no entries")
    return "\n\n".join(parts)


def list_json(account: Account) -> str:
    """Return the keys for programs."""
    return json.dumps({"keys": _keys(account)})


def audit_json(account: Account) -> str:
    """Return keys, findings and log for programs."""
    findings = [
        {"alias": account.aliases.get(finding.api_key), **asdict(finding)} for finding in account.findings
    ]
    log = account.log and [{**entry._asdict(), "at": _iso(entry.at)} for entry in account.log]
    return json.dumps({"keys": _keys(account), "findings": findings, "log": log})


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


def _findings(account: Account) -> Table:
    table = plain_table("", "key", "what is wrong", "what to do")
    for finding in account.findings:
        name = account.aliases.get(finding.api_key) or shortened(finding.api_key)
        level = Text(finding.level.value, style=_COLOURS[finding.level])
        table.add_row(level, Text(name), finding.words, finding.advice)
    return table


def _log(account: Account) -> Table:
    table = plain_table("when (UTC)", "action", "from", "details")
    for entry in account.log or ():
        when = (
            "-" if entry.at is None else datetime.fromtimestamp(entry.at, UTC).strftime("%Y-%m-%d %H:%M:%S")
        )
        table.add_row(when, Text(entry.action), Text(entry.ip_address), Text(entry.details))
    return table


def _iso(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
