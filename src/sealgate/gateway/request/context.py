"""One request under way: what the pipeline has found out about it so far. It ends as an `Outcome`."""

import asyncio
from enum import IntEnum

from sealgate.core.admission import Bot, Ticket
from sealgate.core.attempts import RATE_LIMITED
from sealgate.core.outcome import Conclusion, Outcome, UpstreamError
from sealgate.core.pacing.claims import Claim
from sealgate.core.replays import Name
from sealgate.core.routes import Lane
from sealgate.errors import Refusal
from sealgate.gateway.journal import Order


class Stage(IntEnum):
    """Who is being waited for."""

    OWN = 0  # nobody: the gateway works
    BOT = 1
    QUEUE = 2
    UPSTREAM = 3


# By names of their own: Python 3.11 takes 130 ns longer for the member of an enumeration.
OWN, BOT, QUEUE, UPSTREAM = Stage
_NOT_SENT, _UNKNOWN = Conclusion.NOT_SENT, Conclusion.UNKNOWN
_WAITS = frozenset({QUEUE, UPSTREAM})


class RequestContext:
    """Filled in step by step. Times are readings of `Host.now`, durations are seconds.

    `give_up_at` bounds the waiting, `ends_at` everything. `conclusion` is what the bot may conclude if it
    ends here: unknown from the first byte of an attempt until its verdict. `not_before` holds a resend back.
    `fence_ms` is the server time after which the latest attempt can no longer be admitted. `name` and
    `digest` are of its Idempotency-Key, `order` is its row in the journal. `watch` is what looks
    after the key that it goes with. `needs_new_connection`: the idle one that it had
    got too old, or was closed. `is_limited`: the latest reply refused it for the limit.
    """

    bot: Bot | None = None
    ticket: Ticket | None = None
    watch: object = None
    key: str | None = None
    route = "other"
    lane: Lane | None = None
    give_up_at = 0.0
    ends_at = 0.0
    not_before = 0.0
    sent_at = 0.0
    timestamp_ms = 0
    fence_ms = 0
    is_read = False
    name: Name | None = None
    digest: str | None = None
    order: Order | None = None
    is_over = False
    is_under_way = False
    attempts = 0
    needs_new_connection = False
    resends: tuple[str, ...] = ()
    upstream_errors: tuple[UpstreamError, ...] = ()
    is_limited = False
    refusal: Refusal | None = None
    broken: str | None = None
    has_hung_up = False
    may_be_stopped = True

    def __init__(self, own_id: str, now: float, method: str, task: asyncio.Task[None] | None = None) -> None:
        self.own_id = own_id  # unique; the bot's may take its place in log and reply
        self.request_id = own_id
        self.conclusion = self._conclusion_before = _NOT_SENT
        self.started = now
        self.method = method
        self._task = task
        self._spent = [0.0, 0.0, 0.0, 0.0]
        self._stage = OWN
        self._since = now

    def enter(self, stage: Stage, now: float) -> None:
        """Note who is being waited for from now on."""
        self._spent[self._stage] += now - self._since
        self._stage, self._since = stage, now

    def hang_up(self) -> None:
        """Note that the bot is gone, and stop where that is allowed."""
        self.has_hung_up = True
        if self.may_be_stopped and self._task is not None:
            self._task.cancel()

    def stop(self, refusal: Refusal) -> bool:
        """End it with a refusal if it waits in the gateway; say whether it does.

        Whoever carries it sees a cancellation, and calls `take_back_stop`.
        """
        is_waiting = self._stage in _WAITS and not self.is_under_way
        if not is_waiting or self.refusal is not None or self._task is None:
            return False
        self.refusal = refusal
        self._task.cancel()
        return True

    def take_back_stop(self) -> bool:
        """Take a cancellation back if it was `stop` alone, and return whether it was."""
        if self.refusal is None or self.has_hung_up or self._task is None:
            return False
        return self._task.uncancel() == 0

    def admitted(self, ticket: Ticket, max_wait_s: float, total_timeout_s: float) -> None:
        """Note the ticket and what its deadline bounds."""
        self.ticket = ticket
        self.key, self.route, self.lane = ticket.key, ticket.route.template, ticket.route.lane
        self.is_read = ticket.is_read
        if ticket.deadline_s is not None:
            self.give_up_at = self.ends_at = self.started + ticket.deadline_s
        else:
            self.give_up_at = self.started + max_wait_s
            self.ends_at = self.give_up_at + total_timeout_s

    def claim(self, ticket: Ticket) -> Claim:
        """Return what stands in line for it."""
        bot, route = ticket.bot, ticket.route
        is_again = RATE_LIMITED in self.resends
        return Claim(
            self.own_id,
            bot.name,
            route.lane,
            self.give_up_at,
            bot.weight,
            route.cost,
            ticket.is_read,
            is_again,
        )

    def has_resynced(self, step_s: float | None) -> None:
        """Note by how much the exchange's clock moved, for the error that a refused timestamp was."""
        *earlier, refused = self.upstream_errors
        self.upstream_errors = (*earlier, refused._replace(step_s=step_s))

    def sends(self, now: float) -> None:
        """Note that an attempt goes out; what may execute is finished, also for a bot that hung up."""
        self.enter(UPSTREAM, now)
        self.attempts += 1
        self.sent_at = now
        self.is_under_way, self.may_be_stopped = True, self.is_read
        self._conclusion_before, self.conclusion = self.conclusion, _UNKNOWN

    def sent_nothing(self) -> None:
        """Take back that an attempt went out: its first write failed."""
        self.attempts -= 1
        self.conclusion = self._conclusion_before

    def came_back(self, now: float) -> None:
        """Note that an attempt is over."""
        self.enter(OWN, now)
        self.is_under_way, self.may_be_stopped = False, True

    def concludes(self, conclusion: Conclusion) -> None:
        """Note what the latest attempt means; one that sent nothing leaves an earlier one's meaning."""
        if conclusion is not _NOT_SENT:
            self.conclusion = conclusion

    def cut(self, detail: str | None) -> None:
        """Note that the reply broke off while it was passed on; `detail` is None where the bot hung up."""
        self.conclusion = _UNKNOWN
        self.broken = detail

    def notes(self) -> bytes:
        """Return the header lines that every reply of the gateway carries."""
        conclusion = self.conclusion
        lines = _NOTES % (
            self.request_id.encode("ascii"),
            self.attempts,
            self._spent[QUEUE] * 1000,
            conclusion.encode("ascii"),
        )
        if conclusion is _UNKNOWN and self.fence_ms:  # 0: of a first one that is not signed yet
            lines += b"X-Gateway-Fence-Ms: %d\r\n" % self.fence_ms
        return lines

    def outcome(self, status: int, now: float) -> Outcome:
        """Return the record of it."""
        self.enter(OWN, now)
        refusal = self.refusal
        _, bot_s, queue_s, upstream_s = self._spent
        # In the order of its fields: by their names it takes three times as long, 3 us more.
        return Outcome(
            self.request_id,
            self.bot.name if self.bot else None,
            self.key,
            self.method,
            self.route,
            self.lane,
            status,
            self.conclusion,
            refusal.slug if refusal else None,
            refusal.detail if refusal else None,
            self.broken,
            self.attempts,
            # The last reason led to no attempt where the time ran out before it.
            self.resends[: max(0, self.attempts - 1)] if self.resends else (),
            queue_s,
            upstream_s,
            bot_s,
            now - self.started,
            self.has_hung_up,
            self.upstream_errors,
        )


_NOTES = (
    b"X-Gateway-Request-Id: %b\r\n"
    b"X-Gateway-Attempts: %d\r\n"
    b"X-Gateway-Queue-Ms: %d\r\n"
    b"X-Gateway-Outcome: %b\r\n"
)
