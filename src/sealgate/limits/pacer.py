"""The pacing of all requests to one exchange: the bots of all its keys go through one Pacer.

The shell asks and obeys. It calls `goes_at_once` for a request; if that says no, it calls `enter`, then
`release`, which returns what to send, what to refuse and when to ask again. It also calls `release` after
every other call, and when that time has come. A claim that was let go is `sent` when its first byte is
written, and then `answered`; if its bot hung up before that, the claim is given back by `leave`.

A claim goes when all its pools have room (pool.py). One whose pool is closed holds up nobody who does not
need that pool. Pools are made when the first claim passes them.

Where several gateways share the limits, `relay` is set: the leader of all then decides which claims go. The
queue, the deadlines and the gates remain here, so that requests keep their places when the sharing begins or
ends, and a pause holds whatever becomes of it.

Nothing here waits, sleeps or reads a clock: `now` is passed in, and so is `chance`, a source of numbers in
[0, 1) for the jitter of the pauses.
"""

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from sealgate.limits import rejections
from sealgate.limits.claims import Claim, Fate, LimitReply, Rejection, Release
from sealgate.limits.line_sizes import LineSizes
from sealgate.limits.pool import SHUT_OUT, Pool, shut_out_place
from sealgate.limits.pools import PacerSettings, Pools
from sealgate.limits.relay import Relay
from sealgate.limits.status import PacerStatus
from sealgate.limits.wait_queue import WaitQueue

_ACCEPTED: Final = Fate.ACCEPTED
_NOTHING = Release((), (), None)
_AT_ONCE_S = 0.001  # a claim sent so soon after it was let go counts from then: round trips vary by more

Passed = tuple[Pool, ...]


class _Flight(NamedTuple):
    """When a claim was let go, or sent, and the pools in which it counts."""

    at: float
    pools: Passed


class Pacer:
    """Decides which request goes next, and when."""

    def __init__(self, settings: PacerSettings, chance: Callable[[], float]) -> None:
        self.pools = Pools(settings, chance)
        self.relay: Relay | None = None  # set while the leader of several gateways decides
        self._tight: set[Pool] = set()  # those for which claims have to wait
        self._queue = WaitQueue()
        self._flights: dict[str, _Flight] = {}
        self._serials: set[str] = set()  # those of the claims under way
        self._sizes = LineSizes()

    @property
    def settings(self) -> PacerSettings:
        """The present settings."""
        return self.pools.settings

    def goes_at_once(self, claim: Claim, now: float) -> bool:
        """Let a claim overtake the queue if there is room for it now that no waiting claim needs."""
        if now > claim.give_up_at or claim.serial in self._serials:
            return False
        pools = self.pools.of(claim)
        for pool in pools:
            if pool.waiting or now < pool.gate.until:
                return False
        if self.relay is not None:
            if not self.relay.goes_at_once(claim, now):
                return False
        else:
            for pool in pools:
                if pool.ready_at(claim, now) > now:
                    return False
            for pool in pools:  # nobody waits, and its turn is free: there is no need for a pace any more
                pool.ease(pool.class_of(claim))
        self._go(claim, pools, now)
        return True

    def enter(self, claim: Claim, now: float) -> Rejection | None:
        """Add a claim to the queue; return why not if it cannot go in time, or the queue is full."""
        # 1. It cannot outlast a pause, or what a reply stated to be used up.
        if (rejection := self.outlasted(claim, now)) is not None:
            return rejection
        pools = self.pools.of(claim)
        for pool in pools:
            spent_s = pool.estimator.spent_s(now)
            if spent_s and now + spent_s > claim.give_up_at:
                return rejections.spent(claim, pool, spent_s)
        # 2. Its turn comes too late, and so does that of each identical read which could take it along.
        wait_s, slowest = self._wait_s(claim, pools, now)
        for one in self._queue.first_alike(claim):
            its_wait_s, _ = self._wait_s(one, self.pools.of(one), now)
            if now + its_wait_s < one.give_up_at:
                wait_s = min(wait_s, its_wait_s)
        if now + wait_s > claim.give_up_at:
            return rejections.too_long(claim, slowest, wait_s, slowest.estimator.wait_per_cost_s(claim, now))
        # 3. The queue of its key is full, or holds too much that is different of its bot.
        queue = self.settings.queue
        if queue is not None and self._sizes.is_full(claim, queue):
            return rejections.full(claim, wait_s)
        if queue is not None and self._sizes.is_spread(claim):
            return rejections.spread(claim, wait_s)
        self._add(claim)
        if self.relay is not None:
            self.relay.enter(claim, now)
        return None

    def _add(self, claim: Claim) -> None:
        pools = tuple(map(self.pools.at, claim.pools))
        self._queue.add(claim, tuple(pool.turns for pool in pools))
        self._sizes.add(claim)
        for pool in pools:
            pool.waiting += 1

    def _remove(self, claim: Claim) -> None:
        self._queue.remove(claim)
        self._removed(claim)

    def _removed(self, claim: Claim) -> None:
        self._sizes.remove(claim)
        for place in claim.pools:
            self.pools.at(place).waiting -= 1

    def outlasted(self, claim: Claim, now: float) -> Rejection | None:
        """Return the rejection of a claim that cannot wait for the end of a pause, None if it can."""
        for pool in self.pools.of(claim):
            pause_s = pool.gate.left_s(now)
            if pause_s and pool.gate.until > claim.give_up_at:
                return rejections.paused(claim, pool, pause_s)
        return None

    def _wait_s(self, claim: Claim, pools: Passed, now: float) -> tuple[float, Pool]:
        """Estimate the wait of a claim that is queued or enters now, and the pool that it waits for."""
        longest_s, slowest = -1.0, pools[0]
        for pool in pools:
            wait_s = self._wait_for(claim, pool, now)
            if wait_s > longest_s:
                longest_s, slowest = wait_s, pool
        return longest_s, slowest

    def _wait_for(self, claim: Claim, pool: Pool, now: float) -> float:
        estimator, turns = pool.estimator, pool.turns
        ahead, first = 0.0, claim
        slot_s = estimator.wait_per_cost_s(claim, now)
        is_tight = self.relay is not None or pool.is_tight or pool.ready_at(claim, now) > now
        if pool.waiting and is_tight:  # else all who wait do so for other pools
            is_apart = claim.is_read and estimator.is_apart
            groups = self._queue.groups_at(pool.place, self.pools.closed_beside(claim, now))
            ahead = self._queue.cost_ahead(claim, groups, turns, now, slot_s, is_apart=is_apart)
        if ahead:
            kind, heads = pool.class_of(claim), self._queue.heads(self._serials)
            those = (one for one in heads if pool.place in one.pools and pool.class_of(one) == kind)
            first = next(those, claim)
        # 1. The head goes when the gate is open and the windows have room; if it must wait, at the pace.
        is_paced = pool.is_paced(first) or pool.ready_at(first, now) > now
        at = max(now, pool.gate.until, estimator.room_at(first, now, is_paced=is_paced))
        # 2. Those behind it follow at the pace, but not before the windows have room for all of them.
        if ahead:
            at += slot_s * max(0.0, ahead + turns.cost_of(claim) - turns.cost_of(first))
            at = max(at, estimator.room_at(claim, now, is_paced=True, ahead=ahead))
        return at - now

    def leave(self, claim: Claim) -> None:
        """Remove a claim whose bot disconnected: from the queue, or between release and sending."""
        if claim in self._queue:
            self._remove(claim)
        elif claim.id in self._flights:
            flight = self._land(claim)
            for pool in flight.pools:
                pool.took_back(claim, flight.at)
        if self.relay is not None:
            self.relay.leave(claim)

    def sent(self, claim: Claim, now: float) -> None:
        """Count a claim that was let go from now on, as its first byte leaves now."""
        at, pools = self._flights[claim.id]
        late_s = now - at
        if late_s > _AT_ONCE_S:
            for pool in pools:
                pool.sent(claim, at, now)
            self._flights[claim.id] = _Flight(now, pools)
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
            along += self._send_head(claim, now)
            go.append(claim)

    def _send_head(self, claim: Claim, now: float) -> list[tuple[Claim, Claim]]:
        """Let a claim go from the queue; return the claims that go along with it."""
        self._remove(claim)
        pools = self.pools.of(claim)
        for pool in pools:
            pool.turns.charge(claim, now, is_probing=self.relay is None and pool.estimator.is_probing)
        self._go(claim, pools, now)
        alike = self._queue.take_alike(claim)
        for one in alike:
            self._removed(one)
        return [(one, claim) for one in alike]

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
            self._remove(rejection.claim)
        go: list[Claim] = []
        along: list[tuple[Claim, Claim]] = []
        for claim in granted:
            # One that is not in the queue went along; one behind its serial keeps its grant.
            if claim in self._queue and claim.serial not in self._serials:
                went_along = self._send_head(claim, now)
                relay.go(claim)
                go.append(claim)
                for one, _ in went_along:
                    relay.leave(one)
                along += went_along
        look_again_at = self._look_again_at(again_at)
        return Release(tuple(go), (*rejected, *declined), look_again_at, tuple(along))

    def _expired(self, now: float) -> list[Rejection]:
        """Remove from the queue, and reject, the claims that cannot be sent in time any more."""
        rejected: list[Rejection] = []
        for group in self._queue.groups():
            rejected += [rejections.late(claim) for claim in self._queue.ended(group, now)]
            for pool in self.pools.of(next(iter(group.waiting.values()))) if group.waiting else ():
                pause_s, spent_s = pool.gate.left_s(now), pool.estimator.spent_s(now)
                if pause_s:
                    ended = self._queue.ended(group, pool.gate.until)
                    rejected += [rejections.paused(claim, pool, pause_s) for claim in ended]
                if spent_s:
                    ended = self._queue.ended(group, now + spent_s)
                    rejected += [rejections.spent(claim, pool, spent_s) for claim in ended]
        for rejection in rejected:
            self._removed(rejection.claim)
        return rejected

    def _look_again_at(self, again_at: float | None) -> float | None:
        """Return when to call `release` again: at `again_at`, or when a deadline ends, if either is known."""
        ends = [at for at in (again_at, self._queue.next_end()) if at is not None and at < math.inf]
        return min(ends, default=None)

    def answered(self, claim: Claim, now: float, reply: LimitReply) -> None:
        """Learn from the reply to a claim that was let go."""
        sent_at, pools = flight = self._land(claim)
        if reply.is_refusal:
            self._refused(claim, flight, now, reply)
        elif reply.fate is _ACCEPTED and self.relay is None:
            for pool in pools:
                pool.accepted(claim, sent_at, now)
            self.pools.admit()
        else:
            for pool in pools:
                pool.lost(claim, is_answered=self.relay is not None)
        if self.relay is not None:  # only the leader learns from it
            self.relay.answered(claim, sent_at, now, reply)
        elif reply.quotas and self.settings.headers:
            self._stated(pools, reply, now)

    def _refused(self, claim: Claim, flight: _Flight, now: float, reply: LimitReply) -> None:
        """Close the refused pool immediately here, even if another gateway does the learning."""
        sent_at, pools = flight
        refusing = _refusing(reply, pools)
        if reply.shuts_out:
            self.pools.shut(reply.shuts_out).shut_out(claim, now, reply)
        for pool in pools:
            if pool not in refusing:
                pool.lost(claim, is_answered=True)
            elif self.relay is None:
                pool.throttled(claim, sent_at, now, reply)
            else:
                pool.close(now, reply)
                pool.took_back(claim, sent_at)
        self.pools.note_closed(pools, now)

    def _stated(self, pools: Passed, reply: LimitReply, now: float) -> None:
        """Take in what header fields state, each of its pool; where that is not said, of the narrowest."""
        for pool in pools:
            is_first = pool is pools[0]
            quotas = tuple(
                one for one in reply.quotas if one.pool == pool.name or (is_first and not one.pool)
            )
            if quotas:
                pool.estimator.stated(quotas, now)

    def hold(self, place: str, until: float, now: float) -> bool:
        """Close a pool until then, if it is not: the pause was met elsewhere or earlier. Return whether."""
        is_new = self.pools.hold(place, until, now)
        if is_new and self.relay is not None:
            self.relay.hold(place, until, now)
        return is_new

    def shut_out(self, subject: str, until: float, now: float) -> bool:
        """Let nothing of a subject go before `until`, as `hold` does."""
        return self.hold(shut_out_place(subject), until, now)

    def waiting(self) -> tuple[Claim, ...]:
        """Return the claims in the queue, in the order in which they entered."""
        return self._queue.claims()

    def pace_waiting(self) -> None:
        """Let all claims in the queue go at an even pace: another pacer made them wait."""
        for claim in self._queue.claims():
            for pool in self.pools.of(claim):
                pool.pace(pool.class_of(claim))
                self._tight.add(pool)

    def status(self, now: float) -> PacerStatus:
        """Return the state for people and metrics."""
        return PacerStatus(self._queue.depths(), self.pools.status(now))

    def _next(self, now: float) -> tuple[Claim | None, float | None]:
        """Return the claim that may be sent now, or None and the time when the first one may.

        Claims of one class of a pool go in order: where its first must wait for the pool, so must the others.
        But what has to wait longer for another of its pools does not keep this one for itself meanwhile.
        """
        again_at: float | None = None
        waiting: set[tuple[Pool, bool]] = set()  # classes of which one waits, for room or for another reply
        kept: set[tuple[Pool, bool]] = set()  # those whose next room is for one that waits
        for claim in self._queue.heads(self._serials):
            passed = [(pool, pool.class_of(claim)) for pool in self.pools.of(claim)]
            if not kept.isdisjoint(passed):
                continue
            if claim.serial in self._serials:
                waiting.update(passed)
                continue
            turns = [pool.turn_at(claim, now) for pool, _ in passed]
            at = max(turns)
            if at <= now:
                for pool, kind in passed:
                    pool.ease_if_quiet(kind)
                return claim, None
            again_at = at if again_at is None else min(at, again_at)
            late = [(one, its_at) for one, its_at in zip(passed, turns, strict=True) if its_at > now]
            waiting.update(one for one, _ in late)
            # Another one may go before it only if that leaves room for it by the time that it goes.
            slots = ((one, its_at, one[0].estimator.wait_per_cost_s(claim, now)) for one, its_at in late)
            kept.update(one for one, its_at, slot_s in slots if at <= its_at + slot_s)
        self._tight.update(pool for pool, _ in waiting)
        for pool in self._tight:
            pool.settle(waiting)
        self._tight = {pool for pool in self._tight if pool.is_tight}
        return None, again_at

    def _go(self, claim: Claim, pools: Passed, now: float) -> None:
        """Count a claim as sent."""
        is_granted = self.relay is not None
        for pool in pools:
            pool.took(claim, now, is_granted=is_granted)
        self._flights[claim.id] = _Flight(now, pools)
        if claim.serial:
            self._serials.add(claim.serial)

    def _land(self, claim: Claim) -> _Flight:
        """End the claim's flight, so that the next one of its serial may be sent."""
        self._serials.discard(claim.serial)
        return self._flights.pop(claim.id)


def _refusing(reply: LimitReply, pools: Passed) -> Sequence[Pool]:
    """Return the pools that a refusal closes.

    1. Those that it names, of those that the request passed.
    2. If it names none, but shuts out a subject, that alone: it does not tell which pool was full.
    3. Else all: which one was full cannot be known.
    """
    named = [pool for pool in pools if pool.name in reply.pools]
    if named or reply.shuts_out:
        return named
    return [pool for pool in pools if pool.name != SHUT_OUT]
