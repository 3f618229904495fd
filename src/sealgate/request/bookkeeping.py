"""Records that outlive a request: Idempotency-Keys, and orders and nonces in the journal.

The pipeline calls `begin` before any wait, and `reserve`, `signed` and `intent` before the first byte of each
attempt; the handler calls `ended` at the end, in any case.
"""

from collections import Counter
from dataclasses import replace
from typing import Final

from sealgate.errors import Refusal
from sealgate.exchange.stamps import Nonces
from sealgate.machine.system import System
from sealgate.orders.doubts import JournalStatus
from sealgate.orders.idempotency import Declined, Fresh, IdempotencyKeys, Name, digest
from sealgate.orders.journal import Journal, NoncesKeeper, Order
from sealgate.orders.journal.rows import kept_body
from sealgate.orders.outcome import Conclusion, Ending
from sealgate.request.admission import Ticket
from sealgate.request.context import RequestContext
from sealgate.request.replies import Reply
from sealgate.venues.sealer import Sealer

# Looked up once, as in context.py.
_NOT_SENT: Final = Conclusion.NOT_SENT
_REFUSED: Final = Conclusion.REFUSED
_UNKNOWN: Final = Conclusion.UNKNOWN
_REPLAYED = (b"X-Gateway-Replayed", b"true")  # of a replayed reply


class Bookkeeping:
    """The records of one gateway; they survive a reload. `journal` is None if no file is set.

    `lost` names an earlier journal that was missing at the start, in words.
    """

    def __init__(
        self,
        keys: IdempotencyKeys,
        journal: Journal | None,
        system: System,
        nonces: NoncesKeeper | None = None,
        lost: str | None = None,
    ) -> None:
        self._keys = keys
        self._nonces = nonces
        self.journal = journal
        self._system = system
        self._unknown = Counter[str]()  # orders that are in doubt, by exchange
        self._lost = lost

    def begin(self, ticket: Ticket, body: bytes, sealer: Sealer, context: RequestContext) -> Reply | None:
        """Return the reply to an earlier request with this Idempotency-Key, or None: then send it.

        Raises Refusal `in_flight`, `key_reused`, `queue_full`, or `upstream_broken` if the reply is lost.
        """
        key = ticket.head.text(b"idempotency-key")
        # 1. A read may be repeated, and must not displace an order's key.
        # 2. A stream's address differs between listeners.
        if key is None or ticket.is_read or ticket.route.streams_at is not None:
            return None
        target, bare_body = sealer.bare(ticket.method, ticket.target, body)
        name = Name(ticket.bot.name, context.exchange, key)
        content = digest(ticket.method, target, ticket.key, bare_body)
        begun = self._keys.begin(name, content, self._system.now())
        if isinstance(begun, Fresh):
            context.idempotency = name, content
            return None
        context.conclusion, context.fence_ms = begun.conclusion, begun.fence_ms
        if isinstance(begun, Declined):
            raise Refusal(begun.slug, begun.detail)
        stored = begun.reply
        return Reply(stored.status, stored.phrase, (*stored.fields, _REPLAYED), stored.body)

    def signed(self, context: RequestContext) -> None:
        """Note the fence of the next attempt."""
        if context.idempotency is not None:
            self._keys.signed(context.idempotency[0], context.fence_ms)

    def must_reserve(self, nonces: Nonces, now_ms: int) -> bool:
        """Whether to call `reserve` before the next nonce; `now_ms` is the exchange's time."""
        return nonces.is_number and self._nonces is not None and nonces.lacks(now_ms)

    async def reserve(self, nonces: Nonces, key: tuple[str, str], now_ms: int) -> None:
        """Record in the journal the number up to which a key's nonces may be used.

        `key` has the names of the exchange and of the API key.
        """
        if self._nonces is not None:
            await self._nonces.reserve(nonces, key, now_ms)

    def must_record(self, ticket: Ticket) -> bool:
        """Whether to call `intent` before the first byte."""
        return self.journal is not None and not ticket.is_read

    async def intent(self, ticket: Ticket, body: bytes, context: RequestContext, now_ms: int) -> None:
        """Record an order before it is sent; `now_ms` is the exchange's time.

        Raises Refusal `halted` if it must be recorded and cannot be.
        """
        if self.journal is None:
            return
        context.order = Order(
            id=context.own_id,
            request_id=context.request_id,
            bot=ticket.bot.name,
            exchange=context.exchange,
            key=ticket.key,
            method=ticket.method,
            route=ticket.route.template,
            lane=ticket.route.lane,
            target=ticket.target.raw,
            idempotency_key=None if context.idempotency is None else context.idempotency[0].key,
            digest=None if context.idempotency is None else context.idempotency[1],
            timestamp_ms=context.timestamp_ms,
            fence_ms=context.fence_ms,
            attempts=context.attempts + 1,
            sent_ms=now_ms,
            counted=0 if context.used is None else context.used[1].orders,
            notional="0" if context.used is None else str(context.used[1].notional),
            sent_body=kept_body(body),
        )
        if not await self.journal.intent(context.order, is_cancel=ticket.route.is_cancel):
            raise Refusal("halted", "The journal cannot be written, and no order is sent unrecorded.")

    def ended(self, context: RequestContext, reply: Reply | None) -> None:
        """Record how a request ended; `reply` is None if none is to be kept. Only the first call counts."""
        if context.is_over:
            return
        context.is_over = True
        # 1. Its use of its bot's policies.
        if context.used is not None:
            usage, used = context.used
            sent_at = None if context.conclusion is _NOT_SENT else context.sent_at
            usage.ended(used, sent_at, is_refused=context.conclusion is _REFUSED)
        # 2. Without a journal, orders in doubt are only counted.
        if self.journal is None and context.conclusion is _UNKNOWN and context.attempts > 0:
            is_order = context.ticket is not None and not context.ticket.is_read
            self._unknown[context.exchange] += is_order
        # 3. Its ending, for its Idempotency-Key and its row in the journal.
        if context.idempotency is None and context.order is None:
            return
        is_own = reply is None or context.refusal is not None
        ending = Ending(
            context.conclusion, context.fence_ms, reply, is_own=is_own, is_limited=context.is_limited
        )
        if context.idempotency is not None:
            self._keys.finish(context.idempotency[0], ending, self._system.now())
        if context.order is not None and self.journal is not None:
            self.journal.ended(context.order, ending)

    @property
    def status(self) -> JournalStatus:
        """The state of the journal; without one, only the number of orders in doubt since the start."""
        if self.journal is None:
            by_exchange = dict(+self._unknown)
            return JournalStatus(self._unknown.total(), (), None, is_refusing=False, by_exchange=by_exchange)
        status = self.journal.status
        return status if self._lost is None else replace(status, lost=self._lost)

    async def close(self) -> None:
        """Write the remaining records."""
        if self.journal is not None:
            await self.journal.close()
