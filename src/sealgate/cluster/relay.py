"""The relay of one gateway: what it reports to the leader, and what the leader decided for it.

Its pacer asks it only while the limit is shared. Without a leader the pacer decides alone, by a careful part
of the last known limit.
"""

import math
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from sealgate.cluster.messages import Completion, Grant, Note, SharedLimit, shares
from sealgate.limits import Limit
from sealgate.limits.claims import Claim, LimitReply, Rejection
from sealgate.limits.pacer import Pacer, PacerSettings
from sealgate.limits.relay import Decisions
from sealgate.limits.status import LimitStatus, PacerStatus
from sealgate.venues.routes import Lane

if TYPE_CHECKING:
    from sealgate.cluster.leader import Leader


_LATER_S = 0.01  # a report that holds up no request may wait for others
_LATE_S = 0.005  # the leader must know of a claim that was sent so long after it was let go
_SOON_S = 0.05  # a grant outlasts a pause that ends so soon
_FORESIGHT_S = 0.1  # credits are for twice what was sent within that time
_CREDIT_S = 1.0  # a credit that is unused for so long goes back, as it takes up room
_MOST_CREDITS = 64
_LEAST_CREDITS = 2
_BUCKETS = 32  # in a report of what was spent
_LONGEST_S = 3600.0


class LeaderRelay:
    """Relays the claims of one gateway's pacer to the leader.

    `note` is the next report, due at `due_at`. `leader` is set where this very process leads.
    """

    def __init__(self, pacer: Pacer, name: str) -> None:
        self.pacer = pacer
        self.name = name
        self.leader: Leader | None = None
        self.common = SharedLimit()
        self.note = Note()
        self.due_at = math.inf
        self._asked: dict[str, Claim] = {}  # claims in the queue that were reported
        self._granted: dict[str, Claim] = {}  # those of them that may go
        self._rejected: dict[str, Rejection] = {}
        self._credits: deque[tuple[str, float]] = deque()  # names, and until when each is good
        self._names: dict[str, str] = {}  # what the leader calls each claim that was let go
        self._alone_since = -math.inf  # what was sent since then was not reported

    @property
    def is_shared(self) -> bool:
        """Whether a leader decides; else the pacer does, alone."""
        return self.pacer.relay is not None

    def share(self, now: float) -> None:
        """Follow a new leader, and report to it all that this gateway has."""
        self._reset()
        self.pacer.relay = self
        self._asked = {claim.id: claim for claim in self.pacer.waiting()}
        self.note = Note(is_new=True, waits=[*self._asked.values()], spent=self._spent(now))
        self.due_at = now
        self._alone_since = -math.inf

    def go_alone(self, now: float) -> None:
        """Let the pacer decide alone from now on, by a careful part of the limit."""
        self._reset()
        if self.is_shared:
            self._alone_since = now
            replicas, at_a_time = self.common.replicas, self.common.at_a_time
            if at_a_time is not None:
                at_a_time = max(1, at_a_time // replicas)
            self.pacer.believe(shares(self.common.limits, replicas, is_alone=True), at_a_time)
            self.pacer.pace_waiting()
        self.pacer.relay = None

    def know(self, common: SharedLimit) -> None:
        """Take over how the leader sees the limit."""
        self.common = common
        if self.is_shared:
            self.pacer.believe(shares(common.limits, common.replicas, is_alone=False))

    def adopt(self, settings: PacerSettings) -> None:
        """Pass on other settings: what limits all gateways share is the leader's to say."""
        if self.is_shared:
            self.know(self.common)
        if self.leader is not None:
            self.leader.adopt(settings)

    def restored(self) -> None:
        """Take what the pacer learned in an earlier run for the whole limit."""
        if not self.pacer.settings.known:
            self.common = replace(self.common, limits=tuple(self.pacer.limits))

    def take_note(self) -> Note:
        """Return the note to the leader, and begin the next one."""
        note, self.note, self.due_at = self.note, Note(), math.inf
        return note

    def take_grant(self, grant: Grant, now: float) -> None:
        """Take in the leader's decisions, for the pacer to ask for.

        A grant for what left the queue meanwhile is given back, so that the leader holds no room for it.
        """
        for name in grant.go:
            if (claim := self._asked.get(name)) is not None:
                self._granted[name] = claim
            elif name not in self._names.values():
                self._give_back(name)
        for one in grant.rejected:
            if (claim := self._asked.get(one.name)) is not None:
                self._rejected[one.name] = Rejection(claim, one.slug, one.detail, one.retry_after_s)
        self._credits.extend((name, now + _CREDIT_S) for name in grant.credits)

    def goes_at_once(self, claim: Claim, now: float) -> bool:
        """Let a claim go on a credit; in the leader's own process, ask the leader."""
        if self.leader is not None:
            if not self.leader.goes_at_once(self.name, claim, now):
                return False
            self._names[claim.id] = claim.id
            return True
        self.return_credits(now)
        name = self._credits.popleft()[0] if self._credits and claim.cost == 1 else None
        wanted = min(2 * int(self.pacer.sent_cost(now - _FORESIGHT_S)) + _LEAST_CREDITS, _MOST_CREDITS)
        if len(self._credits) <= wanted / 2:
            self.note.wants = wanted - len(self._credits)
            self._report(now + _LATER_S)
        if name is None:
            return False
        self._names[claim.id] = name
        return True

    def enter(self, claim: Claim, now: float) -> None:
        """Ask the leader for a claim that waits."""
        self._asked[claim.id] = claim
        self.note.waits.append(claim)
        self._report(now)

    def leave(self, claim: Claim) -> None:
        """Withdraw a claim that waits, or give back its grant or credit."""
        name = self._names.pop(claim.id, None)
        self._granted.pop(claim.id, None)
        self._rejected.pop(claim.id, None)
        if self._asked.pop(claim.id, None) is not None or name is not None:
            self._give_back(name or claim.id)

    def decisions(self, now: float) -> Decisions:
        """Return what the leader granted, cancels first, and rejected."""
        rejected = [*self._rejected.values()]
        for name in self._rejected:
            del self._asked[name]
            self._granted.pop(name, None)
        self._rejected.clear()
        until = self.pacer.paused_until
        # There are three cases:
        # 1. No pause: what was granted goes.
        if now >= until:
            granted = sorted(self._granted.values(), key=lambda claim: claim.lane is not Lane.CANCEL)
            return Decisions(granted, rejected)
        # 2. A pause that is over soon: what was granted goes then.
        if until <= now + _SOON_S:
            return Decisions([], rejected, until if self._granted else None)
        # 3. A longer pause: it was granted before the pause was known, so the leader is asked once more.
        for claim in self._granted.values():
            self._give_back(claim.id)
            self.enter(claim, now)
        self._granted.clear()
        return Decisions([], rejected)

    def go(self, claim: Claim) -> None:
        """Note that a granted claim goes."""
        del self._asked[claim.id], self._granted[claim.id]
        self._names[claim.id] = claim.id

    def sent(self, claim: Claim, now: float, late_s: float) -> None:
        """Report that a claim is sent now, if the leader counts it from another time."""
        name = self._names.get(claim.id)
        if name is not None and (late_s > _LATE_S or name != claim.id):
            self.note.sent.append((name, now))
            self._report(now + _LATER_S)

    def answered(self, claim: Claim, sent_at: float, now: float, reply: LimitReply) -> None:
        """Report the reply: at once if it may hold up others."""
        if reply.is_refusal:
            self._void_credits()
        name = self._names.pop(claim.id, None)
        if name is not None:
            self.note.completed.append(Completion(name, reply, sent_at, now))
            is_urgent = name == claim.id or reply.is_refusal
            self._report(now if is_urgent else now + _LATER_S)

    def hold(self, until: float) -> None:
        """Void the credits, which were lent before the pause was met; tell the leader in this process."""
        if until > self.pacer.paused_until:
            self._void_credits()
        if self.leader is not None:
            self.leader.pacer.hold(until)

    def credit_ends_at(self) -> float:
        """Return when the oldest credit goes back unused, infinity without one."""
        return self._credits[0][1] if self._credits else math.inf

    def return_credits(self, now: float) -> None:
        """Give back the credits that were not needed."""
        while self._credits and self._credits[0][1] <= now:
            self._give_back(self._credits.popleft()[0])

    def limits(self) -> list[Limit]:
        """Return the whole limit, as the leader, the last one or the journal knows it."""
        return self.leader.pacer.limits if self.leader is not None else list(self.common.limits)

    def shown(self, own: PacerStatus, now: float) -> PacerStatus:
        """Return the pacer's own status with the limit that all share, or the part that is used alone."""
        if self.leader is not None:
            of_all = self.leader.pacer.status(now)
            return replace(own, limits=of_all.limits, at_a_time=of_all.at_a_time, spent_s=of_all.spent_s)
        if self.is_shared:
            return replace(own, limits=self.common.statuses, at_a_time=self.common.at_a_time)
        if self.common.limits:
            return replace(own, limits=tuple(map(_as_a_part, own.limits)))
        return own

    def _report(self, at: float) -> None:
        self.due_at = min(self.due_at, at)

    def _give_back(self, name: str) -> None:
        """Give back a claim or a credit: others may have its room at once."""
        waits = [claim for claim in self.note.waits if claim.id != name]
        if len(waits) < len(self.note.waits):
            self.note.waits = waits  # the leader has not heard of it
        else:
            self.note.gone.append(name)
            self.due_at = -math.inf

    def _void_credits(self) -> None:
        for name, _ in self._credits:
            self._give_back(name)
        self._credits.clear()

    def _spent(self, now: float) -> list[tuple[float, float]]:
        """Return what was sent and the leader may not know of, in buckets: seconds ago, and cost."""
        longest_s = max((limit.window for limit in self.common.limits), default=_LONGEST_S)
        since = max(self._alone_since, now - min(longest_s, _LONGEST_S))
        length_s = (now - since) / _BUCKETS
        ends = [since + length_s * (number + 1) for number in range(_BUCKETS)]
        found = [(now - end, self.pacer.sent_cost(end - length_s, end)) for end in ends]
        return [(age_s, cost) for age_s, cost in found if cost > 0]

    def _reset(self) -> None:
        """Forget what was agreed with a leader that leads no longer."""
        self.take_note()
        self._asked.clear()
        self._granted.clear()
        self._rejected.clear()
        self._credits.clear()
        self._names.clear()


def _as_a_part(limit: LimitStatus) -> LimitStatus:
    words = f"{limit.words.replace(', published', '')}, this gateway's part while sharing fails"
    return replace(limit, words=words)
