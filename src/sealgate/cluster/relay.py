"""The relay of one gateway: what it reports to the leader, and what the leader decided for it.

Its pacer asks it only while the limits are shared. Without a leader the pacer decides alone, by a careful
part of the last known limits of each pool.
"""

import math
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING

from sealgate.cluster.messages import Completion, Grant, Note, Passage, SharedLimits, SharedPool, shares
from sealgate.limits import LimitEstimator
from sealgate.limits import snapshots as memory
from sealgate.limits.claims import Claim, LimitReply, Rejection
from sealgate.limits.pacer import Pacer
from sealgate.limits.pool import Pool
from sealgate.limits.pools import PacerSettings
from sealgate.limits.relay import Decisions
from sealgate.limits.snapshots import Snapshot
from sealgate.limits.status import LimitStatus, PacerStatus, PoolStatus
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
        self.common = SharedLimits()
        self.note = Note()
        self.due_at = math.inf
        self._asked: dict[str, Claim] = {}  # claims in the queue that were reported
        self._granted: dict[str, Claim] = {}  # those of them that may go
        self._rejected: dict[str, Rejection] = {}
        self._credits: dict[str, tuple[float, Passage]] = {}  # by name: until when each is good, and for what
        self._at_hand: dict[Passage, deque[str]] = {}  # their names, by what they are for
        self._names: dict[str, str] = {}  # what the leader calls each claim that was let go
        self._alone_since = -math.inf  # what was sent since then was not reported
        pacer.pools.on_new = self._believe_part

    @property
    def is_shared(self) -> bool:
        """Whether a leader decides; else the pacer does, alone."""
        return self.pacer.relay is not None

    @property
    def has_part(self) -> bool:
        """Whether the pacer knows of a part only: it shares, or has shared and goes alone."""
        return self.is_shared or self._alone_since > -math.inf

    def share(self, now: float) -> None:
        """Follow a new leader, and report to it all that this gateway has."""
        self._reset()
        self.pacer.relay = self
        self._asked = {claim.id: claim for claim in self.pacer.waiting()}
        self.note = Note(is_new=True, waits=[*self._asked.values()], spent=self._spent(now))
        self.due_at = now
        self._alone_since = -math.inf
        self._believe_parts()

    def go_alone(self, now: float) -> None:
        """Let the pacer decide alone from now on, by a careful part of the limits."""
        self._reset()
        if self.is_shared:
            self._alone_since = now
            self.pacer.relay = None
            self._believe_parts()
            self.pacer.pace_waiting()

    def know(self, common: SharedLimits) -> None:
        """Take over how the leader sees the limits; what it says nothing of stays as it was."""
        ours = {place: one for place, one in self.common.pools.items() if place in self.pacer.pools.by_place}
        self.common = replace(common, pools=ours | common.pools)
        if self.is_shared:
            self._believe_parts()

    def adopt(self, settings: PacerSettings) -> None:
        """Pass on other settings: what limits all gateways share is the leader's to say."""
        if self.is_shared:
            self._believe_parts()
        if self.leader is not None:
            self.leader.adopt(settings)

    def restored(self) -> None:
        """Take what the pacer learned in an earlier run for the whole limits."""
        learned = {
            place: SharedPool(tuple(pool.estimator.limits))
            for place, pool in self.pacer.pools.by_place.items()
            if not pool.settings.known
        }
        self.common = replace(self.common, pools=self.common.pools | learned)

    def whole(self, place: str) -> SharedPool:
        """Return the whole limits of a pool, as a leader, the journal or the settings have them."""
        if self.leader is not None and place in self.leader.pacer.pools.by_place:
            estimator = self.leader.pacer.pools.by_place[place].estimator
            return SharedPool(tuple(estimator.limits), (), estimator.at_a_time)
        if place in self.common.pools:
            return self.common.pools[place]
        return SharedPool(tuple(LimitEstimator(self.pacer.settings.of(place).known).limits))

    def _believe_parts(self) -> None:
        for pool in self.pacer.pools.by_place.values():
            self._believe_part(pool)

    def _believe_part(self, pool: Pool) -> None:
        """Let a pool go by this gateway's part, a careful one if it goes alone."""
        if not self.has_part:
            return
        whole, replicas = self.whole(pool.place), self.common.replicas
        limits = shares(whole.limits, replicas, is_alone=not self.is_shared)
        if self.is_shared or whole.at_a_time is None:
            pool.estimator.believe(limits)
        else:
            pool.estimator.believe(limits, max(1, whole.at_a_time // replicas))

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
        for passage, names in grant.credits.items():
            for name in names:
                if name not in self._credits:
                    self._credits[name] = now + _CREDIT_S, passage
                    self._at_hand.setdefault(passage, deque()).append(name)

    def goes_at_once(self, claim: Claim, now: float) -> bool:
        """Let a claim go on a credit; in the leader's own process, ask the leader."""
        if self.leader is not None:
            if not self.leader.goes_at_once(self.name, claim, now):
                return False
            self._names[claim.id] = claim.id
            return True
        self.return_credits(now)
        passage = Passage(claim.pools, claim.subjects)
        names = self._at_hand.get(passage)
        name = self._take_credit(names[0]) if names and claim.cost == 1 else None
        sent = min(self.pacer.pools.at(place).sent_cost(now - _FORESIGHT_S) for place in claim.pools)
        wanted = min(2 * int(sent) + _LEAST_CREDITS, _MOST_CREDITS)
        at_hand = len(self._at_hand.get(passage, ()))
        if at_hand <= wanted / 2:
            self.note.wants[passage] = wanted - at_hand
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
        granted, ask_again_at = [], math.inf
        for claim in sorted(self._granted.values(), key=lambda claim: claim.lane is not Lane.CANCEL):
            until = self.pacer.pools.paused_until(claim.pools, claim.subjects)
            # There are three cases:
            # 1. No pause: what was granted goes.
            if now >= until:
                granted.append(claim)
            # 2. A pause that is over soon: what was granted goes then.
            elif until <= now + _SOON_S:
                ask_again_at = min(ask_again_at, until)
            # 3. A longer pause: it was granted before the pause was known, so the leader is asked once more.
            else:
                del self._granted[claim.id]
                self._give_back(claim.id)
                self.enter(claim, now)
        return Decisions(granted, rejected, ask_again_at if ask_again_at < math.inf else None)

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
            self._void_credits(now)
        name = self._names.pop(claim.id, None)
        if name is not None:
            self.note.completed.append(Completion(name, reply, sent_at, now))
            is_urgent = name == claim.id or reply.is_refusal
            self._report(now if is_urgent else now + _LATER_S)

    def hold(self, place: str, until: float, now: float) -> None:
        """Void the credits that were lent before the pause was met; tell the leader in this process."""
        self._void_credits(now)
        if self.leader is not None:
            self.leader.pacer.hold(place, until, now)

    def credit_ends_at(self) -> float:
        """Return when the oldest credit goes back unused, infinity without one."""
        return next((until for until, _ in self._credits.values()), math.inf)

    def return_credits(self, now: float) -> None:
        """Give back the credits that were not needed."""
        while self.credit_ends_at() <= now:
            self._give_back(self._take_credit(next(iter(self._credits))))

    def snapshot(self, own: dict[str, Snapshot], now: float) -> dict[str, Snapshot]:
        """Return the pacer's own snapshot with the whole limits of its pools."""
        return {
            place: [*memory.snapshot(self.whole(place).limits, now), *(one for one in kept if "pause" in one)]
            for place, kept in own.items()
        }

    def shown(self, own: PacerStatus, now: float) -> PacerStatus:
        """Return the pacer's own status with the limits that all share, or the parts that are used alone."""
        return replace(own, pools={place: self._shown(place, one, now) for place, one in own.pools.items()})

    def _shown(self, place: str, own: PoolStatus, now: float) -> PoolStatus:
        if self.leader is not None and place in self.leader.pacer.pools.by_place:
            of_all = self.leader.pacer.pools.by_place[place].status(now)
            return replace(of_all, pause_s=own.pause_s, is_banned=own.is_banned)
        if self.is_shared:
            one = self.common.pools.get(place, SharedPool())
            return replace(own, limits=one.statuses, at_a_time=one.at_a_time)
        return replace(own, limits=tuple(map(_as_a_part, own.limits))) if self.has_part else own

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

    def _take_credit(self, name: str) -> str:
        """Take out the oldest credit of its kind."""
        _, passage = self._credits.pop(name)
        names = self._at_hand[passage]
        names.popleft()
        if not names:
            del self._at_hand[passage]
        return name

    def _void_credits(self, now: float) -> None:
        """Give back the credits for what is paused."""
        for passage in [one for one in self._at_hand if self.pacer.pools.paused_until(*one) > now]:
            for name in self._at_hand.pop(passage):
                del self._credits[name]
                self._give_back(name)

    def _spent(self, now: float) -> dict[str, list[tuple[float, float]]]:
        """Return what was sent and the leader may not know of, by place: seconds ago, and cost."""
        spent = {}
        for place, pool in self.pacer.pools.by_place.items():
            longest_s = max((limit.window for limit in self.whole(place).limits), default=_LONGEST_S)
            since = max(self._alone_since, now - min(longest_s, _LONGEST_S))
            length_s = (now - since) / _BUCKETS
            ends = [since + length_s * (number + 1) for number in range(_BUCKETS)]
            found = [(now - end, pool.sent_cost(end - length_s, end)) for end in ends]
            if buckets := [(age_s, cost) for age_s, cost in found if cost > 0]:
                spent[place] = buckets
        return spent

    def _reset(self) -> None:
        """Forget what was agreed with a leader that leads no longer."""
        self.take_note()
        self._asked.clear()
        self._granted.clear()
        self._rejected.clear()
        self._credits.clear()
        self._at_hand.clear()
        self._names.clear()


def _as_a_part(limit: LimitStatus) -> LimitStatus:
    words = f"{limit.words.replace(', published', '')}, this gateway's share while sharing fails"
    return replace(limit, words=words)
