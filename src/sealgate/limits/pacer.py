"""The pacing of one API key: all its bots go through one Pacer.

The shell asks and obeys. It calls `goes_at_once` for a request; if that says no, `enter`, then `release`,
which says what to send, what to refuse and when to look again; `release` is called after every other call,
too, and when that time has come.
What was let go is `sent` when its first byte is written, and then `answered`; or, if its bot hung up before
that, given back by `leave`.

Where several gateways share the limit, one of them decides for all. Then this pacer keeps the queue, the
deadlines, the gate and the count of what was sent, by `expire`, `let_go` and `settle`.

Nothing here waits, sleeps or reads a clock: `now` comes in, and `chance` (a source of numbers in [0, 1)) is
handed in for the jitter of the pauses.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sealgate.limits import Limit, LimitEstimator, memory
from sealgate.limits.claims import LONGEST_DEADLINE_MS, Claim, Fate, LimitReply, Rejection, Release
from sealgate.limits.gate import Gate, usable
from sealgate.limits.quotas import Quota
from sealgate.limits.status import PacerStatus, limit_statuses
from sealgate.limits.wait_queue import WaitQueue

_ACCEPTED, _LOST = Fate.ACCEPTED, Fate.LOST
_NOTHING = Release((), (), None)
_AT_ONCE_S = 0.001  # what is sent that soon after it was let go counts from then: a trip varies by more
SCOUT_S = 2.0  # a scout that takes longer is not waited for: the next one goes


@dataclass(frozen=True, slots=True)
class PacerSettings:
    """How many may wait, the limits that are published, and whether header fields may state others."""

    queue: int = 1000
    known: tuple[Quota, ...] = ()
    headers: bool = True


class Pacer:
    """Who of one key's bots may send when."""

    def __init__(self, settings: PacerSettings, chance: Callable[[], float]) -> None:
        self.settings = settings
        self._chance = chance
        self._refusal = LimitReply(Fate.ACCEPTED)  # the one that began the latest pause
        self._gate = Gate()
        self._queue = WaitQueue()
        self._estimator = LimitEstimator(settings.known)
        self._sent: dict[str, float] = {}
        self._serials: set[str] = set()  # those of which a request is under way
        self._paced: set[bool] = set()  # classes of which somebody had to wait, until one finds its turn free
        self._quiet: set[bool] = set()  # those of which nobody waits any more
        self._scout = ""
        self._scout_until = -math.inf
        self._was_held = False  # another met the latest pause; until a scout is accepted

    def adopt(self, settings: PacerSettings) -> None:
        """Go by other settings from now on; a pause, who waits and what was sent stay."""
        if (settings.known, settings.headers) != (self.settings.known, self.settings.headers):
            self._estimator.publish(settings.known)
        if not settings.headers:
            self._estimator.forget_counts()
        self.settings = settings

    def goes_at_once(self, claim: Claim, now: float) -> bool:
        """Let a claim go where nobody waits and there is room: then it need not stand in line."""
        if self._queue or now > claim.give_up_at or claim.serial in self._serials:
            return False
        if self._ready_at(claim, now) > now:
            return False
        if self._paced:  # its turn was free: as nobody waits, that is the end of it
            self._paced.discard(self._class(claim))
        self._start(claim, now)
        return True

    def enter(self, claim: Claim, now: float) -> Rejection | None:
        """Take a claim into the line, or refuse it at once: its time is too short, or the line too long."""
        if (rejection := self.outlasted(claim, now)) is not None:
            return rejection
        spent_s = self._estimator.spent_s(now)
        if spent_s and now + spent_s > claim.give_up_at:
            return _spent(claim, spent_s)
        wait_s = self._wait_s(claim, now)
        for one in self._queue.first_alike(claim):
            its_wait_s = self._wait_s(one, now)
            if now + its_wait_s < one.give_up_at:  # it goes, and takes this one along
                wait_s = min(wait_s, its_wait_s)
        if now + wait_s > claim.give_up_at:
            return _too_long(claim, wait_s, self._estimator.wait_per_cost_s(claim, now))
        if len(self._queue) >= self.settings.queue:
            return Rejection(
                claim, "queue_full", "Too many requests wait for this key (limits.queue).", wait_s
            )
        self._queue.add(claim)
        return None

    def outlasted(self, claim: Claim, now: float) -> Rejection | None:
        """Return why a claim is refused that cannot wait for the end of a pause, None if it can."""
        pause_s = self._gate.left_s(now)
        return self._paused_for(claim, pause_s) if pause_s and self._gate.until > claim.give_up_at else None

    def _wait_s(self, claim: Claim, now: float) -> float:
        """Estimate in how many seconds a claim goes that waits or enters now."""
        slot_s = self._estimator.wait_per_cost_s(claim, now)
        is_apart = claim.is_read and self._estimator.is_apart
        ahead = self._queue.cost_ahead(claim, now, slot_s, is_apart=is_apart)
        kind = self._class(claim)
        heads = (one for one in self._queue.heads(self._serials) if self._class(one) == kind)
        first = next(heads, claim) if ahead else claim
        # Whoever has to wait comes to be paced.
        is_paced = self._is_paced(first) or self._ready_at(first, now) > now
        at = max(now, self._gate.until, self._estimator.room_at(first, now, is_paced=is_paced))
        if ahead:  # at the pace from then on, but not before the windows have room for all of it
            at += slot_s * max(0.0, ahead + claim.cost - first.cost)
            at = max(at, self._estimator.room_at(claim, now, is_paced=True, ahead=ahead))
        return at - now

    def leave(self, claim: Claim) -> None:
        """Forget a claim whose bot hung up: from the line, or let go and not sent."""
        if claim in self._queue:
            self._queue.remove(claim)
        elif claim.id in self._sent:
            sent_at = self._pop_sent(claim)
            self._estimator.take_back(claim, sent_at)
            self._end_scout(claim)

    def sent(self, claim: Claim, now: float) -> float:
        """Count what was let go from now on: its first byte leaves. Return how late that is, in seconds."""
        released_at = self._sent[claim.id]
        if now - released_at > _AT_ONCE_S:
            self._estimator.sent(claim, released_at, now)
            self._sent[claim.id] = now
        return now - released_at

    def release(self, now: float) -> Release:
        """Return what to do now. Claims in `go` count as sent."""
        if not len(self._queue):
            return _NOTHING
        rejected = self.expire(now)
        go, shared, again_at = self._release_ready(now)
        return Release(tuple(go), tuple(rejected), self.next_look(again_at), tuple(shared))

    def expire(self, now: float) -> list[Rejection]:
        """Take out of the queue all that cannot be sent in time any more."""
        rejected = [_late(claim) for claim in self._queue.ended(now)]
        pause_s = self._gate.left_s(now)
        if pause_s:
            rejected += [self._paused_for(claim, pause_s) for claim in self._queue.ended(self._gate.until)]
        spent_s = self._estimator.spent_s(now)
        if spent_s:
            rejected += [_spent(claim, spent_s) for claim in self._queue.ended(now + spent_s)]
        return rejected

    def next_look(self, again_at: float | None) -> float | None:
        """Return when to call again: at `again_at`, or when a deadline ends; None: at the next event."""
        ends = [at for at in (again_at, self._queue.next_end()) if at is not None and at < math.inf]
        return min(ends, default=None)

    def let_go(self, claim: Claim, now: float) -> None:
        """Count a claim as sent, on another's word: out of the queue, or without having waited."""
        if claim in self._queue:
            self._queue.take(claim, now, is_probing=False)
        self._estimator.took(claim, now, is_paced=False)
        self._add_sent(claim, now)

    def must_wait_for_serial(self, claim: Claim) -> bool:
        """Whether another request is under way that this one must not overtake."""
        return claim.serial in self._serials

    def go_along(self, claim: Claim) -> list[tuple[Claim, Claim]]:
        """Take out of the queue those that are like one that goes; return each with that one."""
        return [(one, claim) for one in self._queue.take_alike(claim)]

    def answered(self, claim: Claim, now: float, reply: LimitReply) -> None:
        """Learn from what came back for a claim that was let go."""
        sent_at = self._pop_sent(claim)
        # One that was lost may still be on its way: the next goes when it would have been answered.
        is_scout = reply.fate is not _LOST and self._end_scout(claim)
        if reply.fate is _ACCEPTED:
            self._was_held = self._was_held and not is_scout
            self._estimator.accepted(claim, sent_at, now, is_scout=is_scout)
        elif reply.is_refusal:
            self._throttled(claim, sent_at, now, reply, is_scout=is_scout)
        else:
            self._estimator.lost(claim)
        if reply.quotas and self.settings.headers:
            self._estimator.stated(reply.quotas, now)

    def settle(self, claim: Claim, now: float, reply: LimitReply) -> float:
        """Count how a claim ended whose reply another learns from; return when it was sent.

        A 429 pauses here at once.
        """
        sent_at = self._pop_sent(claim)
        self._end_scout(claim)
        if reply.is_refusal:
            self._refusal = reply
            self._gate = self._gate.throttled(
                now, usable(reply.retry_after_s), self._chance(), is_scout=False
            )
            self._estimator.take_back(claim, sent_at)
        else:
            self._estimator.lost(claim)
        return sent_at

    def is_paused(self, now: float) -> bool:
        """Return whether nothing may be sent, not even what was let go a moment ago."""
        return self._gate.left_s(now) > 0

    @property
    def paused_until(self) -> float:
        """The end of the last pause, minus infinity where there was none."""
        return self._gate.until

    def hold(self, until: float) -> None:
        """Send nothing before `until`, then one request alone: another met the pause, or an earlier run."""
        self._was_held = self._was_held or until > self._gate.until
        self._gate = self._gate.held(until)

    def recall(self, sends: Iterable[tuple[float, float]]) -> None:
        """Count what others sent: time and cost, in order of time and after all that was sent here."""
        for at, cost in sends:
            self._estimator.log.add(at, cost)

    def sent_cost(self, since: float, until: float | None = None) -> float:
        """Return the cost of what was sent from here in that time."""
        return self._estimator.log.all.count(since, until)

    @property
    def depth(self) -> int:
        """How many wait."""
        return len(self._queue)

    def waiting(self) -> tuple[Claim, ...]:
        """Return all that waits, by the time that it entered."""
        return self._queue.claims()

    def pace_waiting(self) -> None:
        """Let all that waits go at an even pace: it was not this pacer that made it wait."""
        self._paced = {self._class(claim) for claim in self._queue.claims()}

    @property
    def limits(self) -> list[Limit]:
        """What is believed, to be handed to whoever paces this key from now on."""
        return self._estimator.limits

    def believe(self, limits: Sequence[Limit], at_a_time: int | None = None) -> None:
        """Go by these limits from now on."""
        self._estimator.believe(limits, at_a_time)

    def status(self, now: float) -> PacerStatus:
        """Return what there is to see."""
        estimator = self._estimator
        return PacerStatus(
            self._gate.left_s(now),
            self._queue.depths(),
            limit_statuses(estimator, now),
            estimator.at_a_time,
            estimator.spent_s(now),
        )

    def snapshot(self, now: float) -> memory.Snapshot:
        """Return what was learned, as plain values."""
        return memory.snapshot(self._estimator.limits, now)

    def restore(self, kept: Sequence[Mapping[str, float]], now: float) -> None:
        """Start from a snapshot, where no limit is published."""
        if not self.settings.known:
            memory.restore(self._estimator, kept, now)

    def _release_ready(self, now: float) -> tuple[list[Claim], list[tuple[Claim, Claim]], float | None]:
        """Take from the line what may go; return it, what goes along, and when the next one may."""
        go: list[Claim] = []
        shared: list[tuple[Claim, Claim]] = []
        while True:
            claim, at = self._next(now)
            if claim is None:
                return go, shared, at
            self._take(claim, now)
            go.append(claim)
            shared += self.go_along(claim)

    def _next(self, now: float) -> tuple[Claim | None, float | None]:
        """Return who may go now, or when somebody may; one waits behind another of its class."""
        again_at: float | None = None
        waiting: set[bool] = set()
        behind: set[bool] = set()  # classes of those that wait for another's reply alone
        for claim in self._queue.heads(self._serials):
            kind = self._class(claim)
            if kind in waiting:
                continue
            if claim.serial in self._serials:
                behind.add(kind)
                continue
            at = self._ready_at(claim, now)
            if at > now and kind not in self._paced:
                self._paced.add(kind)
                at = self._ready_at(claim, now)
            if at <= now:
                self._paced -= self._quiet & {kind}
                return claim, None
            waiting.add(kind)
            again_at = at if again_at is None else min(at, again_at)
        self._quiet = self._paced - waiting - behind
        return None, again_at

    def _is_paced(self, claim: Claim) -> bool:
        return bool(self._paced) and self._class(claim) in self._paced

    def _class(self, claim: Claim) -> bool:
        """Return what a claim waits with: all others, or its own class where the limits are apart."""
        return self._estimator.counts_apart and claim.is_read

    def _ready_at(self, claim: Claim, now: float) -> float:
        if now < self._gate.until:
            return self._gate.until
        if now < self._scout_until:
            return self._scout_until
        return self._estimator.ready_at(claim, now, is_paced=self._is_paced(claim))

    def _take(self, claim: Claim, now: float) -> None:
        self._queue.take(claim, now, is_probing=self._estimator.is_probing)
        self._start(claim, now)

    def _start(self, claim: Claim, now: float) -> None:
        self._estimator.took(claim, now, is_paced=self._is_paced(claim))
        self._add_sent(claim, now)
        if self._estimator.needs_scout or self._was_held:
            self._scout, self._scout_until = claim.id, now + SCOUT_S

    def _add_sent(self, claim: Claim, now: float) -> None:
        self._sent[claim.id] = now
        if claim.serial:
            self._serials.add(claim.serial)

    def _pop_sent(self, claim: Claim) -> float:
        """Take out what is under way, so that the next of its serial may go; return when it was sent."""
        self._serials.discard(claim.serial)
        return self._sent.pop(claim.id)

    def _end_scout(self, claim: Claim) -> bool:
        """Return whether this is the scout; if so, nobody waits for it from now on."""
        is_scout = claim.id == self._scout
        if is_scout:
            self._scout, self._scout_until = "", -math.inf
        return is_scout

    def _paused_for(self, claim: Claim, pause_s: float) -> Rejection:
        """Refuse what cannot wait for the end of a pause; say who chose its length."""
        gate, words = self._gate, self._refusal.words
        if gate.is_stated and self._refusal.is_documented:
            what = "This key is paused, as the exchange documents it,"
        elif gate.is_stated:
            what = "The exchange paused this key"
        elif not gate.in_a_row:
            what = "This key is paused"
        else:
            times = f" {gate.in_a_row} times in a row" if gate.in_a_row > 1 else ""
            what = f"The exchange refused this key{times}; the gateway pauses it"
        detail = f"{what} for longer than this request may wait."
        detail += f' The exchange says: "{words}".' if words else ""
        return Rejection(claim, "rate_limited", detail, pause_s)

    def _throttled(
        self, claim: Claim, sent_at: float, now: float, reply: LimitReply, *, is_scout: bool
    ) -> None:
        stated_s = usable(reply.retry_after_s)
        self._refusal = reply
        self._gate = self._gate.throttled(now, stated_s, self._chance(), is_scout=is_scout)
        self._estimator.throttled(
            claim,
            sent_at,
            self._gate.until,
            None if reply.is_documented else stated_s,  # it says nothing of when the limiter gives way
            reply.resolution_s,
            is_ban=reply.fate is Fate.BANNED,
        )
        self._paced.add(self._class(claim))


def _too_long(claim: Claim, wait_s: float, slot_s: float) -> Rejection:
    enough_ms = math.ceil((wait_s + slot_s) * 10) * 100
    detail = "The limit of this key has no room before this deadline"
    detail += f"; X-Gateway-Deadline-Ms: {enough_ms} would do." if enough_ms <= LONGEST_DEADLINE_MS else "."
    return Rejection(claim, "deadline_exceeded", detail, wait_s)


def _spent(claim: Claim, spent_s: float) -> Rejection:
    detail = "The exchange says that its limit is used up for longer than this request may wait."
    return Rejection(claim, "rate_limited", detail, spent_s)


def _late(claim: Claim) -> Rejection:
    return Rejection(claim, "deadline_exceeded", "The deadline of this request passed before its turn came.")
