"""The leader: one Pacer for the bots of all gateways, as a limit can only be learned from all of its use.

It treats the claims of other gateways like its own: one queue, fair shares among all bots, cancels before all
orders, and one of each pool, with one estimator and one scout after a pause. While nobody waits, members hold
a few credits: permits that are already counted as sent, so that a request need not ask.

A new leader first listens for a while, as members of the last one, or of none, report what they have sent.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from sealgate.cluster.messages import Completion, Grant, Note, Passage, RejectedClaim, SharedPool
from sealgate.limits.claims import Claim, Fate, LimitReply, Rejection
from sealgate.limits.pacer import Pacer
from sealgate.limits.pools import PacerSettings
from sealgate.venues.routes import Lane

LISTENS_S = 0.5  # longer than members take to notice a new leader
_LENT = 0.25  # of the smallest limit may be held as credits
_FREELY = 256  # credits while no limit is known


class _State(Enum):
    WAITING = "waiting"
    CREDIT = "credit"  # let go for a request to come
    GONE = "gone"  # let go, and its answer was not reported


@dataclass(slots=True)
class _Held:
    """A claim of a member until it was answered or given up, and how far it has come."""

    claim: Claim
    state: _State


class Leader:
    """The pacer of all gateways. It must `receive` the members' notes and `advance`; then it has `grants`."""

    def __init__(
        self,
        settings: PacerSettings,
        chance: Callable[[], float],
        known: Mapping[str, SharedPool],
        opens_at: float,
    ) -> None:
        self.pacer = Pacer(_unbounded(settings), chance)
        for place, one in known.items():
            if one.limits or one.at_a_time is not None:
                self.pacer.pools.at(place).estimator.believe(one.limits, one.at_a_time)
        self.look_at = opens_at
        self.grants: dict[str, Grant] = {}
        self._opens_at = opens_at
        self._is_open = False
        self._has_news = False  # after which other claims may go
        self._spent: dict[str, list[tuple[float, float]]] = {}  # by place
        self._held: dict[str, dict[str, _Held]] = {}  # by member, and by the member's name for it
        self._numbers = itertools.count(1)

    def adopt(self, settings: PacerSettings) -> None:
        """Go by other settings from now on."""
        self.pacer.pools.adopt(_unbounded(settings))

    def receive(self, member: str, note: Note, now: float) -> None:
        """Take in a note."""
        self._has_news = True
        if note.is_new:
            self.forget(member, now)
        held = self._held.setdefault(member, {})
        for name in note.gone:
            self._give_back(held, name)
        for name, at in note.sent:
            self._count_sent(held, name, at)
        for completion in note.completed:
            self._finish(held, completion)
        for place, spent in note.spent.items():
            self._count(place, spent, now)
        for claim in note.waits:
            self._give_up(held, claim.id, now)
            self._enter(member, claim, now)
        for passage, wants in note.wants.items():
            self._lend(member, passage, wants, now)

    def goes_at_once(self, member: str, claim: Claim, now: float) -> bool:
        """Let a claim of this very process go if none waits and there is room."""
        inner = replace(claim, id=f"{member} {claim.id}")
        if not self._opened(now) or not self.pacer.goes_at_once(inner, now):
            return False
        self._held.setdefault(member, {})[claim.id] = _Held(inner, _State.GONE)
        return True

    def forget(self, member: str, now: float) -> None:
        """Forget the claims of a member that is gone; what may have been sent stays counted."""
        self._has_news = True
        held = self._held.pop(member, {})
        for name in list(held):
            self._give_up(held, name, now)
        self.grants.pop(member, None)

    def members(self) -> tuple[str, ...]:
        """Return the members that have reported."""
        return tuple(self._held)

    def is_due(self, now: float) -> bool:
        """Return whether `advance` may have an effect."""
        return self._has_news or now >= self.look_at

    def advance(self, now: float) -> None:
        """Grant what may go now; `look_at` is when to call again, at the latest."""
        self._has_news = False
        if not self._opened(now):
            return
        release = self.pacer.release(now)
        for claim in release.go:
            self._grant_claim(claim)
        for rejection in release.rejected:
            self._reject(rejection)
        self.look_at = math.inf if release.look_again_at is None else release.look_again_at

    def take_grant(self, member: str) -> Grant:
        """Return what a member is granted since the last time."""
        return self.grants.pop(member, Grant())

    def _opened(self, now: float) -> bool:
        """Return whether all members were heard; the first time, count what they have sent."""
        if not self._is_open and now >= self._opens_at:
            self._is_open = True
            for place, spent in self._spent.items():
                for at, cost in sorted(spent):
                    self.pacer.pools.at(place).count_sent(at, cost)
        return self._is_open

    def _count(self, place: str, spent: Sequence[tuple[float, float]], now: float) -> None:
        if not self._is_open:
            self._spent.setdefault(place, []).extend((now - age_s, cost) for age_s, cost in spent)
        else:  # the log goes on in order: it counts as sent now, which is on the safe side
            self.pacer.pools.make_room()
            self.pacer.pools.at(place).count_sent(now, sum(cost for _, cost in spent))

    def _enter(self, member: str, claim: Claim, now: float) -> None:
        """Let a claim go, add it to the queue, or reject it.

        Claims that are alike stay apart here: the member that has their bots lets them go along.
        """
        inner = replace(claim, id=f"{member} {claim.id}", alike=None)
        self._held[member][claim.id] = _Held(inner, _State.WAITING)
        if self._is_open and self.pacer.goes_at_once(inner, now):
            self._grant_claim(inner)
        elif (rejection := self.pacer.enter(inner, now)) is not None:
            self._reject(rejection)

    def _grant_claim(self, claim: Claim) -> None:
        member, _, name = claim.id.partition(" ")
        self._held[member][name].state = _State.GONE
        self._grant(member).go.append(name)

    def _reject(self, rejection: Rejection) -> None:
        member, _, name = rejection.claim.id.partition(" ")
        del self._held[member][name]
        rejected = RejectedClaim(name, rejection.slug, rejection.detail, rejection.retry_after_s)
        self._grant(member).rejected.append(rejected)

    def _give_up(self, held: dict[str, _Held], name: str, now: float) -> None:
        """Forget the claim that a member had under a name; if it may have been sent, it stays counted."""
        if (one := held.get(name)) is not None and one.state is _State.GONE:
            del held[name]
            self.pacer.answered(one.claim, now, LimitReply(Fate.LOST))
        else:
            self._give_back(held, name)

    def _give_back(self, held: dict[str, _Held], name: str) -> None:
        if (one := held.pop(name, None)) is not None:
            self.pacer.leave(one.claim)

    def _count_sent(self, held: dict[str, _Held], name: str, at: float) -> Claim | None:
        """Count a claim from when its member sent it: the way over Redis is not the exchange's jitter."""
        one = held.get(name)
        if one is None or one.state is _State.WAITING:
            return None
        self.pacer.sent(one.claim, at)
        one.state = _State.GONE
        return one.claim

    def _finish(self, held: dict[str, _Held], completion: Completion) -> None:
        claim = self._count_sent(held, completion.name, completion.sent_at)
        if claim is not None:
            del held[completion.name]
            reply = completion.reply
            if reply.shuts_out not in claim.subjects:  # which no gateway says of what it sent
                reply = replace(reply, shuts_out="")
            self.pacer.answered(claim, completion.at, reply)

    def _lend(self, member: str, passage: Passage, wants: int, now: float) -> None:
        room = min(wants, self._lendable(passage))
        held = self._held[member]
        for _ in range(room if self._is_open else 0):
            name = f"+{next(self._numbers)}"
            claim = Claim(f"{member} {name}", "", Lane.ORDER, now, pools=passage[0], subjects=passage[1])
            if not self.pacer.goes_at_once(claim, now):
                return
            held[name] = _Held(claim, _State.CREDIT)
            self._grant(member).credits.setdefault(passage, []).append(name)

    def _lendable(self, passage: Passage) -> int:
        """Return how many more such credits a member may have, so that enough is left for all others."""
        held = (one for those in self._held.values() for one in those.values())
        lent = Counter(place for one in held if one.state is _State.CREDIT for place in one.claim.pools)
        room = math.inf
        self.pacer.pools.make_room()
        for place in passage.pools:
            limits = self.pacer.pools.at(place).estimator.limits
            most = _LENT * min((limit.n for limit in limits), default=_FREELY / _LENT)
            room = min(room, most - lent[place], max(1.0, most / max(1, len(self._held))))
        return int(room)

    def _grant(self, member: str) -> Grant:
        return self.grants.setdefault(member, Grant())


def _unbounded(settings: PacerSettings) -> PacerSettings:
    """Return settings without a bound of the queue: each member bounds its own."""
    return replace(settings, queue=None)
