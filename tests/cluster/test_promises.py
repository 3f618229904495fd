"""What the pacer promises those who wait, whatever the order of events.

Every claim that enters ends exactly once: let go, shared, refused or withdrawn. None is let go after its
deadline, and none is refused later than a timer that goes off late allows. A deadline that cannot be kept is
refused at once: one within a pause, or one before its turn would come if nothing else happened. Reads have a
tenth of what goes, and keep it over a moment in which no read waits. Reads that are alike go as one.
"""

import math
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from rig.compiled import IS_COMPILED
from sealgate.cluster.leader import Leader
from sealgate.cluster.messages import Completion, Grant, Note, SharedLimits, SharedPool
from sealgate.cluster.relay import LeaderRelay
from sealgate.limits import Limit
from sealgate.limits.claims import Claim, Fate, LimitReply
from sealgate.limits.pacer import Pacer
from sealgate.limits.pool import PoolSettings
from sealgate.limits.pools import PacerSettings
from sealgate.limits.quotas import Quota
from sealgate.venues.routes import Lane

# Coarse, so that deadlines, pauses and grants often meet in the same moment.
times = st.sampled_from([0.0, 0.02, 0.5, 1.0, 2.0, 5.0])
which = st.integers(0, 1000)
ALL, ORDERS = "all", "key | orders"
POOLS = {Lane.READ: (ALL,), Lane.CANCEL: (ALL,), Lane.ORDER: (ORDERS, ALL)}
TWO_A_SECOND = PacerSettings(6, pools={ALL: PoolSettings((Quota(2, 1.0),))})
_DEAREST = 3.0  # cost
_SLOT_S = 0.5  # of a request of cost 1 at the pacer's limit


class PacerPromises(RuleBasedStateMachine):
    """The pacer of one gateway, asked as the shell asks it: `release` follows each call, and at each look."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.count = 0
        self.look_at = math.inf
        self.waiting: dict[str, Claim] = {}
        self.out: dict[str, Claim] = {}
        self.since_a_read = 0.0  # the cost that others took from the line
        self.latest_read = 1.0  # its cost
        self.was_limited = False
        self.pacer = self.made()

    def made(self) -> Pacer:
        return Pacer(TWO_A_SECOND, lambda: 0.5)

    def obey(self) -> None:
        release = self.pacer.release(self.now)
        for rejection in release.rejected:
            self.waiting.pop(rejection.claim.id)
        for claim in release.go:
            assert self.now <= claim.give_up_at, "it is let go although its time is over"
            self.out[claim.id] = self.waiting.pop(claim.id)
            self.account(claim)
        for rider, claim in release.shared:
            assert rider.alike == claim.alike is not None, "it goes along with one that is not alike"
            assert claim in release.go, "it goes along with one that does not go"
            self.waiting.pop(rider.id)
        for claim in release.go:
            same = [one for one in (*self.waiting.values(), *release.go) if one.alike == claim.alike]
            assert claim.alike is None or same == [claim], "one that is alike did not go along"
        self.look_at = math.inf if release.look_again_at is None else release.look_again_at
        for claim in self.waiting.values():
            assert self.now < claim.give_up_at, "it waits although its time is over"
            assert self.look_at <= claim.give_up_at, "nobody looks when its time is over"
            assert claim.give_up_at >= self.pacer.pools.paused_until(claim.pools, claim.subjects), (
                "it waits for a pause that it does not outlast"
            )

    def account(self, claim: Claim) -> None:
        if claim.lane is Lane.READ:
            self.since_a_read, self.latest_read = 0.0, claim.cost
            return
        self.since_a_read += claim.cost
        if any(one.lane is Lane.READ for one in self.waiting.values()):
            # Beyond it at most the one that was the tenth, and an order that is owed a tenth, too.
            most = 10 * max(1.0, self.latest_read) + 2 * _DEAREST
            assert self.since_a_read <= most, "reads have lost their tenth"

    def ask(self, claim: Claim) -> None:
        if self.pacer.goes_at_once(claim, self.now):
            self.out[claim.id] = claim
            self.obey()
            return
        goes_at = self.in_quiet(claim)
        if self.pacer.enter(claim, self.now) is None:
            late_s = self.estimates_err_by_s()
            assert goes_at <= claim.give_up_at + late_s, "its deadline cannot be kept, and it was let in"
            self.waiting[claim.id] = claim
        self.obey()

    def estimates_err_by_s(self) -> float:
        """Return by how much an estimate may be short of the truth.

        By two slots: what went as a burst keeps a window full for longer than an even pace would, and a lower
        lane that goes first counts towards its bot's share. And by one for the cost of each dear request that
        waits: queues are counted by their first, and what fills a window keeps the next out of it.
        """
        dear = sum(claim.cost for claim in self.waiting.values() if claim.cost > 1)
        return _SLOT_S * (2 + dear) + 0.05  # which the margins of as many windows sum up to

    def in_quiet(self, claim: Claim) -> float:
        """Return when it would go if it had time, nobody else came and no reply told anything new.

        It is said of nothing that was to go along with one whose own time ends first.
        """
        if self.was_limited or IS_COMPILED:  # which cannot be copied; the sources are held to it
            return self.now
        pacer, now, end = deepcopy(self.pacer), self.now, self.now + 60.0
        if pacer.enter(replace(claim, give_up_at=math.inf), now) is not None:
            return now
        while now < end:
            release = pacer.release(now)
            if claim.id in [one.id for one in (*release.go, *(one for one, _ in release.shared))]:
                return now
            if claim.alike is not None and claim.alike in [one.claim.alike for one in release.rejected]:
                return self.now
            now = end if release.look_again_at is None else max(now, release.look_again_at)
        return end

    def wait(self, seconds: float, late_s: float = 0.0) -> None:
        """Let time pass, with the shell's timer: it goes off up to `late_s` late."""
        end = self.now + seconds
        while self.look_at + late_s <= end:
            self.now = max(self.now, self.look_at + late_s)
            self.obey()
        self.now = max(self.now, end)

    @rule(
        lane=st.sampled_from(Lane),
        bot=st.sampled_from("ab"),
        cost=st.sampled_from([1.0, _DEAREST]),
        wait_s=times,
    )
    def a_request_comes(self, lane: Lane, bot: str, cost: float, wait_s: float) -> None:
        self.count += 1
        is_read = lane is Lane.READ
        claim = Claim(str(self.count), bot, lane, self.now + wait_s, cost=cost, is_read=is_read)
        claim.pools, claim.subjects = POOLS[lane], ("key",)
        self.ask(claim)

    @rule(bot=st.sampled_from("ab"), wait_s=times, alike=st.sampled_from(["positions", "orders"]))
    def a_read_comes_that_others_may_share(self, bot: str, wait_s: float, alike: str) -> None:
        self.count += 1
        give_up_at = self.now + wait_s
        self.ask(Claim(str(self.count), bot, Lane.READ, give_up_at, is_read=True, alike=alike))

    @precondition(lambda self: self.waiting)
    @rule(number=which)
    def a_bot_hangs_up(self, number: int) -> None:
        self.pacer.leave(_picked(self.waiting, number))
        self.obey()

    @precondition(lambda self: self.out)
    @rule(number=which)
    def a_turn_is_given_back(self, number: int) -> None:
        self.pacer.leave(_picked(self.out, number))
        self.obey()

    @precondition(lambda self: self.out)
    @rule(
        number=which,
        fate=st.sampled_from(Fate),
        pause_s=st.none() | times,
        closes=st.sampled_from([("", ""), ("all", ""), ("orders", ""), ("", "key")]),
        again=st.booleans(),
    )
    def an_answer_comes(
        self, number: int, fate: Fate, pause_s: float | None, closes: tuple[str, str], again: bool
    ) -> None:
        claim = _picked(self.out, number)
        self.pacer.sent(claim, self.now)
        pool, shuts_out = closes if fate in {Fate.LIMITED, Fate.BANNED} else ("", "")
        reply = LimitReply(fate, pause_s, 0.0, pools=tuple(filter(None, [pool])), shuts_out=shuts_out)
        self.pacer.answered(claim, self.now, reply)
        self.was_limited = self.was_limited or reply.is_refusal
        self.obey()
        if again and reply.is_refusal:
            self.ask(replace(claim, is_again=True))

    @rule(seconds=times, late_s=st.sampled_from([0.0, 0.005]))
    def time_passes(self, seconds: float, late_s: float) -> None:
        self.wait(seconds, late_s)

    @rule(seconds=times, place=st.sampled_from([ALL, ORDERS, "key | (shut out)"]))
    def another_gateway_was_paused(self, seconds: float, place: str) -> None:
        self.pacer.hold(place, self.now + seconds, self.now)
        self.was_limited = True  # the reply to the one that goes first tells something new
        self.obey()

    def teardown(self) -> None:
        self.wait(100.0)
        self.obey()
        assert self.waiting == {}
        assert not self.pacer.status(self.now).waiting
        for claim in [*self.out.values()]:
            self.pacer.answered(claim, self.now, LimitReply(Fate.ACCEPTED))
        self.obey()


class MemberPromises(PacerPromises):
    """The same beside a leader: messages come late, in any order or never, and leads come and go."""

    def made(self) -> Pacer:
        self.leader = self.new_leader()
        self.grants: list[Grant] = []
        pacer = Pacer(PacerSettings(queue=6), lambda: 0.5)
        self.relay = LeaderRelay(pacer, "me")
        self.relay.share(self.now)
        return pacer

    def account(self, claim: Claim) -> None:
        """Leave lanes to the leader, which sees those of all gateways."""

    def in_quiet(self, _: Claim) -> float:
        """Expect nothing: when it goes is the leader's to say."""
        return self.now

    def new_leader(self) -> Leader:
        return Leader(PacerSettings(), lambda: 0.5, two_a_second(), self.now)

    @rule(replicas=st.integers(1, 3), leads=st.booleans())
    def a_leader_begins(self, replicas: int, leads: bool) -> None:
        self.leader = self.new_leader()
        self.grants.clear()
        self.relay.know(SharedLimits(two_a_second(), replicas))
        self.relay.leader = self.leader if leads else None
        self.relay.share(self.now)
        self.obey()

    @rule()
    def redis_goes_away(self) -> None:
        self.relay.go_alone(self.now)
        self.relay.leader = None
        self.obey()

    @precondition(lambda self: self.relay.is_shared)
    @rule()
    def the_leader_hears_and_answers(self) -> None:
        self.relay.return_credits(self.now)
        self.leader.receive("me", self.relay.take_note(), self.now)
        self.leader.advance(self.now)
        self.grants.append(self.leader.take_grant("me"))

    @rule()
    def others_wait_at_the_leader(self) -> None:
        self.count += 1
        claim = Claim(f"other{self.count}", "other", Lane.ORDER, self.now + 5.0)
        self.leader.receive("other", Note(waits=[claim]), self.now)
        self.leader.advance(self.now)
        for name in self.leader.take_grant("other").go:
            over = Completion(name, LimitReply(Fate.ACCEPTED), self.now, self.now)
            self.leader.receive("other", Note(completed=[over]), self.now)

    @precondition(lambda self: self.relay.is_shared and self.grants)
    @rule(number=which, arrives=st.booleans())
    def a_grant_arrives_or_is_lost(self, number: int, arrives: bool) -> None:
        grant = self.grants.pop(number % len(self.grants))
        if arrives:
            self.relay.take_grant(grant, self.now)
            self.obey()

    @precondition(lambda self: self.relay.is_shared and self.waiting)
    @rule(number=which, late_s=st.sampled_from([-0.01, 0.0, 1.0]))
    def a_grant_takes_effect_at_the_end_of_a_deadline(self, number: int, late_s: float) -> None:
        claim = [*self.waiting.values()][number % len(self.waiting)]
        self.relay.take_grant(Grant(go=[claim.id]), self.now)
        self.now = max(self.now, claim.give_up_at + late_s)
        self.obey()

    @precondition(lambda self: self.relay.is_shared)
    @rule(back=st.lists(st.integers(0, 4), max_size=3))
    def whatever_is_granted(self, back: Iterable[int]) -> None:
        """Grant one that is gone, one that is under way, or one twice."""
        self.relay.take_grant(Grant(go=[str(self.count - number) for number in back]), self.now)
        self.obey()

    def teardown(self) -> None:
        super().teardown()
        if self.relay.is_shared:
            for _ in range(2):  # credits that were granted meanwhile go back
                self.the_leader_hears_and_answers()
                for grant in self.grants:
                    self.relay.take_grant(grant, self.now)
                self.grants.clear()
                self.now += 100.0
                self.obey()
            assert self.leader.pacer.status(self.now).waiting.keys() <= {("", Lane.ORDER, "other")}


def two_a_second() -> dict[str, SharedPool]:
    return {ALL: SharedPool((Limit(2.0, 1.0, 2.0),))}


def _picked(claims: dict[str, Claim], number: int) -> Claim:
    return claims.pop([*claims][number % len(claims)])


pytestmark = pytest.mark.slow
_SIZE = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestPacerPromises = PacerPromises.TestCase
TestPacerPromises.settings = _SIZE
TestMemberPromises = MemberPromises.TestCase
TestMemberPromises.settings = _SIZE
