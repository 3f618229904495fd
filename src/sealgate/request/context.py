"""Requests in flight: the record of each, and its state in the pipeline until it ends."""

import asyncio
import contextlib
from collections.abc import Callable, Hashable
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from sealgate.errors import Refusal
from sealgate.limits.claims import Claim
from sealgate.orders.outcome import Conclusion, Outcome
from sealgate.orders.resends import NONCE, RATE_LIMITED
from sealgate.request.admission import Ticket
from sealgate.venues.routes import Auth

if TYPE_CHECKING:
    from sealgate.exchange.exchange import Line
    from sealgate.keys.key_breaker import KeyBreaker
    from sealgate.orders.idempotency import Name
    from sealgate.orders.journal import Order
    from sealgate.orders.policy import Usage, Used
    from sealgate.orders.validity import Validity

_NOT_SENT: Final = Conclusion.NOT_SENT
_UNKNOWN: Final = Conclusion.UNKNOWN


class Stage(IntEnum):
    """The thing that a request is waiting for."""

    OWN = 0  # nothing: the gateway is working
    BOT = 1
    QUEUE = 2
    UPSTREAM = 3  # for a connection, or for the reply to an identical read
    SENT = 4  # for the reply; it may have executed by now


# Looked up once: in Python 3.11 a member costs 130 ns more. Compiled, a `Final` needs no look-up at all.
OWN: Final = Stage.OWN
BOT: Final = Stage.BOT
QUEUE: Final = Stage.QUEUE
UPSTREAM: Final = Stage.UPSTREAM
SENT: Final = Stage.SENT
_WAITS = frozenset({QUEUE, UPSTREAM})


class RequestContext(Outcome):
    """A request in flight: its record, filled in step by step, and state for the pipeline only.

    Times are readings of `System.now`. `own_id` is unique; the bot's id may replace it as `request_id` in log
    and reply. `conclusion` is the outcome if the request ended now: unknown from the first byte of an attempt
    until its verdict.
    """

    __slots__ = (
        "_since",
        "_stage",
        "_task",
        "breaker",
        "carrier",
        "ends_at",
        "fence_ms",
        "give_up_at",
        "has_shared",
        "idempotency",
        "is_late",
        "is_limited",
        "is_over",
        "may_be_stopped",
        "may_share",
        "needs_new_connection",
        "not_before",
        "order",
        "own_id",
        "refusal",
        "sent_at",
        "ticket",
        "timestamp_ms",
        "used",
        "validity",
    )

    def __init__(self, own_id: str, now: float, method: str, task: asyncio.Task[None] | None = None) -> None:
        super().__init__(own_id, method, now)
        self.own_id = own_id
        self._task = task
        self._since = now
        self.ticket: Ticket | None = None
        self.breaker: KeyBreaker | None = None  # of its API key; the gateway's own reads have none
        self.carrier: object = None  # the connections that it may use
        self.validity: Validity | None = None
        self.give_up_at = 0.0  # the end of all waiting
        self.ends_at = 0.0  # the end of everything
        self.not_before = 0.0  # delays a resend
        self.sent_at = 0.0
        self.timestamp_ms = 0
        self.fence_ms = 0  # the exchange's time after which it no longer accepts the latest attempt
        self.is_over = False
        self.is_limited = False  # the latest reply refused it because of the rate limit
        self.is_late = False  # the latest reply refused its timestamp, as intended by its `validity`
        self.needs_new_connection = False  # its idle connection was too old, or closed
        self.has_shared = False  # it waited in vain for the reply to another request
        self.may_be_stopped = True
        self.may_share = True  # it may wait for the reply to another request
        self.idempotency: tuple[Name, str] | None = None  # its Idempotency-Key, and the digest of its content
        self.order: Order | None = None  # its row in the journal
        self.used: tuple[Usage, Used] | None = None  # its use of its bot's policies
        self.refusal: Refusal | None = None
        self._stage: Stage = OWN

    def enter(self, stage: Stage, now: float) -> None:
        """Note what the request waits for from now on, and add up the time of the previous stage."""
        waited_s = now - self._since
        if self._stage is UPSTREAM or self._stage is SENT:
            self.upstream_s += waited_s
        elif self._stage is QUEUE:
            self.queue_s += waited_s
        elif self._stage is BOT:
            self.bot_s += waited_s
        self._stage, self._since = stage, now

    @property
    def is_sent(self) -> bool:
        """Whether an attempt is on the wire."""
        return self._stage is SENT

    def hang_up(self) -> None:
        """Note that the bot disconnected, and stop the request if that is allowed."""
        self.has_hung_up = True
        if self.may_be_stopped and self._task is not None:
            self._task.cancel()

    def stop(self, refusal: Refusal) -> bool:
        """If the request is waiting in the gateway, end it with a refusal; return whether it was.

        Its handler sees a cancellation, and calls `take_back_stop`.
        """
        if self._stage not in _WAITS or self.refusal is not None or self._task is None:
            return False
        self.refusal = refusal
        self._task.cancel()
        return True

    def take_back_stop(self) -> bool:
        """Undo a cancellation if it came only from `stop`, and return whether it did."""
        if self.refusal is None or self.has_hung_up or self._task is None:
            return False
        return self._task.uncancel() == 0

    def admitted(self, ticket: Ticket, max_wait_s: float, total_timeout_s: float) -> None:
        """Note the ticket, and the deadlines that follow from it."""
        self.ticket = ticket
        self.key, self.route, self.lane = ticket.key, ticket.route.template, ticket.route.lane
        if ticket.deadline_s is not None:
            self.give_up_at = self.ends_at = self.started + ticket.deadline_s
        else:
            self.give_up_at = self.started + max_wait_s
            self.ends_at = self.give_up_at + total_timeout_s

    @property
    def may_be_lost(self) -> bool:
        """Whether losing the reply would be harmless: such requests may use the oldest connections."""
        return self.ticket is not None and self.ticket.is_read and not self.resends

    def claim(self, ticket: Ticket, body: bytes, line: "Line", alike: Hashable = None) -> Claim:
        """Return the claim that queues for this request; claims that are `alike` may share one attempt."""
        bot, route, resends, membership = ticket.bot, ticket.route, self.resends, line.membership
        is_again = self.has_shared or bool(resends and (RATE_LIMITED in resends or NONCE in resends))
        return Claim(
            self.own_id,
            bot.name,
            route.lane,
            self.give_up_at,
            bot.weight,
            route.cost,
            ticket.is_read,
            is_again,
            line.serial,
            alike,
            membership.pools_of(ticket.method, route, ticket.target.query, body),
            membership.subjects,
            ticket.key,
        )

    def has_resynced(self, step_s: float | None) -> None:
        """Note the step of the exchange's clock, for the record of the refused timestamp."""
        if self.validity is not None:
            self.validity.end_ms = 0  # computed with the previous clock
        if not self.upstream_errors:  # the refusal belongs to the read whose reply this one shares
            return
        *earlier, refused = self.upstream_errors
        self.upstream_errors = (*earlier, refused._replace(step_s=step_s))

    def sends(self, now: float, *, may_be_stopped: bool) -> None:
        """Note that an attempt is sent, and whether it ends if the bot disconnects."""
        self._stage, self._since = SENT, now  # the gateway itself was at work until now
        self.attempts += 1
        self.sent_at = now
        self.may_be_stopped = may_be_stopped
        self.conclusion = _UNKNOWN

    def came_back(self, now: float) -> None:
        """Note that an attempt is over, if one was sent."""
        if self._stage is not OWN:
            self.enter(OWN, now)
            self.may_be_stopped = True

    def concludes(self, conclusion: Conclusion) -> None:
        """Note the conclusion from the latest attempt; one that sent nothing changes nothing."""
        if conclusion is not _NOT_SENT:
            self.conclusion = conclusion

    def cut(self, detail: str | None) -> None:
        """Note that the reply was cut off while passing it on; `detail` is None if the bot disconnected."""
        self.conclusion = _UNKNOWN
        self.broken = detail

    def notes(self) -> bytes:
        """Return the header lines of every reply of the gateway."""
        conclusion = self.conclusion
        lines = (
            b"X-Gateway-Request-Id: %b\r\n"
            b"X-Gateway-Attempts: %d\r\n"
            b"X-Gateway-Queue-Ms: %d\r\n"
            b"X-Gateway-Outcome: %b\r\n"
        ) % (self.request_id.encode(), self.attempts, int(self.queue_s * 1000), conclusion.encode())
        if self.shared is not None:
            lines += b"X-Gateway-Shared: %b\r\n" % self.shared.encode("ascii")
        if conclusion is _UNKNOWN and self.fence_ms:  # 0: the first request is not signed yet
            lines += b"X-Gateway-Fence-Ms: %d\r\n" % self.fence_ms
        return lines

    def end(self, status: int, now: float) -> None:
        """Complete the record and drop token, body and task, because readers may keep the record."""
        if self._stage is not OWN:
            self.enter(OWN, now)
        self.ticket = self.order = self.used = self.breaker = self._task = None
        if self.refusal is not None:
            self.reason, self.detail = self.refusal.slug, self.refusal.detail
            self.refusal = None  # its exception holds frames
        super().end(status, now)


class InFlightRequests:
    """The requests in flight."""

    def __init__(self) -> None:
        self._contexts: set[RequestContext] = set()
        self._idle: list[tuple[object, asyncio.Event]] = []

    def __len__(self) -> int:
        return len(self._contexts)

    def begin(self, context: RequestContext) -> None:
        """Add a request; its `carrier` must stay open until it ends."""
        self._contexts.add(context)

    def end(self, context: RequestContext) -> None:
        """Remove a request."""
        self._contexts.remove(context)
        for awaited, idle in self._idle:
            if not self._is_busy(awaited):
                idle.set()

    def stop(self, why: Callable[[RequestContext], Refusal | None]) -> int:
        """End the waiting requests for which `why` returns a refusal; return their number."""
        reasons = [(context, why(context)) for context in self._contexts]
        return sum(context.stop(reason) for context, reason in reasons if reason is not None)

    def stop_signed(self, breaker: object, refusal: Refusal) -> int:
        """End the waiting signed requests with the key of a breaker; return their number."""

        def why(context: RequestContext) -> Refusal | None:
            ticket = context.ticket
            is_signed = ticket is not None and ticket.route.auth is Auth.SIGNED
            return refusal if is_signed and context.breaker is breaker else None

        return self.stop(why)

    async def wait_until_idle(self, at_most_s: float | None, carrier: object = None) -> None:
        """Return when no request is in flight (or none with that carrier), or the time is over."""
        if not self._is_busy(carrier):
            return
        idle = asyncio.Event()
        self._idle.append((carrier, idle))
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(at_most_s):
                    await idle.wait()
        finally:
            self._idle.remove((carrier, idle))

    def _is_busy(self, carrier: object) -> bool:
        if carrier is None:
            return bool(self._contexts)
        return any(context.carrier is carrier for context in self._contexts)
