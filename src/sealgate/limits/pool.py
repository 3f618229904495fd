"""A pool: requests that an exchange counts together, with everything known about their rate limit.

That is the gate, the scout after a pause, whether claims go at a pace, whose turn it is, and what was
learned. A request passes several pools (pacer.py); a refusal, a count or a ban closes the one that it names.
"""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from sealgate.limits import LimitEstimator
from sealgate.limits import snapshots as memory
from sealgate.limits.claims import Claim, Fate, LimitReply
from sealgate.limits.gate import Gate, usable
from sealgate.limits.quotas import Quota
from sealgate.limits.snapshots import Snapshot
from sealgate.limits.status import PoolStatus, limit_statuses
from sealgate.limits.turns import Turns

_LATELY_S = 10.0  # for so long a rate is measured, to be shown
SCOUT_S = 2.0  # a scout without a reply for so long is followed by the next one
PART = " | "  # between a subject, the name of its pool and what the pool is for each of
_SHORT_S = 10.0  # a window that is waited for as a whole
_NEARLY_FULL = 0.9  # of a published window: the rest may have been sent by others
SHUT_OUT = "(shut out)"  # the pool of all that a subject sends while a ban lasts; no file can name one so


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """The limits of a pool that are published, and whether it counts requests instead of their costs.

    `is_aligned`: its windows begin at whole multiples of their length, by the exchange's clock.
    """

    known: tuple[Quota, ...] = ()
    counts_requests: bool = False
    is_aligned: bool = False


def name_in(place: str) -> str:
    """Return the name of the pool at a place: "subject | name" or "subject | name | what it is for"."""
    parts = place.split(PART, 2)
    return parts[1] if len(parts) > 1 else place


def shut_out_place(subject: str) -> str:
    """Return the place of the pool of all that a subject sends."""
    return f"{subject}{PART}{SHUT_OUT}"


def subject_in(place: str) -> str:
    """Return the subject of the pool at a place."""
    return place.partition(PART)[0]


def of_in(place: str) -> str:
    """Return what the pool at a place is for each of, such as a route; "" without."""
    return "".join(place.split(PART, 2)[2:])


def label_of(place: str) -> str:
    """Return the name of the pool at a place for people, with what it is for: "path POST /v5/order"."""
    return place.partition(PART)[2].replace(PART, " ") or place


class Pool:
    """One pool, at a place. `waiting` counts the claims in the queue that pass it."""

    def __init__(self, place: str, settings: PoolSettings, chance: Callable[[], float]) -> None:
        self.place, self.name = place, name_in(place)
        self.settings = settings
        self.gate = Gate()
        self.estimator = LimitEstimator(settings.known, counts_requests=settings.counts_requests)
        self.turns = Turns(counts_requests=settings.counts_requests)
        self.refusal = LimitReply(Fate.ACCEPTED)  # which began the latest pause
        self.reopens_at = -math.inf  # the end of the latest long pause
        self.waiting = 0
        self.used_at = -math.inf  # when a claim was last let go or sent
        self._chance = chance
        self._quiet: set[bool] = set()  # classes that go at a pace, and of which no claim waits any more
        self._scout = ""
        self._scout_until = -math.inf
        self._was_held = False  # the latest pause was met elsewhere, and no scout was accepted since

    def adopt(self, settings: PoolSettings, *, is_anew: bool) -> None:
        """Go by other settings from now on; the pause and what was sent stay.

        `is_anew`: what replies have stated holds no longer.
        """
        if is_anew or settings.known != self.settings.known:
            self.estimator.publish(settings.known)
        self.settings = settings
        self.turns.counts_requests = self.estimator.counts_requests = settings.counts_requests

    def class_of(self, claim: Claim) -> bool:
        """Return which claims wait with this one: all, or, where the limits are apart, those of its class."""
        return claim.is_read and self.estimator.counts_apart

    def is_paced(self, claim: Claim) -> bool:
        """Return whether claims of this class go at a pace."""
        paced = self.turns.paced
        return bool(paced) and self.class_of(claim) in paced

    @property
    def is_tight(self) -> bool:
        """Whether some class goes at a pace."""
        return bool(self.turns.paced)

    def pace(self, kind: bool) -> None:  # noqa: FBT001 - one of two classes
        """Let a class go at a pace from now on."""
        self.turns.paced.add(kind)

    def ease(self, kind: bool) -> None:  # noqa: FBT001 - one of two classes
        """Let a class go at once again."""
        self.turns.paced.discard(kind)

    def ease_if_quiet(self, kind: bool) -> None:  # noqa: FBT001 - one of two classes
        """Let a class go at once again if none of it waited when the queue was last looked through."""
        if kind in self._quiet:
            self.ease(kind)

    def settle(self, waiting: Collection[tuple["Pool", bool]]) -> None:
        """Note which classes wait, now that the whole queue was looked through."""
        self._quiet = {kind for kind in self.turns.paced if (self, kind) not in waiting}

    def ready_at(self, claim: Claim, now: float) -> float:
        """Return when the claim may be sent; infinity if that depends on a reply."""
        if now < self.gate.until:
            return self.gate.until
        if now < self._scout_until:
            return self._scout_until
        return self.estimator.ready_at(claim, now, is_paced=self.is_paced(claim))

    def turn_at(self, claim: Claim, now: float) -> float:
        """Return the same for a claim in the queue: if it has to wait, it goes at a pace from now on."""
        at = self.ready_at(claim, now)
        if at > now and not self.is_paced(claim):
            self.pace(self.class_of(claim))
            at = self.ready_at(claim, now)
        return at

    def blocked_until(self, now: float) -> float:
        """Return until when nothing at all can go: by the gate, or by what a reply stated to be used up."""
        spent_s = self.estimator.spent_s(now)
        return max(self.gate.until, now + spent_s if spent_s else -math.inf)

    def took(self, claim: Claim, now: float, *, is_granted: bool) -> None:
        """Count a claim as sent; alone, the first one after a pause goes as the scout.

        `is_granted`: another gateway decided that it goes, and looks after pace and scout.
        """
        self.used_at = now
        self.estimator.took(claim, now, is_paced=not is_granted and self.is_paced(claim))
        if not is_granted and (self.estimator.needs_scout or self._was_held):
            self._scout, self._scout_until = claim.id, now + SCOUT_S

    def sent(self, claim: Claim, let_go_at: float, now: float) -> None:
        """Count a claim that was let go then from now on, as its first byte leaves."""
        self.used_at = now
        self.estimator.sent(claim, let_go_at, now)

    def count_sent(self, at: float, cost: float) -> None:
        """Count a request sent by another gateway."""
        self.used_at = max(self.used_at, at)
        self.estimator.log.add(at, cost)

    def sent_cost(self, since: float, until: float | None = None) -> float:
        """Return the cost of what was sent in (since, until]."""
        return self.estimator.log.all.count(since, until)

    def took_back(self, claim: Claim, sent_at: float) -> None:
        """Take back a claim that was let go and never sent."""
        self.estimator.take_back(claim, sent_at)
        self._end_scout(claim)

    def accepted(self, claim: Claim, sent_at: float, now: float) -> None:
        """Learn that a claim was accepted."""
        is_scout = self._end_scout(claim)
        if is_scout and now >= self.gate.until:  # else another request was refused while it was on its way
            self._was_held = False
        self.estimator.accepted(claim, sent_at, now, is_scout=is_scout)

    def lost(self, claim: Claim, *, is_answered: bool) -> None:
        """Keep a claim counted of which nobody knows whether this pool accepted it.

        A lost scout may still be on its way: the next one goes when this one should have been answered.
        """
        if is_answered:
            self._end_scout(claim)
        self.estimator.lost(claim)

    def throttled(self, claim: Claim, sent_at: float, now: float, reply: LimitReply) -> None:
        """Close the gate, and learn that the pool was full."""
        self.close(now, reply, is_scout=self._end_scout(claim))
        refusal = self.refusal
        # What documents ask for does not tell when the limiter gives way.
        stated_s = None if refusal.is_documented else usable(refusal.retry_after_s)
        is_ban = refusal.fate is Fate.BANNED
        self.estimator.throttled(
            claim, sent_at, self.gate.until, stated_s, refusal.resolution_s, is_ban=is_ban
        )
        self.pace(self.class_of(claim))

    def close(self, now: float, reply: LimitReply, *, is_scout: bool = False) -> None:
        """Pause after a refusal, which is that of the pool from now on."""
        self.refusal = self._documented(reply, now)
        stated_s = usable(self.refusal.retry_after_s)
        self.gate = self.gate.throttled(now, stated_s, self._chance(), is_scout=is_scout)
        self._note_pause(now)

    def _documented(self, reply: LimitReply, now: float) -> LimitReply:
        """Return a refusal that states no wait with the one that follows from the published windows.

        1. An aligned window begins anew at its end: of those that are nearly full the longest, else the
           shortest.
        2. Of any other nobody knows when it began: a short one is over after its length.
        3. A ban is no matter of windows.
        """
        known = self.settings.known
        if not known or usable(reply.retry_after_s) is not None or reply.fate is Fate.BANNED:
            return reply
        windows_s = sorted(one.window_s for one in known)
        wait_s = windows_s[0]
        if self.settings.is_aligned and reply.server_now is not None:
            into_s = {window_s: reply.server_now % window_s for window_s in windows_s}
            sent = self.estimator.log.all
            full = [
                one.window_s for one in known if sent.count(now - into_s[one.window_s]) > _NEARLY_FULL * one.n
            ]
            window_s = max(full, default=windows_s[0])
            wait_s = window_s - into_s[window_s]
        elif wait_s > _SHORT_S:
            return reply
        return replace(reply, retry_after_s=wait_s, is_documented=True)

    def shut_out(self, claim: Claim, now: float, reply: LimitReply) -> None:
        """Close the gate of a subject that is shut out; a scout must be accepted before all others go."""
        self._was_held = True
        self.close(now, reply, is_scout=self._end_scout(claim))

    def hold(self, until: float, now: float) -> None:
        """Send nothing before `until`, then one request alone: the pause was met elsewhere or earlier."""
        self._was_held = self._was_held or until > self.gate.until
        self.gate = self.gate.held(until)
        self._note_pause(now)

    def _note_pause(self, now: float) -> None:
        if self.gate.until - now > memory.SHORT_PAUSE_S:
            self.reopens_at = self.gate.until

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits for it, and nothing is on its way."""
        return not (self.waiting or self.is_tight or self.estimator.in_flight)

    def status(self, now: float) -> PoolStatus:
        """Return the state for people and metrics."""
        estimator = self.estimator
        return PoolStatus(
            self.gate.left_s(now),
            limit_statuses(estimator, now),
            estimator.at_a_time,
            estimator.spent_s(now),
            is_banned=now < self.gate.until and self.refusal.fate is Fate.BANNED,
            cost_per_s=estimator.log.all.count(now - _LATELY_S) / _LATELY_S,
        )

    def snapshot(self, now: float) -> Snapshot:
        """Return the learned limits, and what is left of a pause."""
        return [*memory.snapshot(self.estimator.limits, now), *memory.paused(self.gate.left_s(now))]

    def restore(self, kept: Snapshot, now: float) -> None:
        """Start from the limits in a snapshot, unless they are published."""
        if not self.settings.known:
            memory.restore(self.estimator, kept, now)

    @property
    def needs_scout(self) -> bool:
        """Whether the first claim after a pause has not been accepted yet."""
        return self._was_held or self.estimator.needs_scout

    def _end_scout(self, claim: Claim) -> bool:
        """Return whether the claim is the scout; if so, nobody waits for it from now on."""
        is_scout = claim.id == self._scout
        if is_scout:
            self._scout, self._scout_until = "", -math.inf
        return is_scout
