"""What is remembered of a request beyond its time: Idempotency-Keys, and orders in the journal.

Three calls of the pipeline: `begin` before anything waits, `intent` before the first byte of an attempt,
`ended` once at the end, whatever that is.
"""

from sealgate.core.admission import Ticket
from sealgate.core.doubts import JournalStatus
from sealgate.core.endings import Ending
from sealgate.core.outcome import Conclusion
from sealgate.core.replays import Declined, Fresh, Name, Replays, digest
from sealgate.errors import Refusal
from sealgate.gateway.host.host import Host
from sealgate.gateway.journal import Order, OrderBook
from sealgate.gateway.request.journey import Journey
from sealgate.gateway.request.replies import Reply

_REPLAYED = (b"X-Gateway-Replayed", b"true")  # of a reply that was given before


class Bookkeeping:
    """The memory of one gateway; it outlives a reload. `book` is None without a journal."""

    def __init__(self, replays: Replays, book: OrderBook | None, host: Host) -> None:
        self._replays = replays
        self._book = book
        self._host = host
        self._unknown = 0

    def begin(self, ticket: Ticket, body: bytes, journey: Journey) -> Reply | None:
        """Return the reply that a request with this Idempotency-Key got before, None if it is to be sent.

        Raises Refusal `in_flight`, `key_reused`, `queue_full`, or `upstream_broken` where the reply is lost.
        """
        key = ticket.head.text(b"idempotency-key")
        if key is None or ticket.is_read:  # a read may be repeated, and must not crowd out an order's key
            return None
        name, content = Name(ticket.bot.name, key), digest(ticket.method, ticket.target.raw, ticket.key, body)
        begun = self._replays.begin(name, content, self._host.now())
        if isinstance(begun, Fresh):
            journey.name, journey.digest = name, content
            return None
        journey.conclusion, journey.fence_ms = begun.conclusion, begun.fence_ms
        if isinstance(begun, Declined):
            raise Refusal(begun.slug, begun.detail)
        stored = begun.reply
        return Reply(stored.status, stored.phrase, (*stored.fields, _REPLAYED), stored.body)

    def signed(self, journey: Journey) -> None:
        """Note the fence of what is about to be sent."""
        if journey.name is not None:
            self._replays.signed(journey.name, journey.fence_ms)

    def must_record(self, ticket: Ticket) -> bool:
        """Whether `intent` comes before the first byte."""
        return self._book is not None and not ticket.is_read

    async def intent(self, ticket: Ticket, journey: Journey) -> None:
        """Write down what is about to be sent. Raises Refusal `halted` where that is not possible."""
        if self._book is None:
            return
        journey.order = Order(
            id=journey.own_id,
            request_id=journey.request_id,
            bot=ticket.bot.name,
            key=ticket.key,
            method=ticket.method,
            route=ticket.route.template,
            lane=ticket.route.lane,
            target=ticket.target.raw,
            idempotency_key=journey.name.key if journey.name else None,
            digest=journey.digest,
            timestamp_ms=journey.timestamp_ms,
            fence_ms=journey.fence_ms,
            attempts=journey.attempts + 1,
            sent_ms=int(self._host.wall() * 1000),
        )
        if not await self._book.intent(journey.order):
            raise Refusal("halted", "The journal cannot be written, and no order is sent without a record.")

    def ended(self, journey: Journey, reply: Reply | None) -> None:
        """Note how a request ended; `reply` is None where there is none to keep. The first call counts."""
        if journey.is_over:
            return
        journey.is_over = True
        if self._book is None and _is_in_doubt(journey):
            self._unknown += 1
        if journey.name is not None or journey.order is not None:
            self._keep(journey, reply)

    def _keep(self, journey: Journey, reply: Reply | None) -> None:
        is_own = reply is None or journey.refusal is not None
        ending = Ending(journey.conclusion, journey.fence_ms, reply, is_own=is_own)
        if journey.name is not None:
            self._replays.finish(journey.name, ending, self._host.now())
        if journey.order is not None and self._book is not None:
            self._book.ended(journey.order, ending)

    @property
    def status(self) -> JournalStatus:
        """The journal at this moment; without one, only how many orders came into doubt since the start."""
        if self._book is None:
            return JournalStatus(self._unknown, (), None, is_refusing=False)
        return self._book.status

    async def close(self) -> None:
        """Write what is left."""
        if self._book is not None:
            await self._book.close()


def _is_in_doubt(journey: Journey) -> bool:
    return journey.attempts > 0 and not journey.is_read and journey.conclusion is Conclusion.UNKNOWN
