"""An order as a row and back, and rows that no gateway wrote."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from gateway.journal.test_orders import DONE, KEEPING, ORDER, RECENT, REPLY, leave_behind, now_ms
from sealgate.core.outcome import LARGEST_BODY, BotReply, Conclusion, Ending
from sealgate.gateway.journal import JournalError, OrderJournal
from sealgate.gateway.journal.file import ORDERS, connect
from sealgate.gateway.journal.orders import Row, is_sent, is_unknown, read_reply, sent_row, settled_row
from sealgate.gateway.platform.system import System

KEYLESS = ORDER._replace(idempotency_key=None, digest=None)
REFUSED = Ending(Conclusion.REFUSED, ORDER.fence_ms, REPLY)
HEAD = '["Cre\\udcffated", [["Content-Type", "text/\\u00e9"]]]'


def cells(row: Row, *names: str) -> tuple[object, ...]:
    return tuple(row[list(ORDERS).index(name)] for name in names)


def test_what_is_about_to_be_sent_has_no_ending() -> None:
    row = sent_row(ORDER)
    assert row[: len(ORDER)] == tuple(ORDER)
    assert cells(row, "state", "status", "settled_ms", "head", "body") == ("sent", None, None, None, None)
    assert (is_sent(row), is_unknown(row)) == (True, False)


def large(size: int) -> Ending:
    return Ending(Conclusion.DONE, 0, BotReply(200, "OK", (), bytes(size)))


KEPT = {
    "answered": (ORDER, DONE, ("done", 201, "d" * 64, HEAD, b"\x00\xff")),
    "without a key": (KEYLESS, DONE, ("done", 201, None, None, None)),
    "as large as is kept": (
        ORDER,
        large(LARGEST_BODY),
        ("done", 200, "d" * 64, '["OK", []]', bytes(1 << 18)),
    ),
    "larger": (ORDER, large(LARGEST_BODY + 1), ("done", 200, "d" * 64, None, None)),
    "lost": (ORDER, Ending(Conclusion.UNKNOWN), ("unknown", None, "d" * 64, None, None)),
    "never sent": (ORDER, Ending(Conclusion.NOT_SENT), ("not_sent", None, None, None, None)),
    "refused": (ORDER, REFUSED, ("refused", 201, "d" * 64, HEAD, b"\x00\xff")),
    "refused by the gateway": (
        ORDER,
        Ending(Conclusion.REFUSED, 0, REPLY, is_own=True),
        ("refused", 201, None, None, None),
    ),
}


@pytest.mark.parametrize(("order", "ending", "kept"), KEPT.values(), ids=KEPT)
def test_what_is_kept_of_an_order_that_ended(order: object, ending: Ending, kept: tuple[object, ...]) -> None:
    """The digest goes with the key: a bot that may send it again is not held to what it sent first."""
    assert isinstance(order, type(ORDER))
    row = settled_row(order, ending, 7)
    assert cells(row, "state", "status", "digest", "head", "body") == kept
    assert cells(row, "settled_ms") == (7,)
    assert is_unknown(row) == (ending.conclusion is Conclusion.UNKNOWN)
    assert not is_sent(row)


def test_a_reply_comes_back_with_its_bytes() -> None:
    assert read_reply(201, HEAD, b"\x00\xff") == REPLY


BAD: dict[str, tuple[str, object]] = {
    "no such state": ("state", "odd"),
    "no JSON": ("head", "OK"),
    "no list": ("head", "{}"),
    "too short": ("head", '["OK"]'),
    "a phrase that is none": ("head", "[5, []]"),
    "fields that are none": ("head", '["OK", [[1, 2]]]'),
    "a field alone": ("head", '["OK", [["X-A"]]]'),
    "text that is no latin-1": ("head", json.dumps(["OK", [["X-A", "€"]]])),
    "too deep": ("head", "[" * 100_000),
    "no UTF-8": ("head", b"\xff"),
    "a head without a body": ("body", None),
    "a head without a status": ("status", None),
}


@pytest.mark.parametrize(("column", "value"), BAD.values(), ids=BAD)
async def test_a_row_that_is_damaged_is_told_like_any_damage(
    tmp_path: Path, column: str, value: object
) -> None:
    """SQLite's own check sees nothing there: the bytes are only other ones."""
    file = tmp_path / "journal.db"
    leave_behind(file, settled_row(RECENT, DONE, now_ms()))
    kind = "CAST(? AS TEXT)" if value == b"\xff" else "?"
    with closing(connect(file)) as database, database:
        database.execute(f"UPDATE orders SET {column} = {kind}", (value,))  # noqa: S608 - a test's
    with pytest.raises(JournalError) as refused:
        OrderJournal(file, KEEPING, System())
    assert str(refused.value) == (
        f"journal.file {file}: damaged; move it away, and look up the latest orders at the exchange"
    )
