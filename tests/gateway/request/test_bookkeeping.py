"""What is remembered of a request: with and without a key, with and without a journal that takes it."""

from typing import Any

import pytest

from gateway.clock.test_kept import EPOCH, HandHost
from rig.admitted import BOT, signing_key, ticket
from sealgate.core.admission import Ticket
from sealgate.core.doubts import JournalStatus
from sealgate.core.outcome import Conclusion, Ending
from sealgate.core.replays import ReplayBounds, Replays, digest
from sealgate.core.routes import Lane
from sealgate.errors import Refusal
from sealgate.gateway.journal import Order
from sealgate.gateway.request.bookkeeping import Bookkeeping
from sealgate.gateway.request.context import RequestContext
from sealgate.gateway.request.replies import Reply

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
        self.intents: list[Order] = []
        self.endings: list[tuple[Order, Ending]] = []
        self.is_closed = False
        self.status = JOURNAL

    async def intent(self, order: Order) -> bool:
        self.intents.append(order)
        return self.is_taking

    def ended(self, order: Order, ending: Ending) -> None:
        self.endings.append((order, ending))

    async def close(self) -> None:
        self.is_closed = True


def books(book: Any = None, most: int = 10) -> Bookkeeping:
    return Bookkeeping(Replays(ReplayBounds(most, 10_000, 3600.0)), book, HandHost())


def context(
    number: int = 1, *, conclusion: Conclusion = Conclusion.NOT_SENT, attempts: int = 0
) -> RequestContext:
    begun = RequestContext(f"r-{number}", 0.0, "POST")
    begun.conclusion, begun.attempts = conclusion, attempts
    return begun


@pytest.mark.parametrize("one", [PLAIN, READ], ids=["no key", "a read"])
def test_what_leaves_no_memory(one: Ticket) -> None:
    """A read with a key may be sent as often as it likes."""
    kept, first = books(), context()
    assert kept.begin(one, b"{}", SEALER, first) is None
    kept.ended(first, REPLY)
    assert kept.begin(one, b"{}", SEALER, context(2)) is None
    assert (first.name, first.digest) == (None, None)


def test_the_same_again_gets_the_first_reply_and_its_fence() -> None:
    kept, first, again = books(), context(conclusion=Conclusion.DONE), context(2)
    assert kept.begin(KEYED, b"{}", SEALER, first) is None
    first.fence_ms = 7000
    kept.ended(first, REPLY)
    assert kept.begin(KEYED, b"{}", SEALER, again) == Reply(
        201, "Created", ((b"X-A", b"1"), (b"X-Gateway-Replayed", b"true")), b"abc"
    )
    assert (again.conclusion, again.fence_ms, again.name) == (Conclusion.DONE, 7000, None)


def test_the_same_while_it_is_under_way_learns_the_fence() -> None:
    kept, first, again = books(), context(), context(2)
    kept.begin(KEYED, b"{}", SEALER, first)
    first.fence_ms = 7000
    kept.signed(first)
    with pytest.raises(Refusal, match="in_flight: "):
        kept.begin(KEYED, b"{}", SEALER, again)
    assert (again.conclusion, again.fence_ms) == (Conclusion.UNKNOWN, 7000)


def test_nothing_is_signed_for_who_has_no_key() -> None:
    books().signed(context())


def test_the_same_key_for_something_else() -> None:
    kept = books()
    kept.begin(KEYED, b"{}", SEALER, context())
    with pytest.raises(Refusal, match="key_reused: "):
        kept.begin(KEYED, b'{"size": 2}', SEALER, context(2))


def test_more_keys_under_way_than_there_may_be() -> None:
    kept = books(most=1)
    kept.begin(KEYED, b"{}", SEALER, context())
    with pytest.raises(Refusal, match="queue_full: 1 requests"):
        kept.begin(ticket("POST /order", (b"Idempotency-Key", b"k-2")), b"{}", SEALER, context(2))


def test_a_reply_that_was_lost_is_told_as_such() -> None:
    """The key is spent: whoever hung up, or whose reply broke off, must look the order up."""
    kept, again = books(), context(2)
    first = context(conclusion=Conclusion.UNKNOWN, attempts=1)
    kept.begin(KEYED, b"{}", SEALER, first)
    kept.ended(first, None)
    with pytest.raises(Refusal, match="upstream_broken: "):
        kept.begin(KEYED, b"{}", SEALER, again)
    assert again.conclusion is Conclusion.UNKNOWN


def test_a_refusal_of_the_gateways_own_is_not_stored() -> None:
    """The exchange's 403 would be; the halt may be over when the bot asks again."""
    kept, first = books(), context(conclusion=Conclusion.REFUSED, attempts=1)
    kept.begin(KEYED, b"{}", SEALER, first)
    first.refusal = Refusal("halted", "Orders are halted.")
    kept.ended(first, Reply(503, "Service Unavailable", (), b"{}"))
    assert kept.begin(KEYED, b"{}", SEALER, context(2)) is None


@pytest.mark.parametrize(
    ("book", "one", "must"),
    [(None, PLAIN, False), (Book(), PLAIN, True), (Book(), READ, False)],
    ids=["no journal", "an order", "a read"],
)
def test_what_must_be_recorded(book: Book | None, one: Ticket, *, must: bool) -> None:
    assert books(book).must_record(one) is must


async def test_an_intent_has_all_that_is_needed_to_look_it_up() -> None:
    book = Book()
    kept, begun = books(book), context(attempts=1)
    kept.begin(KEYED, b"{}", SEALER, begun)
    begun.request_id, begun.timestamp_ms, begun.fence_ms = "mine", 1000, 6000
    await kept.intent(KEYED, b"{}", begun)
    (written,) = book.intents
    assert written is begun.order
    assert written == Order(
        id="r-1",
        request_id="mine",
        bot=BOT.name,
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
        sent_ms=int(EPOCH * 1000),
        sent_body=b"{}",
    )


async def test_an_order_without_a_key_has_none_in_its_row() -> None:
    book = Book()
    await books(book).intent(PLAIN, b"{}", context())
    assert (book.intents[0].idempotency_key, book.intents[0].digest) == (None, None)


async def test_a_body_that_is_far_too_large_for_an_order_is_not_recorded() -> None:
    book = Book()
    await books(book).intent(PLAIN, bytes(100_000), context())
    assert book.intents[0].sent_body is None


async def test_what_cannot_be_recorded_is_not_sent_but_its_end_is_told() -> None:
    """The row may be in the queue of a disk that hangs, and must not stay there as sent."""
    book = Book(is_taking=False)
    kept, begun = books(book), context()
    with pytest.raises(Refusal, match="halted: The journal cannot be written"):
        await kept.intent(PLAIN, b"{}", begun)
    kept.ended(begun, None)
    ((order, ending),) = book.endings
    assert (order, ending.conclusion) == (begun.order, Conclusion.NOT_SENT)


async def test_without_a_journal_no_intent_is_made() -> None:
    begun = context()
    await books().intent(PLAIN, b"{}", begun)
    assert begun.order is None


async def test_an_end_is_noted_once() -> None:
    book = Book()
    kept, begun = books(book), context(conclusion=Conclusion.DONE, attempts=1)
    begun.fence_ms = 6000
    await kept.intent(PLAIN, b"{}", begun)
    kept.ended(begun, REPLY)
    begun.conclusion = Conclusion.UNKNOWN
    kept.ended(begun, None)
    assert book.endings == [(begun.order, Ending(Conclusion.DONE, 6000, REPLY))]


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
    assert kept.status == JournalStatus(count, (), None, is_refusing=False)


async def test_with_a_journal_its_status_counts_and_it_is_closed_at_the_end() -> None:
    book = Book()
    kept, begun = books(book), context(conclusion=Conclusion.UNKNOWN, attempts=1)
    kept.ended(begun, None)
    assert kept.status == JOURNAL
    await kept.close()
    assert book.is_closed


async def test_without_a_journal_there_is_nothing_to_close() -> None:
    await books().close()
