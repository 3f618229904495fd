"""`sealgate orders`: the orders in doubt, from the journal's file; the gateway may run or not."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sealgate.cli.frame import config_option, fail

if TYPE_CHECKING:
    from sealgate.core.doubts import Doubt
    from sealgate.gateway.journal.desk import SettlingDesk

_HEADINGS = ("REQUEST ID", "ID", "BOT", "KEY", "ORDER", "SENT", "NOT AFTER", "TIMES")


@click.command("orders")
@config_option
@click.option("--settle", "request_id", metavar="REQUEST_ID", help="Take this one off, once looked up.")
@click.option("--settle-all", is_flag=True, help="Take all of them off, once looked up.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(config_file: Path | None, request_id: str | None, *, settle_all: bool, as_json: bool) -> None:
    """List orders in doubt: they were sent, and no answer is known, after a crash too.

    Look each up at the exchange, then take it off with --settle. NOT AFTER is the exchange's time from which
    on it can no longer be admitted; until then it may still be executed. Times are UTC.
    """
    if request_id is not None and settle_all:
        raise click.UsageError("--settle and --settle-all exclude each other.")
    from sealgate.config import load_config  # noqa: PLC0415 - `sealgate --help` must stay light
    from sealgate.gateway.journal.desk import settling_desk  # noqa: PLC0415

    file = load_config(config_file).journal.file
    if file is None:
        fail("journal.file is not set, so no order is recorded; name a file there and restart the gateway")
    with settling_desk(file) as desk:
        if request_id is not None or settle_all:
            click.echo(_settle(desk, request_id, as_json=as_json))
        else:
            click.echo(_json(desk.doubts) if as_json else _table(desk.doubts))


def _settle(desk: "SettlingDesk", request_id: str | None, *, as_json: bool) -> str:
    chosen = desk.doubts if request_id is None else _find(desk.doubts, request_id)
    desk.settle(chosen)
    if as_json:
        return _json(chosen)
    return "\n".join(f"settled {doubt.request_id}" for doubt in chosen) or "no orders in doubt"


def _find(doubts: Sequence["Doubt"], request_id: str) -> list["Doubt"]:
    """Return the one order meant; leave with exit code 1 where there is none or more than one."""
    by_id = [doubt for doubt in doubts if doubt.id == request_id]
    found = by_id or [doubt for doubt in doubts if doubt.request_id == request_id]
    if len(found) == 1:
        return found
    if found:
        ids = ", ".join(doubt.id for doubt in found)
        click.echo(
            f"sealgate: {len(found)} orders have the request id {request_id}; give an ID: {ids}", err=True
        )
    else:
        click.echo(f"sealgate: no order in doubt has the request id {request_id}", err=True)
    raise click.exceptions.Exit(1)


def _json(doubts: Sequence["Doubt"]) -> str:
    return json.dumps({"orders": [asdict(doubt) for doubt in doubts]})


def _table(doubts: Sequence["Doubt"]) -> str:
    """Return aligned columns: nothing is cut, so that ids can be copied and lines searched."""
    if not doubts:
        return "no orders in doubt"
    rows = [_HEADINGS, *map(_row, doubts)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _row(doubt: "Doubt") -> tuple[str, ...]:
    order = f"{doubt.method} {doubt.target}"
    sent, fence = _time(doubt.sent_ms), _time(doubt.fence_ms)
    return (doubt.request_id, doubt.id, doubt.bot, doubt.key, order, sent, fence, str(doubt.attempts))


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
