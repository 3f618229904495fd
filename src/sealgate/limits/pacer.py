"""The pacing of what an exchange counts together, an API key today: all its bots go through one Pacer.

The shell asks and obeys. It calls `goes_at_once` for a request; if that says no, it calls `enter`, then
`release`, which returns what to send, what to refuse and when to ask again. It also calls `release` after
every other call, and when that time has come. A claim that was let go is `sent` when its first byte is
written, and then `answered`; if its bot hung up before that, the claim is given back by `leave`.

Where several gateways share the limit, `relay` is set: the leader of all then decides which claims go. The
queue, the deadlines and the gate remain here, so that requests keep their places when the sharing begins or
ends, and a pause holds whatever becomes of it.

Nothing here waits, sleeps or reads a clock: `now` is passed in, and so is `chance`, a source of numbers in
[0, 1) for the jitter of the pauses.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sealgate.limits import Limit, LimitEstimator
from sealgate.limits import snapshots as memory
from sealgate.limits.claims import LONGEST_DEADLINE_MS, Claim, Fate, LimitReply, Rejection, Release
from sealgate.limits.gate import Gate, usable
from sealgate.limits.quotas import Quota
from sealgate.limits.relay import Relay
from sealgate.limits.status import PacerStatus, limit_statuses
from sealgate.limits.wait_queue import WaitQueue

_ACCEPTED: Final = Fate.ACCEPTED
_LOST: Final = Fate.LOST
_NOTHING = Release((), (), None)
_AT_ONCE_S = 0.001  # a claim sent so soon after it was let go counts from then: round trips vary by more
SCOUT_S = 2.0  # a scout without a reply for so long is followed by the next one


@dataclass(frozen=True, slots=True)
class PacerSettings:
    """How many may wait, the limits that are published, and whether header fields may state others."""

    queue: int = 1000
    known: tuple[Quota, ...] = ()
    headers: bool = True


class Pacer:
    """Decides which request of one limit goes next, and when."""

    def __init__(self, settings: PacerSettings, chance: Callable[[], float]) -> None:
        self.settings = settings
        self._chance = chance
        self.relay: Relay | None = None  # set while the leader of several gateways decides
        self._refusal = LimitReply(Fate.ACCEPTED)  # which began the latest pause
        self._gate = Gate()
        self._queue = WaitQueue()
        self._estimator = LimitEstimator(settings.known)
        self._sent: dict[str, float] = {}  # when each claim under way was let go, or sent
        self._serials: set[str] = set()  # those of the claims under way
        self._paced: set[bool] = (
            set()
        )  # classes that go at a pace: a claim had to wait, and none found its turn free since
        self._quiet: set[bool] = set()  # those of them of which no claim waits any more
        self._scout = ""
        self._scout_until = -math.inf
        self._was_held = False  # the latest pause was met elsewhere, and no scout was accepted since

    def adopt(self, settings: PacerSettings) -> None:
        """Go by other settings from now on; the pause, the queue and what was sent stay."""
        if (settings.known, settings.headers) != (self.settings.known, self.settings.headers):
            self._estimator.publish(settings.known)
        if not settings.headers:
            self._estimator.counts.forget()
        self.settings = settings

    def goes_at_once(self, claim: Claim, now: float) -> bool:
        """Let a claim go past the empty queue if there is room for it now."""
        if self._queue or now > claim.give_up_at or claim.serial in self._serials:
            return False
        if self.relay is not None:
            if self.is_paused(now) or not self.relay.goes_at_once(claim, now):
                return False
        elif self._ready_at(claim, now) > now:
            return False
        elif self._paced:  # nobody waits, and its turn is free: there is no need for a pace any more
            self._paced.discard(self._class_of(claim))
        self._go(claim, now)
        return True

    def enter(self, claim: Claim, now: float) -> Rejection | None:
        """Add a claim to the queue; return why not if it cannot go in time, or the queue is full."""
        # 1. It cannot outlast the pause, or what a reply stated to be used up.
        if (rejection := self.outlasted(claim, now)) is not None:
            return rejection
        spent_s = self._estimator.spent_s(now)
        if spent_s and now + spent_s > claim.give_up_at:
            return _spent(claim, spent_s)
        # 2. Its turn comes too late, and so does that of each identical read which could take it along.
        wait_s = self._wait_s(claim, now)
        for one in self._queue.first_alike(claim):
            its_wait_s = self._wait_s(one, now)
            if now + its_wait_s < one.give_up_at:
                wait_s = min(wait_s, its_wait_s)
        if now + wait_s > claim.give_up_at:
            return _too_long(claim, wait_s, self._estimator.wait_per_cost_s(claim, now))
        # 3. The queue is full.
        if len(self._queue) >= self.settings.queue:
            return Rejection(
                claim, "queue_full", "Too many requests wait for this key (limits.queue).", wait_s
            )
        self._queue.add(claim)
        if self.relay is not None:
            self.relay.enter(claim, now)
        return None

    def outlasted(self, claim: Claim, now: float) -> Rejection | None:
        """Return the rejection of a claim that cannot wait for the end of a pause, None if it can."""
        pause_s = self._gate.left_s(now)
        return self._paused_for(claim, pause_s) if pause_s and self._gate.until > claim.give_up_at else None

    def _wait_s(self, claim: Claim, now: float) -> float:
        """Estimate in how many seconds a claim goes that waits or enters now."""
        slot_s = self._estimator.wait_per_cost_s(claim, now)
        is_apart = claim.is_read and self._estimator.is_apart
        ahead = self._queue.cost_ahead(claim, now, slot_s, is_apart=is_apart)
        kind = self._class_of(claim)
        heads = (one for one in self._queue.heads(self._serials) if self._class_of(one) == kind)
        first = next(heads, claim) if ahead else claim
        # 1. The head goes when the gate is open and the windows have room; if it must wait, at the pace.
        is_paced = self._is_paced(first) or self._ready_at(first, now) > now
        at = max(now, self._gate.until, self._estimator.room_at(first, now, is_paced=is_paced))
        # 2. Those behind it follow at the pace, but not before the windows have room for all of them.
        if ahead:
            at += slot_s * max(0.0, ahead + claim.cost - first.cost)
            at = max(at, self._estimator.room_at(claim, now, is_paced=True, ahead=ahead))
        return at - now

    def leave(self, claim: Claim) -> None:
        """Remove a claim whose bot hung up: from the queue, or after it was let go and before it was sent."""
        if claim in self._queue:
            self._queue.remove(claim)
        elif claim.id in self._sent:
            sent_at = self._pop_sent(claim)
            self._estimator.take_back(claim, sent_at)
            self._end_scout(claim)
        if self.relay is not None:
            self.relay.leave(claim)

    def sent(self, claim: Claim, now: float) -> None:
        """Count a claim that was let go from now on, as its first byte leaves now."""
        late_s = now - self._sent[claim.id]
        if late_s > _AT_ONCE_S:
            self._estimator.sent(claim, self._sent[claim.id], now)
            self._sent[claim.id] = now
        if self.relay is not None:
            self.relay.sent(claim, now, late_s)

    def release(self, now: float) -> Release:
        """Return what to do now. Claims in `go` count as sent."""
        if self.relay is not None:
            return self._release_granted(self.relay, now)
        if not len(self._queue):
            return _NOTHING
        rejected = self._expired(now)
        go: list[Claim] = []
        along: list[tuple[Claim, Claim]] = []
        while True:
            claim, again_at = self._next(now)
            if claim is None:
                return Release(tuple(go), tuple(rejected), self._look_again_at(again_at), tuple(along))
            self._queue.send_head(claim, now, is_probing=self._estimator.is_probing)
            self._go(claim, now)
            go.append(claim)
            along += [(one, claim) for one in self._queue.take_alike(claim)]

    def _release_granted(self, relay: Relay, now: float) -> Release:
        """Return what to do now by the leader's decisions.

        A claim leaves the queue in one of four ways, tried in this order: its time is over, the leader
        rejected it, the leader granted it, or it goes along with an identical read.
        """
        rejected = self._expired(now)
        for rejection in rejected:
            relay.leave(rejection.claim)
        granted, declined, again_at = relay.decisions(now)
        for rejection in declined:
            self._queue.remove(rejection.claim)
        go: list[Claim] = []
        along: list[tuple[Claim, Claim]] = []
        for claim in granted:
            # One that is not in the queue went along; one behind its serial keeps its grant.
            if claim in self._queue and claim.serial not in self._serials:
                self._queue.send_head(claim, now, is_probing=False)
                self._go(claim, now)
                relay.go(claim)
                go.append(claim)
                for one in self._queue.take_alike(claim):
                    relay.leave(one)
                    along.append((one, claim))
        look_again_at = self._look_again_at(again_at)
        return Release(tuple(go), (*rejected, *declined), look_again_at, tuple(along))

    def _expired(self, now: float) -> list[Rejection]:
        """Remove from the queue, and reject, the claims that cannot be sent in time any more."""
        rejected = [_late(claim) for claim in self._queue.ended(now)]
        pause_s = self._gate.left_s(now)
        if pause_s:
            rejected += [self._paused_for(claim, pause_s) for claim in self._queue.ended(self._gate.until)]
        spent_s = self._estimator.spent_s(now)
        if spent_s:
            rejected += [_spent(claim, spent_s) for claim in self._queue.ended(now + spent_s)]
        return rejected

    def _look_again_at(self, again_at: float | None) -> float | None:
        """Return when to call `release` again: at `again_at`, or when a deadline ends, if either is known."""
        ends = [at for at in (again_at, self._queue.next_end()) if at is not None and at < math.inf]
        return min(ends, default=None)

    def answered(self, claim: Claim, now: float, reply: LimitReply) -> None:
        """Learn from the reply to a claim that was let go."""
        sent_at = self._pop_sent(claim)
        if self.relay is not None:
            self._pass_on(self.relay, claim, sent_at, now, reply)
            return
        # A lost scout may still be on its way: the next one goes when this one should have been answered.
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

    def _throttled(
        self, claim: Claim, sent_at: float, now: float, reply: LimitReply, *, is_scout: bool
    ) -> None:
        stated_s = self._close_gate(now, reply, is_scout=is_scout)
        self._estimator.throttled(
            claim,
            sent_at,
            self._gate.until,
            None if reply.is_documented else stated_s,  # which does not tell when the limiter gives way
            reply.resolution_s,
            is_ban=reply.fate is Fate.BANNED,
        )
        self._paced.add(self._class_of(claim))

    def _pass_on(self, relay: Relay, claim: Claim, sent_at: float, now: float, reply: LimitReply) -> None:
        """Leave it to the leader to learn from a reply; a refusal closes the gate here at once."""
        self._end_scout(claim)
        if reply.is_refusal:
            self._close_gate(now, reply, is_scout=False)
            self._estimator.take_back(claim, sent_at)
        else:
            self._estimator.lost(claim)
        relay.answered(claim, sent_at, now, reply)

    def _close_gate(self, now: float, reply: LimitReply, *, is_scout: bool) -> float | None:
        """Pause after a refusal; return the wait that it stated, if a pause can mean it."""
        stated_s = usable(reply.retry_after_s)
        self._refusal = reply
        self._gate = self._gate.throttled(now, stated_s, self._chance(), is_scout=is_scout)
        return stated_s

    def is_paused(self, now: float) -> bool:
        """Return whether nothing may be sent, not even a claim that was let go a moment ago."""
        return self._gate.left_s(now) > 0

    @property
    def paused_until(self) -> float:
        """The end of the last pause, minus infinity if there was none."""
        return self._gate.until

    def hold(self, until: float) -> None:
        """Send nothing before `until`, then one request alone: the pause was met elsewhere or earlier."""
        if self.relay is not None:
            self.relay.hold(until)
        self._was_held = self._was_held or until > self._gate.until
        self._gate = self._gate.held(until)

    def count_sent(self, sends: Iterable[tuple[float, float]]) -> None:
        """Count what other gateways sent: time and cost, in order, and after all that was sent here."""
        for at, cost in sends:
            self._estimator.log.add(at, cost)

    def sent_cost(self, since: float, until: float | None = None) -> float:
        """Return the cost of what was sent in (since, until]."""
        return self._estimator.log.all.count(since, until)

    def waiting(self) -> tuple[Claim, ...]:
        """Return the claims in the queue, in the order in which they entered."""
        return self._queue.claims()

    def pace_waiting(self) -> None:
        """Let all claims in the queue go at an even pace: another pacer made them wait."""
        self._paced = {self._class_of(claim) for claim in self._queue.claims()}

    @property
    def limits(self) -> list[Limit]:
        """The limits that are believed."""
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

    def restore(self, kept: Sequence[Mapping[str, float]], now: float) -> None:
        """Start from a snapshot, unless limits are published."""
        if not self.settings.known:
            memory.restore(self._estimator, kept, now)

    def _next(self, now: float) -> tuple[Claim | None, float | None]:
        """Return the claim that may go now, or None and when the first one may.

        Claims of one class go in order: where its first must wait, so must the others.
        """
        again_at: float | None = None
        waiting: set[bool] = set()
        behind: set[bool] = set()  # classes whose first waits for another reply of its serial
        for claim in self._queue.heads(self._serials):
            kind = self._class_of(claim)
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
        return bool(self._paced) and self._class_of(claim) in self._paced

    def _class_of(self, claim: Claim) -> bool:
        """Return which claims wait with this one: all, or, where the limits are apart, those of its class."""
        return self._estimator.counts_apart and claim.is_read

    def _ready_at(self, claim: Claim, now: float) -> float:
        if now < self._gate.until:
            return self._gate.until
        if now < self._scout_until:
            return self._scout_until
        return self._estimator.ready_at(claim, now, is_paced=self._is_paced(claim))

    def _go(self, claim: Claim, now: float) -> None:
        """Count a claim as sent; alone, the first one after a pause goes as the scout."""
        is_alone = self.relay is None
        self._estimator.took(claim, now, is_paced=is_alone and self._is_paced(claim))
        self._sent[claim.id] = now
        if claim.serial:
            self._serials.add(claim.serial)
        if is_alone and (self._estimator.needs_scout or self._was_held):
            self._scout, self._scout_until = claim.id, now + SCOUT_S

    def _pop_sent(self, claim: Claim) -> float:
        """End what is under way, so that the next of its serial may go; return when it was sent."""
        self._serials.discard(claim.serial)
        return self._sent.pop(claim.id)

    def _end_scout(self, claim: Claim) -> bool:
        """Return whether the claim is the scout; if so, nobody waits for it from now on."""
        is_scout = claim.id == self._scout
        if is_scout:
            self._scout, self._scout_until = "", -math.inf
        return is_scout

    def _paused_for(self, claim: Claim, pause_s: float) -> Rejection:
        """Reject a claim that cannot wait for the end of a pause; say who chose its length."""
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
