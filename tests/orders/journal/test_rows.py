"""What a row says of an order that was sent, and of how it ended; what it is read back as."""

import json

import pytest

from sealgate.orders.idempotency import Kept, Name
from sealgate.orders.journal.ages import Ages
from sealgate.orders.journal.rows import (
    Ended,
    Order,
    exchange_of,
    is_sent,
    is_unknown,
    kept_body,
    read_kept,
    sent_row,
    settled_row,
)
from sealgate.orders.journal.schema import ORDER_COLUMNS
from sealgate.orders.outcome import LARGEST_BODY, BotReply, Conclusion, Ending
from sealgate.venues.routes import Lane

ORDER = Order(
    *("a1-1", "mine", "grid", "spot", "main", "POST", "/order", Lane.ORDER, "/v1/trade/order?x=1", "k-1"),
    *("d" * 64, 1_790_000_000_000, 1_790_000_005_000, 1, 1_790_000_000_012, 0, "0", b"{}"),
)
KEYLESS = ORDER._replace(idempotency_key=None, digest=None)
REPLY = BotReply(201, "Cre\udcffated", ((b"Content-Type", b"text/\xe9"),), b"\x00\xff")
LARGEST, TOO_LARGE = (BotReply(200, "OK", (), bytes(size)) for size in (LARGEST_BODY, LARGEST_BODY + 1))


def fields(order: Order, ending: Ending | None) -> dict[str, object]:
    row = sent_row(order) if ending is None else settled_row(order, ending, 7000)
    return dict(zip(ORDER_COLUMNS, row, strict=True))


def test_what_is_about_to_be_sent_is_written_whole() -> None:
    row = fields(ORDER, None)
    assert row | ORDER._asdict() == row
    assert [row[name] for name in ("state", "status", "settled_ms", "head", "body")] == ["sent"] + [None] * 4
    assert is_sent(sent_row(ORDER))
    assert not is_unknown(sent_row(ORDER))


@pytest.mark.parametrize("conclusion", Conclusion)
def test_what_was_sent_is_kept_only_while_nobody_knows_what_became_of_it(conclusion: Conclusion) -> None:
    row = fields(ORDER, Ending(conclusion, ORDER.fence_ms, REPLY))
    assert (row["state"], row["status"], row["settled_ms"]) == (conclusion, 201, 7000)
    is_doubt = conclusion is Conclusion.UNKNOWN
    assert row["sent_body"] == (b"{}" if is_doubt else None)
    assert is_unknown(settled_row(ORDER, Ending(conclusion), 0)) == is_doubt


def test_a_row_tells_the_exchange_of_its_order() -> None:
    assert exchange_of(sent_row(ORDER._replace(exchange="perp"))) == "perp"


def test_a_body_that_is_too_large_for_one_order_is_not_kept() -> None:
    assert [kept_body(bytes(size)) is None for size in (100, 4096, 4097)] == [False, False, True]


@pytest.mark.parametrize(
    ("order", "reply", "is_kept"),
    [(ORDER, REPLY, True), (KEYLESS, REPLY, False), (ORDER, LARGEST, True), (ORDER, TOO_LARGE, False)],
)
def test_the_reply_is_kept_for_an_idempotency_key(order: Order, reply: BotReply, is_kept: bool) -> None:
    row = fields(order, Ending(Conclusion.DONE, 0, reply))
    assert (row["head"] is not None, row["body"]) == (is_kept, reply.body if is_kept else None)


def test_a_key_that_may_be_used_again_leaves_no_digest() -> None:
    assert fields(ORDER, Ending(Conclusion.NOT_SENT))["digest"] is None
    assert fields(ORDER, Ending(Conclusion.REFUSED, is_own=True))["digest"] is None
    assert fields(ORDER, Ending(Conclusion.REFUSED, 0, REPLY))["digest"] == ORDER.digest


READ = (
    "bot",
    "exchange",
    "idempotency_key",
    "digest",
    "state",
    "fence_ms",
    "status",
    "head",
    "body",
    "settled_ms",
)


def ended(row: dict[str, object]) -> Ended:
    return tuple(row[name] for name in READ)  # type: ignore[return-value]


@pytest.mark.parametrize("reply", [REPLY, LARGEST, None], ids=["small", "largest", "none"])
def test_what_is_kept_is_read_back(reply: BotReply | None) -> None:
    ending = Ending(Conclusion.DONE, ORDER.fence_ms, reply)
    assert read_kept(ended(fields(ORDER, ending)), 9000) == Kept(
        Name("grid", "spot", "k-1"), "d" * 64, ending, 2.0
    )


@pytest.mark.parametrize("state", ["sent", "looked_up", "unknown"])
def test_what_nobody_heard_of_is_unknown(state: str) -> None:
    row = fields(ORDER, Ending(Conclusion.UNKNOWN, ORDER.fence_ms)) | {"state": state, "settled_ms": 9500}
    assert read_kept(ended(row), 9000) == Kept(
        Name("grid", "spot", "k-1"), "d" * 64, Ending(Conclusion.UNKNOWN, ORDER.fence_ms), 0.0
    )


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
    "a head without a body": ("body", None),
    "a head without a status": ("status", None),
}


@pytest.mark.parametrize(("name", "value"), BAD.values(), ids=BAD)
def test_a_row_that_no_gateway_wrote_is_damaged(name: str, value: object) -> None:
    """SQLite's own check sees nothing there: the bytes are only other ones."""
    row = fields(ORDER, Ending(Conclusion.DONE, 0, REPLY)) | {name: value}
    with pytest.raises(ValueError, match="a row of the orders is damaged"):
        read_kept(ended(row), 9000)


def test_time_for_which_gateways_ran_makes_orders_old() -> None:
    first = Ages(wall=1000.0, now=50.0, newest=None)
    assert first.at(now=50.0) == 1000.0
    assert first.at(now=60.0) == 1010.0
    assert Ages(wall=99_000.0, now=7.0, newest=1010.0).at(now=17.0) == 1020.0
