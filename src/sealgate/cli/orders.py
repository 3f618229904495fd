"""`sealgate orders`: list and settle the orders in doubt in the journal, with the gateway running or not."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sealgate.cli.frame import config_option, json_option
from sealgate.machine.nearest import did_you_mean
from sealgate.machine.terminal import leave, leave_with_error

if TYPE_CHECKING:
    from rich.text import Text

    from sealgate.orders.doubts import Doubt

_HEADINGS = (
    "request id",
    "bot\nexchange\nkey",
    "order\nIdempotency-Key",
    "sent, UTC\n(exchange)",
    "fence, UTC\n(exchange)",
    "times",
)


@click.command("orders")
@config_option
@click.option(
    "--settle",
    "request_id",
    metavar="REQUEST_ID",
    help="Take this order off the list: you have looked it up.",
)
@click.option("--settle-all", is_flag=True, help="Take all orders off the list: you have looked them up.")
@click.option("--exchange", metavar="NAME", help="Only orders to this exchange. Default: all exchanges.")
@json_option
def command(
    config_file: Path | None,
    request_id: str | None,
    exchange: str | None,
    *,
    settle_all: bool,
    as_json: bool,
) -> None:
    """List orders in doubt: sent, but without a known result. The list survives a crash.

    Look each up at the exchange, then take it off with --settle. "Sent" and the fence are the exchange's
    time, in UTC. After the fence it no longer admits the order; until then it may still execute it. Side,
    size, symbol, price and, after "as", the client order id are those of the order that was sent. The
    Idempotency-Key is the bot's own name for the order, which the exchange never sees. Settling an order does
    not free its Idempotency-Key: to send the order again, the bot needs a new key. Orders to an exchange that
    is no longer configured are listed, too.
    """
    if request_id is not None and settle_all:
        raise click.UsageError("--settle and --settle-all cannot be combined.")
    from sealgate.config import load_config
    from sealgate.machine.system import System
    from sealgate.orders.journal.journal import orders_in_doubt

    config = load_config(config_file)
    file = config.journal.file
    if file is None:
        leave_with_error(
            "journal.file is not set, so no order is recorded; name a file there and restart the gateway"
        )
    with orders_in_doubt(file) as in_doubt:
        doubts = in_doubt.doubts if exchange is None else _at(in_doubt.doubts, exchange, config.served)
        if request_id is not None or settle_all:
            shown = doubts if request_id is None else _find(doubts, request_id)
            in_doubt.settle(shown, int(System().wall() * 1000))
            text = "\n".join(map(_settled, shown))
        else:
            shown = doubts
            text = _table(shown)
    none = "no orders in doubt" if exchange is None else f"no orders in doubt at {exchange}"
    click.echo(json.dumps({"orders": [asdict(doubt) for doubt in shown]}) if as_json else text or none)


def _at(doubts: Sequence["Doubt"], exchange: str, configured: Iterable[str]) -> list["Doubt"]:
    """Return the doubts at an exchange; exit with code 2 if it has none and is not configured."""
    known = dict.fromkeys((*configured, *(doubt.exchange for doubt in doubts)))
    if exchange not in known:
        leave_with_error(f"there is no exchange {exchange}; {did_you_mean(exchange, known)}")
    return [doubt for doubt in doubts if doubt.exchange == exchange]


def _settled(doubt: "Doubt") -> str:
    spent = "; its Idempotency-Key stays spent: use a new one to send the order again"
    return f"settled {doubt.request_id}{spent if doubt.idempotency_key is not None else ''}"


def _find(doubts: Sequence["Doubt"], request_id: str) -> list["Doubt"]:
    """Return the order with this request id; exit with code 1 if there is none, or more than one."""
    by_id = [doubt for doubt in doubts if doubt.id == request_id]
    found = by_id or [doubt for doubt in doubts if doubt.request_id == request_id]
    if len(found) == 1:
        return found
    if not found:
        leave(f"no order in doubt has the request id {request_id}")
    ids = ", ".join(doubt.id for doubt in found)
    return leave(f"{len(found)} orders have the request id {request_id}; give an ID: {ids}")


def _table(doubts: Sequence["Doubt"]) -> str:
    """Return a table that folds long ids and never cuts them (the JSON has them whole); "" if empty."""
    from sealgate.cli.tables import drawn, plain_table

    if not doubts:
        return ""
    table = plain_table(*_HEADINGS)
    for column in table.columns:
        column.overflow = "fold"
    shared = Counter(doubt.request_id for doubt in doubts)
    for doubt in doubts:
        table.add_row(*_row(doubt, is_shared=shared[doubt.request_id] > 1))
    return drawn(table)


def _row(doubt: "Doubt", *, is_shared: bool) -> Iterator["Text"]:
    """Yield the cells; the gateway's own id is shown only if a bot used its request id twice."""
    from rich.text import Text

    yield Text(f"{doubt.request_id}\nID {doubt.id}" if is_shared else doubt.request_id)
    yield Text(f"{doubt.bot}\n{doubt.exchange}\n{doubt.key}")
    order = filter(None, (doubt.call, doubt.terms_words, doubt.idempotency_key or "-"))
    yield Text("\n".join(order))
    yield Text(_time(doubt.sent_ms))
    yield Text(_time(doubt.fence_ms) if doubt.fence_ms else "not known")
    yield Text(str(doubt.attempts))


def _time(at_ms: int) -> str:
    """Return date and time of day in UTC, one above the other."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d\n%H:%M:%S.%f")[:-3]
