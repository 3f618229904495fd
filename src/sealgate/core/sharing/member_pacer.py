"""The pacer of a gateway that shares a key: it asks the lead while there is one, and else goes by itself.

The line, the deadlines and the gate are those of every Pacer, so a pause that was heard of holds whatever
becomes of Redis, and who waits keeps its place when the sharing begins or ends. Only *who may go* is another
question: shared, it is what the lead grants and what credits are at hand; alone, a careful share of what was
last known of the limit.
"""

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sealgate.core.pacing import memory
from sealgate.core.pacing.claims import Claim, Fate, LimitReply, Refused, Release
from sealgate.core.pacing.gate import usable
from sealgate.core.pacing.limit import Limit
from sealgate.core.pacing.pacer import Pacer, PacerSettings
from sealgate.core.pacing.status import LimitStatus, PacerStatus
from sealgate.core.sharing.handover import shares
from sealgate.core.sharing.lead import CREDIT_S, Lead
from sealgate.core.sharing.notes import Grant, Over
from sealgate.core.sharing.outbox import Outbox

_LATE_S = 0.005  # sent so long after it was let go, the lead must know: it counts by the time of sending
_SOON_S = 0.05  # a pause that ends so soon is sat out with the turn in hand
_FORESIGHT_S = 0.1  # credits are for what was sent within that time, twice
_MOST_CREDITS = 64
_LEAST_CREDITS = 2
_BUCKETS = 32  # that what was spent is told in
_LONGEST_S = 3600.0


@dataclass(frozen=True, slots=True)
class SharedLimit:
    """What is known of the limit of all: as believed, as shown, requests at a time, and how many share it."""

    limits: tuple[Limit, ...] = ()
    statuses: tuple[LimitStatus, ...] = ()
    at_a_time: int | None = None
    replicas: int = 1


class MemberPacer(Pacer):
    """A Pacer that may be one of several for its key. `outbox` is what the lead must hear.

    `lead` is set where this very process leads.
    """

    def __init__(self, settings: PacerSettings, chance: Callable[[], float], name: str) -> None:
        super().__init__(settings, chance)
        self.name = name
        self.outbox = Outbox()
        self.lead: Lead | None = None
        self.common = SharedLimit()
        self.is_shared = False
        self._asked: dict[str, Claim] = {}  # in line, and the lead knows
        self._granted: list[str] = []
        self._credits: deque[tuple[str, float]] = deque()  # and until when each is good
        self._names: dict[str, str] = {}  # what the lead calls those that were let go
        self._alone_since = -math.inf  # what was sent since then the lead cannot know

    def adopt(self, settings: PacerSettings) -> None:
        """Go by other settings from now on; what limits all share is the lead's to say."""
        shared = self.limits
        super().adopt(settings)
        if self.is_shared:
            self.believe(shared)
        if self.lead is not None:
            self.lead.adopt(settings)

    def share(self, now: float) -> None:
        """Go by a lead that is new to this pacer from now on: tell it everything."""
        self._reset()
        self.is_shared = True
        self._asked = {claim.id: claim for claim in self._line.claims()}
        self.outbox.begin(list(self._asked.values()), self._spent(now), now)
        self._alone_since = -math.inf

    def go_alone(self, now: float) -> None:
        """Go by oneself from now on, carefully."""
        self._reset()
        self.outbox.clear()
        if self.is_shared:
            self._alone_since = now
            self.believe(shares(self.common.limits, self.common.replicas, is_alone=True))
            self._paced = {self._class(claim) for claim in self._line.claims()}
        self.is_shared = False

    def know(self, common: SharedLimit) -> None:
        """Hear how the limit is seen by the lead."""
        self.common = common
        if self.is_shared:
            self.believe(shares(common.limits, common.replicas, is_alone=False))

    def take_grant(self, grant: Grant, now: float) -> None:
        """Hear what may go; `release` lets it go."""
        self._granted += grant.go
        self._credits.extend((name, now + CREDIT_S) for name in grant.credits)

    def goes_at_once(self, claim: Claim, now: float) -> bool:
        """Let a claim go on a credit, if nobody waits here."""
        if not self.is_shared:
            return super().goes_at_once(claim, now)
        if self._line or now > claim.give_up_at or self.is_paused(now):
            return False
        name = self._place(claim, now)
        if name is None:
            return False
        self._note(claim, now)
        self._names[claim.id] = name
        return True

    def enter(self, claim: Claim, now: float) -> Refused | None:
        """Take a claim into the line, and tell the lead."""
        refused = super().enter(claim, now)
        if refused is None and self.is_shared:
            self._asked[claim.id] = claim
            self.outbox.waits(claim, now)
        return refused

    def leave(self, claim: Claim) -> None:
        """Forget a claim whose bot hung up, here and at the lead."""
        super().leave(claim)
        self._drop(claim.id)

    def sent(self, claim: Claim, now: float) -> None:
        """Hear that the first byte of what was let go is written only now."""
        is_late = now - self._sent[claim.id] > _LATE_S
        super().sent(claim, now)
        name = self._names.get(claim.id)
        if name is not None and (is_late or name != claim.id):
            self.outbox.sent(name, now)

    def release(self, now: float) -> Release:
        """Return what to do now, as the lead or the careful guess says."""
        release = super().release(now)
        for refused in release.refused:
            self._drop(refused.claim.id)
        return release

    def answered(self, claim: Claim, now: float, reply: LimitReply) -> None:
        """Pass on what came back; a pause begins here at once."""
        if not self.is_shared:
            super().answered(claim, now, reply)
            return
        sent_at = self._sent.pop(claim.id)
        if reply.fate is Fate.LIMITED:
            self._gate = self._gate.refused(now, usable(reply.retry_after_s), self._chance(), is_scout=False)
            self._envelope.untook(claim, sent_at)
            self._void_credits()
        else:
            self._envelope.lost(claim)  # learning is the lead's: here it only counts
        name = self._names.pop(claim.id, None)
        if name is not None:
            is_urgent = name == claim.id or reply.fate is Fate.LIMITED
            self.outbox.over(Over(name, reply, sent_at, now), now, is_urgent=is_urgent)

    def hold(self, until: float) -> None:
        """Send nothing before `until`, and then nothing on credit that was lent before the limit was met."""
        if until > self.paused_until:
            self._void_credits()
        super().hold(until)

    def credit_ends_at(self) -> float:
        """Return when the oldest credit goes back unused, infinity without one."""
        return self._credits[0][1] if self._credits else math.inf

    def return_credits(self, now: float) -> None:
        """Give back the credits that were not needed."""
        while self._credits and self._credits[0][1] <= now:
            self.outbox.gone(self._credits.popleft()[0])

    def status(self, now: float) -> PacerStatus:
        """Return what there is to see: the limit as all share it, or the part that is used alone."""
        own = super().status(now)
        if self.lead is not None:
            of_all = self.lead.pacer.status(now)
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
        """Return the whole limit, as the last lead or the journal left it."""
        if self.lead is not None:
            return self.lead.pacer.limits
        return list(self.common.limits)

    def restore(self, kept: Sequence[Mapping[str, float]], now: float) -> None:
        """Start from a snapshot."""
        super().restore(kept, now)
        if kept and not self.settings.known:
            self.common = replace(self.common, limits=tuple(self.limits))

    def _let_go(self, now: float) -> tuple[list[Claim], float | None]:
        if not self.is_shared:
            return super()._let_go(now)
        left_s = self._gate.left_s(now)
        if 0 < left_s <= _SOON_S and self._granted:
            return [], self._gate.until
        granted, self._granted = self._granted, []
        claims = [claim for name in granted if (claim := self._asked.pop(name, None)) is not None]
        if left_s:  # it was granted before the pause was known: ask once more
            for claim in claims:
                self.outbox.gone(claim.id)
                self._asked[claim.id] = claim
                self.outbox.waits(claim, now)
            return [], None
        for claim in claims:
            self._line.remove(claim)
            self._note(claim, now)
            self._names[claim.id] = claim.id
        return claims, None

    def _place(self, claim: Claim, now: float) -> str | None:
        """Return the name of a place that a claim may take at once."""
        if self.lead is not None:
            return claim.id if self.lead.goes_at_once(self.name, claim, now) else None
        self.return_credits(now)
        name = self._credits.popleft()[0] if self._credits and claim.cost == 1 else None
        wanted = 2 * int(self._envelope.log.all.count(now - _FORESIGHT_S)) + _LEAST_CREDITS
        wanted = min(wanted, _MOST_CREDITS)
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
        """Return what was sent and the lead may not know of, in buckets: seconds ago, and cost."""
        longest_s = max((limit.window for limit in self.common.limits), default=_LONGEST_S)
        since = max(self._alone_since, now - min(longest_s, _LONGEST_S))
        log, length_s = self._envelope.log.all, (now - since) / _BUCKETS
        ends = [since + length_s * (number + 1) for number in range(_BUCKETS)]
        found = [(now - end, log.count(end - length_s, end)) for end in ends]
        return [(age_s, cost) for age_s, cost in found if cost > 0]

    def _reset(self) -> None:
        self._asked.clear()
        self._granted.clear()
        self._credits.clear()
        self._names.clear()


def _as_a_part(limit: LimitStatus) -> LimitStatus:
    words = f"{limit.words.replace(', published', '')}, the part of one gateway while they cannot share"
    return replace(limit, words=words)
