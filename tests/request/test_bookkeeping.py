"""What is remembered of a request: with and without a key, with and without a journal that takes it."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from rig.admitted import BOT, signing_key, ticket
from rig.hand_host import HandHost
from sealgate.errors import Refusal
from sealgate.orders.doubts import JournalStatus
from sealgate.orders.idempotency import IdempotencyKeys, ReplayBounds, digest
from sealgate.orders.journal import Order
from sealgate.orders.outcome import Conclusion, Ending
from sealgate.orders.policy import Policy, PolicyError, Usage, Used
from sealgate.request.admission import Ticket
from sealgate.request.bookkeeping import Bookkeeping
from sealgate.request.context import RequestContext
from sealgate.request.replies import Reply
from sealgate.venues.routes import Lane

KEY = (b"Idempotency-Key", b"k-1")
SEALER = signing_key().sealer
KEYED = ticket("POST /order", KEY)
PLAIN = ticket("POST /order")
READ = ticket("GET /symbols/list", KEY)
REPLY = Reply(201, "Created", ((b"X-A", b"1"),), b"abc")
JOURNAL = JournalStatus(3, (), "the disk is full", is_refusing=True)


class Book:
    """A journal that says yes or no, and keeps what it was told."""

    def __init__(self, *, is_taking: bool = True) -> None:
        self.is_taking = is_taking
        self.cancels: list[bool] = []
        self.intents: list[Order] = []
        self.endings: list[tuple[Order, Ending]] = []
        self.is_closed = False
        self.status = JOURNAL

    async def intent(self, order: Order, *, is_cancel: bool = False) -> bool:
        self.intents.append(order)
        self.cancels.append(is_cancel)
        return self.is_taking

    def ended(self, order: Order, ending: Ending) -> None:
        self.endings.append((order, ending))

    async def close(self) -> None:
        self.is_closed = True


def books(book: Any = None, most: int = 10) -> Bookkeeping:
    return Bookkeeping(IdempotencyKeys(ReplayBounds(most, 10_000, 3600.0)), book, HandHost())


def context(
    number: int = 1,
    exchange: str = "spot",
    *,
    conclusion: Conclusion = Conclusion.NOT_SENT,
    attempts: int = 0,
) -> RequestContext:
    begun = RequestContext(f"r-{number}", 0.0, "POST")
    begun.exchange = exchange
    begun.conclusion, begun.attempts = conclusion, attempts
    return begun


@pytest.mark.parametrize("one", [PLAIN, READ], ids=["an order without a key", "a read with one"])
def test_what_leaves_no_memory(one: Ticket) -> None:
    """A read may be sent as often as a bot likes."""
    kept, first = books(), context()
    kept.begin(one, b"{}", SEALER, first)
    kept.ended(first, REPLY)
    assert kept.begin(one, b"{}", SEALER, context(2)) is None


def test_a_refusal_of_the_gateways_own_is_not_stored() -> None:
    """The exchange's 403 would be; a halt may be over when the bot asks again."""
    kept, first = books(), context(conclusion=Conclusion.REFUSED, attempts=1)
    kept.begin(KEYED, b"{}", SEALER, first)
    first.refusal = Refusal("halted", "Orders are halted.")
    kept.ended(first, Reply(503, "Service Unavailable", (), b"{}"))
    assert kept.begin(KEYED, b"{}", SEALER, context(2)) is None


def test_more_keys_under_way_than_there_may_be() -> None:
    kept = books(most=1)
    kept.begin(KEYED, b"{}", SEALER, context())
    with pytest.raises(Refusal, match="queue_full: 1 requests"):
        kept.begin(ticket("POST /order", (b"Idempotency-Key", b"k-2")), b"{}", SEALER, context(2))


async def test_an_intent_has_all_that_is_needed_to_look_it_up() -> None:
    book = Book()
    kept, begun = books(book), context(attempts=1)
    kept.begin(KEYED, b"{}", SEALER, begun)
    begun.request_id, begun.timestamp_ms, begun.fence_ms = "mine", 1000, 6000
    await kept.intent(KEYED, b"{}", begun, 1)
    (written,) = book.intents
    assert written is begun.order
    assert written == Order(
        id="r-1",
        request_id="mine",
        bot=BOT.name,
        exchange="spot",
        key="main",
        method="POST",
        route="/order",
        lane=Lane.ORDER,
        target="/v1/trade/order",
        idempotency_key="k-1",
        digest=digest("POST", "/v1/trade/order", "main", b"{}"),
        timestamp_ms=1000,
        fence_ms=6000,
        attempts=2,
        sent_ms=1,
        sent_body=b"{}",
    )


async def test_an_intent_says_what_it_is_to_its_bots_policies_and_its_end_how_much_of_that_remains() -> None:
    book, usage, used = Book(), Usage(), Used(2, Decimal("7.5"))
    for conclusion, so_far in ((Conclusion.REFUSED, "0.0"), (Conclusion.UNKNOWN, "7.5")):
        kept, begun = books(book), context(conclusion=conclusion, attempts=1)
        usage.begin(used)
        begun.used = usage, used
        await kept.intent(PLAIN, b"{}", begun, 1)
        assert (book.intents[-1].counted, book.intents[-1].notional) == (2, "7.5")
        kept.ended(begun, REPLY)
        with pytest.raises(PolicyError, match=rf"^{so_far} of 8 passed"):
            usage.check(Policy(max_notional_per_day=Decimal(8)), Used(1, Decimal(9)), 1.0)


async def test_a_body_that_is_far_too_large_for_an_order_is_not_recorded() -> None:
    book = Book()
    await books(book).intent(PLAIN, bytes(100_000), context(), 1)
    assert book.intents[0].sent_body is None


async def test_only_what_a_row_names_as_a_cancel_is_recorded_as_one() -> None:
    book = Book()
    named = ticket("DELETE /order/7")
    by_its_method = replace(named, route=replace(named.route, is_cancel=False))
    for one in (named, by_its_method, PLAIN):
        await books(book).intent(one, b"", context(), 1)
    assert (by_its_method.route.lane, book.cancels) == (Lane.CANCEL, [True, False, False])


async def test_what_cannot_be_recorded_is_not_sent_but_its_end_is_told() -> None:
    """The row may be in the queue of a disk that hangs, and must not stay there as sent."""
    book = Book(is_taking=False)
    kept, begun = books(book), context()
    with pytest.raises(Refusal, match="halted: The journal cannot be written"):
        await kept.intent(PLAIN, b"{}", begun, 1)
    kept.ended(begun, None)
    ((order, ending),) = book.endings
    assert (order, ending.conclusion) == (begun.order, Conclusion.NOT_SENT)


async def test_the_first_end_of_a_request_is_the_one_that_is_noted() -> None:
    book = Book()
    kept, begun = books(book), context(conclusion=Conclusion.DONE, attempts=1)
    await kept.intent(PLAIN, b"{}", begun, 1)
    kept.ended(begun, REPLY)
    begun.conclusion = Conclusion.UNKNOWN
    kept.ended(begun, None)
    assert book.endings == [(begun.order, Ending(Conclusion.DONE, 0, REPLY))]


IN_DOUBT = {
    "sent, and nobody knows": ("POST", Conclusion.UNKNOWN, 1, 1),
    "answered": ("POST", Conclusion.DONE, 1, 0),
    "never sent, as one in flight is told": ("POST", Conclusion.UNKNOWN, 0, 0),
    "a read": ("GET", Conclusion.UNKNOWN, 1, 0),
}


@pytest.mark.parametrize(("method", "conclusion", "attempts", "count"), IN_DOUBT.values(), ids=IN_DOUBT)
def test_without_a_journal_doubts_are_only_counted(
    method: str, conclusion: Conclusion, attempts: int, count: int
) -> None:
    kept, begun = books(), context(conclusion=conclusion, attempts=attempts)
    begun.ticket = READ if method == "GET" else PLAIN
    kept.ended(begun, None)
    by_exchange = {"spot": count} if count else {}
    assert kept.status == JournalStatus(count, (), None, is_refusing=False, by_exchange=by_exchange)


def test_a_key_is_another_one_at_another_exchange() -> None:
    kept, first, other = books(), context(), context(2, "perp", conclusion=Conclusion.DONE, attempts=1)
    assert kept.begin(KEYED, b"{}", SEALER, first) is None
    assert kept.begin(KEYED, b"{}", SEALER, other) is None
    kept.ended(other, REPLY)
    with pytest.raises(Refusal, match="in_flight"):
        kept.begin(KEYED, b"{}", SEALER, context(3))
    replayed = kept.begin(KEYED, b"{}", SEALER, context(4, "perp"))
    assert replayed is not None
    assert replayed.body == REPLY.body
