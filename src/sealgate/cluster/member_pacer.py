"""The pacer of a gateway that shares a key: it asks the leader while there is one, else decides alone.

The queue, the deadlines and the gate are those of a `Pacer` of its own, so a pause that is known holds
whatever becomes of Redis, and requests keep their places when the sharing begins or ends. Only *which may go*
is decided elsewhere while the limit is shared: by the leader, or by a credit at hand. Alone, the own pacer
decides, by a careful share of the last known limit.
"""

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sealgate.cluster.messages import Completion, Grant, Note, RejectedClaim, SharedLimit, shares
from sealgate.limits import Limit, memory
from sealgate.limits.claims import Claim, LimitReply, Rejection, Release
from sealgate.limits.pacer import Pacer, PacerSettings
from sealgate.limits.status import LimitStatus, PacerStatus
from sealgate.venues.routes import Lane

if TYPE_CHECKING:
    from sealgate.cluster.leader import Leader


_LATER_S = 0.01  # what nobody waits for may wait for company
_LATE_S = 0.005  # sent so long after it was let go, the leader must know: it counts by the time of sending
_SOON_S = 0.05  # a pause that ends so soon is sat out with the permit in hand
_FORESIGHT_S = 0.1  # credits are for what was sent within that time, twice
_CREDIT_S = 1.0  # unused for so long, it goes back: it takes up room
_MOST_CREDITS = 64
_LEAST_CREDITS = 2
_BUCKETS = 32  # in a report of what was spent
_LONGEST_S = 3600.0


class Outbox:
    """The next note to the leader. `due_at` is when it should go."""

    def __init__(self) -> None:
        self._note = Note()
        self.due_at = math.inf

    def clear(self) -> None:
        """Drop everything: whoever it was for is gone."""
        self.take()

    def take(self) -> Note:
        """Return the note, and begin a new one."""
        note, self._note, self.due_at = self._note, Note(), math.inf
        return note

    def begin(self, waits: list[Claim], spent: list[tuple[float, float]], now: float) -> None:
        """Introduce this gateway to a leader with all that it has."""
        self._note = Note(is_new=True, waits=waits, spent=spent)
        self.due_at = now

    def waits(self, claim: Claim, now: float) -> None:
        """Report a claim that waits."""
        self._note.waits.append(claim)
        self.due_at = now

    def gone(self, name: str) -> None:
        """Give back a claim, or a credit, that is no longer wanted: others may have its room at once."""
        standing = [claim for claim in self._note.waits if claim.id != name]
        if len(standing) < len(self._note.waits):
            self._note.waits = standing  # the leader has not heard of it
        else:
            self._note.gone.append(name)
            self.due_at = -math.inf

    def sent(self, name: str, now: float) -> None:
        """Report that it was sent only now."""
        self._note.sent.append((name, now))
        self._later(now)

    def completed(self, completion: Completion, now: float, *, is_urgent: bool) -> None:
        """Report that it was answered, or is lost."""
        self._note.completed.append(completion)
        if is_urgent:
            self.due_at = now
        else:
            self._later(now)

    def wants(self, credits_wanted: int, now: float) -> None:
        """Ask for credits."""
        self._note.wants = credits_wanted
        self._later(now)

    def _later(self, now: float) -> None:
        self.due_at = min(self.due_at, now + _LATER_S)


class MemberPacer:
    """Paces one of several gateways that share a key. `own` is the pacer of this gateway.

    `outbox` is what the leader must learn; `leader` is set where this very process leads.
    """

    def __init__(self, settings: PacerSettings, chance: Callable[[], float], name: str) -> None:
        self.own = Pacer(settings, chance)
        self.name = name
        self.outbox = Outbox()
        self.leader: Leader | None = None
        self.common = SharedLimit()
        self.is_shared = False
        self._asked: dict[str, Claim] = {}  # in the queue, and the leader knows
        self._granted: list[str] = []
        self._rejected: list[RejectedClaim] = []
        self._credits: deque[tuple[str, float]] = deque()  # and until when each is good
        self._names: dict[str, str] = {}  # what the leader calls those that were let go
        self._alone_since = -math.inf  # what was sent since then the leader cannot know

    @property
    def settings(self) -> PacerSettings:
        """How many may wait, and the limits that are published."""
        return self.own.settings

    def adopt(self, settings: PacerSettings) -> None:
        """Go by other settings from now on; what limits all share is the leader's to say."""
        shared = self.own.limits
        self.own.adopt(settings)
        if self.is_shared:
            self.own.believe(shared)
        if self.leader is not None:
            self.leader.adopt(settings)

    def share(self, now: float) -> None:
        """Follow a leader that is new to this pacer, and report everything to it."""
        self._reset()
        self.is_shared = True
        self._asked = {claim.id: claim for claim in self.own.waiting()}
        self.outbox.begin(list(self._asked.values()), self._spent(now), now)
        self._alone_since = -math.inf

    def go_alone(self, now: float) -> None:
        """Decide alone from now on, carefully."""
        self._reset()
        self.outbox.clear()
        if self.is_shared:
            self._alone_since = now
            limits = shares(self.common.limits, self.common.replicas, is_alone=True)
            self.own.believe(limits, self._own_at_a_time())
            self.own.pace_waiting()
        self.is_shared = False

    def know(self, common: SharedLimit) -> None:
        """Take over how the leader sees the limit."""
        self.common = common
        if self.is_shared:
            self.own.believe(shares(common.limits, common.replicas, is_alone=False))

    def take_grant(self, grant: Grant, now: float) -> None:
        """Take in the leader's decisions; `release` carries them out.

        A grant for what left the queue meanwhile is given back, so that the leader holds no room for it.
        """
        under_way = self._names.values()
        for name in grant.go:
            if name in self._asked:
                self._granted.append(name)
            elif name not in under_way:
                self.outbox.gone(name)
        self._rejected += grant.rejected
        self._credits.extend((name, now + _CREDIT_S) for name in grant.credits)

    def goes_at_once(self, claim: Claim, now: float) -> bool:
        """Let a claim go on a credit, if nobody waits here."""
        if not self.is_shared:
            return self.own.goes_at_once(claim, now)
        if self.own.depth or now > claim.give_up_at or self.own.is_paused(now):
            return False
        if self.own.must_wait_for_serial(claim):
            return False
        name = self._place(claim, now)
        if name is None:
            return False
        self._let_go(claim, name, now)
        return True

    def enter(self, claim: Claim, now: float) -> Rejection | None:
        """Take a claim into the queue, and tell the leader."""
        rejection = self.own.enter(claim, now)
        if rejection is None and self.is_shared:
            self._asked[claim.id] = claim
            self.outbox.waits(claim, now)
        return rejection

    def outlasted(self, claim: Claim, now: float) -> Rejection | None:
        """Return why a claim is refused that cannot wait for the end of a pause, None if it can."""
        return self.own.outlasted(claim, now)

    def leave(self, claim: Claim) -> None:
        """Forget a claim whose bot hung up, here and at the leader."""
        self.own.leave(claim)
        self._drop(claim.id)

    def sent(self, claim: Claim, now: float) -> None:
        """Count what was let go from now on: its first byte leaves."""
        late_s = self.own.sent(claim, now)
        name = self._names.get(claim.id)
        if name is not None and (late_s > _LATE_S or name != claim.id):
            self.outbox.sent(name, now)

    def release(self, now: float) -> Release:
        """Return what to do now, as the leader or the careful guess says.

        Each claim leaves the queue by one of four ways, in this order: its time is over, the leader rejected
        it, the leader let it go, it shares an identical read. What has left is no longer in `_asked`, so no
        other way takes it again.
        """
        if not self.is_shared:
            return self.own.release(now)
        rejected = self.own.expire(now)
        for one in rejected:
            self._drop(one.claim.id)
        rejected += self._take_rejected()
        go, shared, again_at = self._take_granted(now)
        return Release(tuple(go), tuple(rejected), self.own.next_look(again_at), tuple(shared))

    def answered(self, claim: Claim, now: float, reply: LimitReply) -> None:
        """Pass on what came back; a pause begins here at once."""
        if not self.is_shared:
            self.own.answered(claim, now, reply)
            return
        sent_at = self.own.settle(claim, now, reply)  # learning is the leader's
        if reply.is_refusal:
            self._void_credits()
        name = self._names.pop(claim.id, None)
        if name is not None:
            is_urgent = name == claim.id or reply.is_refusal
            self.outbox.completed(Completion(name, reply, sent_at, now), now, is_urgent=is_urgent)

    def is_paused(self, now: float) -> bool:
        """Return whether nothing may be sent, not even what was let go a moment ago."""
        return self.own.is_paused(now)

    @property
    def paused_until(self) -> float:
        """The end of the last pause, minus infinity where there was none."""
        return self.own.paused_until

    def hold(self, until: float) -> None:
        """Send nothing before `until`, and then nothing on credit that was lent before the limit was met."""
        if until > self.paused_until:
            self._void_credits()
        self.own.hold(until)
        if self.leader is not None:
            self.leader.pacer.hold(until)

    def credit_ends_at(self) -> float:
        """Return when the oldest credit goes back unused, infinity without one."""
        return self._credits[0][1] if self._credits else math.inf

    def return_credits(self, now: float) -> None:
        """Give back the credits that were not needed."""
        while self._credits and self._credits[0][1] <= now:
            self.outbox.gone(self._credits.popleft()[0])

    def status(self, now: float) -> PacerStatus:
        """Return what there is to see: the limit as all share it, or the part that is used alone."""
        own = self.own.status(now)
        if self.leader is not None:
            of_all = self.leader.pacer.status(now)
            return replace(own, limits=of_all.limits, at_a_time=of_all.at_a_time, spent_s=of_all.spent_s)
        if self.is_shared:
            return replace(own, limits=self.common.statuses, at_a_time=self.common.at_a_time)
        if self.common.limits:
            return replace(own, limits=tuple(map(_as_a_part, own.limits)))
        return own

    def snapshot(self, now: float) -> memory.Snapshot:
        """Return what was learned of the whole limit."""
        return memory.snapshot(self.known(), now)

    def known(self) -> list[Limit]:
        """Return the whole limit, as the last leader or the journal left it."""
        if self.leader is not None:
            return self.leader.pacer.limits
        return list(self.common.limits)

    def restore(self, kept: Sequence[Mapping[str, float]], now: float) -> None:
        """Start from a snapshot."""
        self.own.restore(kept, now)
        if not self.settings.known:
            self.common = replace(self.common, limits=tuple(self.own.limits))

    def _take_rejected(self) -> list[Rejection]:
        """Take out of the queue what the leader rejected."""
        from_leader, self._rejected = self._rejected, []
        rejected = []
        for one in from_leader:
            claim = self._asked.pop(one.name, None)
            if claim is not None:
                self.own.leave(claim)
                rejected.append(Rejection(claim, one.slug, one.detail, one.retry_after_s))
        return rejected

    def _take_granted(self, now: float) -> tuple[list[Claim], list[tuple[Claim, Claim]], float | None]:
        """Take what the leader let go out of the queue; return it, who shares it, and when to look again."""
        if self._granted and now < self.paused_until <= now + _SOON_S:
            return [], [], self.paused_until
        granted, self._granted = dict.fromkeys(self._granted), []
        claims = [claim for name in granted if (claim := self._asked.get(name)) is not None]
        if self.is_paused(now):  # it was granted before the pause was known: ask once more
            for claim in claims:
                self.outbox.gone(claim.id)
                self.outbox.waits(claim, now)
            return [], [], None
        go: list[Claim] = []
        shared: list[tuple[Claim, Claim]] = []
        for claim in sorted(claims, key=lambda claim: claim.lane is not Lane.CANCEL):
            if claim.id not in self._asked:  # it went along with one that is alike
                continue
            if self.own.must_wait_for_serial(claim):  # it keeps its grant
                self._granted.append(claim.id)
                continue
            del self._asked[claim.id]
            self._let_go(claim, claim.id, now)
            go.append(claim)
            along = self.own.go_along(claim)
            for one, _ in along:
                self._drop(one.id)
            shared += along
        return go, shared, None

    def _let_go(self, claim: Claim, name: str, now: float) -> None:
        self.own.let_go(claim, now)
        self._names[claim.id] = name

    def _place(self, claim: Claim, now: float) -> str | None:
        """Return the name of a place that a claim may take at once."""
        if self.leader is not None:
            return claim.id if self.leader.goes_at_once(self.name, claim, now) else None
        self.return_credits(now)
        name = self._credits.popleft()[0] if self._credits and claim.cost == 1 else None
        wanted = min(2 * int(self.own.sent_cost(now - _FORESIGHT_S)) + _LEAST_CREDITS, _MOST_CREDITS)
        if len(self._credits) <= wanted / 2:
            self.outbox.wants(wanted - len(self._credits), now)
        return name

    def _void_credits(self) -> None:
        for name, _ in self._credits:
            self.outbox.gone(name)
        self._credits.clear()

    def _drop(self, claim_id: str) -> None:
        name = self._names.pop(claim_id, None)
        if self._asked.pop(claim_id, None) is not None or name is not None:
            self.outbox.gone(name or claim_id)

    def _spent(self, now: float) -> list[tuple[float, float]]:
        """Return what was sent and the leader may not know of, in buckets: seconds ago, and cost."""
        longest_s = max((limit.window for limit in self.common.limits), default=_LONGEST_S)
        since = max(self._alone_since, now - min(longest_s, _LONGEST_S))
        length_s = (now - since) / _BUCKETS
        ends = [since + length_s * (number + 1) for number in range(_BUCKETS)]
        found = [(now - end, self.own.sent_cost(end - length_s, end)) for end in ends]
        return [(age_s, cost) for age_s, cost in found if cost > 0]

    def _own_at_a_time(self) -> int | None:
        at_a_time = self.common.at_a_time
        return None if at_a_time is None else max(1, at_a_time // self.common.replicas)

    def _reset(self) -> None:
        self._asked.clear()
        self._granted.clear()
        self._rejected.clear()
        self._credits.clear()
        self._names.clear()


def _as_a_part(limit: LimitStatus) -> LimitStatus:
    words = f"{limit.words.replace(', published', '')}, this gateway's part while sharing fails"
    return replace(limit, words=words)
