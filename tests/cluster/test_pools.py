"""Gateways with different keys at one address: they share its pools, and nothing of their keys' own."""

import json
import math

import pytest

from rig.member_room import Room
from sealgate.cluster.leader import Leader
from sealgate.cluster.member import HeartbeatReply, Member
from sealgate.cluster.messages import (
    Completion,
    Grant,
    Message,
    Note,
    Passage,
    SharedLimits,
    SharedPool,
    write,
)
from sealgate.cluster.relay import LeaderRelay
from sealgate.limits import Limit
from sealgate.limits.claims import Claim, Fate, LimitReply
from sealgate.limits.pacer import Pacer
from sealgate.limits.pool import PoolSettings
from sealgate.limits.pools import PacerSettings
from sealgate.limits.quotas import Quota
from sealgate.venues.routes import Lane

SETTINGS = PacerSettings(
    pools={
        "weight": PoolSettings((Quota(10, 1.0),)),
        "orders": PoolSettings((Quota(4, 1.0),), counts_requests=True),
        "paths": PoolSettings(),
    }
)
WEIGHT = "address | weight"
ACCEPTED = LimitReply(Fate.ACCEPTED)


def passage(key: str, *, is_order: bool = True) -> Passage:
    """Return what the requests of a key pass; orders pass a pool of their own, too."""
    pools = (f"{key} | orders", WEIGHT) if is_order else (WEIGHT,)
    return Passage(pools, (key, "address"))


def claim(name: str, key: str, lane: Lane = Lane.ORDER, cost: float = 1.0) -> Claim:
    pools, subjects = passage(key, is_order=lane is Lane.ORDER)
    return Claim(
        name,
        f"bot of {key}",
        lane,
        1000.0,
        cost=cost,
        is_read=lane is Lane.READ,
        pools=pools,
        subjects=subjects,
    )


class Two(Room):
    """Gateways `a` and `b`, each with a key of that name; `a` leads."""

    def __init__(self) -> None:
        super().__init__("a", "b", settings=SETTINGS)
        for now, name in ((100.0, "a"), (100.0, "a"), (100.1, "b"), (100.2, "b"), (100.3, "a")):
            self.heartbeat(name, now)

    def went(self, now: float) -> list[str]:
        """Let all messages go to and fro; return what each gateway then sent."""
        went = []
        for _ in range(3):
            for name, member in self.members.items():
                if member.heartbeat_at(now) <= now:
                    self.heartbeat(name, now)
            for member in self.members.values():
                member.catch_up(now)
                went += [one.id for one in member.pacer.release(now).go]
        return sorted(went)

    def ask(self, now: float, key: str, count: int, lane: Lane = Lane.ORDER) -> None:
        """Let claims wait at the gateway that has the key."""
        for number in range(count):
            one = claim(f"{key}{number}", key, lane)
            assert self.members[key].pacer.enter(one, now) is None

    def answer(self, now: float, name: str, key: str, reply: LimitReply, lane: Lane = Lane.ORDER) -> None:
        self.members[key].pacer.answered(claim(name, key, lane), now, reply)


@pytest.fixture
def room() -> Two:
    return Two()


def led_by(member: Member) -> Leader:
    assert member.relay.leader is not None
    return member.relay.leader


def test_the_budget_of_the_address_is_one_and_that_of_each_key_its_own(room: Two) -> None:
    for key in "ab":
        room.ask(101.0, key, 6)
    assert room.went(101.0) == ["a0", "a1", "a2", "a3", "b0", "b1", "b2", "b3"]  # four orders of each key
    for key in "ab":
        for number in range(3):
            assert room.members[key].pacer.enter(claim(f"{key}r{number}", key, Lane.READ), 101.01) is None
    assert len(room.went(101.01)) == 2  # ten of the address
    assert led_by(room.members["a"]).pacer.pools.by_place[WEIGHT].sent_cost(100.9) == 10.0


LIMITED = LimitReply(Fate.LIMITED, 3.0, 0.0, pools=("orders",))
REFUSALS: dict[str, tuple[LimitReply, set[str], str]] = {
    "it names the pool of the key": (LIMITED, {"a | orders"}, "ar0 b0 br0"),
    "it names the pool of the address": (
        LimitReply(Fate.LIMITED, 3.0, 0.0, pools=("weight",)),
        {WEIGHT},
        "",
    ),
    "it names none": (LimitReply(Fate.LIMITED, 3.0, 0.0), {"a | orders", WEIGHT}, ""),
    "all of the key is shut out": (
        LimitReply(Fate.BANNED, 3.0, 0.0, pools=("orders",), shuts_out="a"),
        {"a | orders", "a | (shut out)"},
        "b0 br0",
    ),
    "all of the key is shut out, and no pool is named": (
        LimitReply(Fate.BANNED, 3.0, 0.0, shuts_out="a"),
        {"a | (shut out)"},
        "b0 br0",
    ),
    "all of the address is shut out": (
        LimitReply(Fate.BANNED, 3.0, 0.0, pools=("orders",), shuts_out="address"),
        {"a | orders", "address | (shut out)"},
        "",
    ),
}


@pytest.mark.parametrize(("reply", "paused", "goes"), REFUSALS.values(), ids=REFUSALS)
@pytest.mark.parametrize("refused", ["a", "b"], ids=["the leader is refused", "a member is refused"])
def test_a_refusal_closes_what_it_names_at_both_and_nothing_else(
    room: Two, reply: LimitReply, paused: set[str], goes: str, refused: str
) -> None:
    """The expectations are written for `a`; for `b` keys change places."""
    other = "b" if refused == "a" else "a"
    room.ask(101.0, refused, 1)
    assert room.went(101.0) == [f"{refused}0"]
    shuts_out = refused if reply.shuts_out == "a" else reply.shuts_out
    room.answer(
        101.1,
        f"{refused}0",
        refused,
        LimitReply(reply.fate, 3.0, 0.0, pools=reply.pools, shuts_out=shuts_out),
    )
    room.went(101.1)
    of_refused = {place.replace("a |", f"{refused} |") for place in paused}
    for member in room.members.values():
        assert set(member.pacer.pools.pauses(101.2)) == of_refused
    assert set(room.group.pauses) == of_refused
    for key in (refused, other):
        room.ask(101.2, key, 1)
        assert room.members[key].pacer.enter(claim(f"{key}r0", key, Lane.READ), 101.2) is None
    swapped = goes.translate(str.maketrans("ab", refused + other))
    assert room.went(101.2) == sorted(swapped.split())


def test_after_a_pause_of_the_address_one_scout_goes_for_both(room: Two) -> None:
    room.ask(101.0, "b", 1)
    room.went(101.0)
    room.answer(101.1, "b0", "b", LimitReply(Fate.LIMITED, 1.0, 0.0, pools=("weight",)))
    room.went(101.1)
    for key in "ab":
        room.ask(101.2, key, 1)
    went = room.went(102.2)
    assert len(went) == 1
    room.answer(102.3, went[0], went[0][0], ACCEPTED)
    assert room.went(102.3) == []  # at the pace
    assert len(room.went(102.5)) == 1


def test_a_pause_of_a_pool_that_is_met_later_holds_without_redis(room: Two) -> None:
    """It was told of a pool that this gateway had sent nothing through."""
    b = room.members["b"]
    b.receive(json.dumps({"pauses": {"b | orders": 3.0}}), 101.0)
    b.failed("gone", 101.1)
    assert not b.pacer.goes_at_once(claim("b0", "b"), 101.2)
    assert b.pacer.goes_at_once(claim("br0", "b", Lane.READ), 101.2)


def test_pauses_that_a_stranger_makes_up_take_no_more_than_so_much_room(room: Two) -> None:
    b = room.members["b"]
    b.pacer.pools.at("b | orders")
    for first in (0, 800, 1600):
        made_up = {f"{first + number} | all": 100.0 for number in range(800)}
        b.receive(json.dumps({"pauses": {**made_up, "b | orders": 3.0 + first}}), 101.0)
    assert len(b.pacer.pools.by_place) <= 1001
    assert b.pacer.pools.paused_until(("b | orders",)) == 101.0 + 1603.0
    assert b.pacer.pools.pauses(300.0).keys() == {"b | orders"}


def relay_of(settings: PacerSettings = SETTINGS) -> LeaderRelay:
    relay = LeaderRelay(Pacer(settings, lambda: 0.5), "me")
    relay.share(0.0)
    relay.take_note()
    return relay


def test_a_credit_is_good_for_what_passes_the_same() -> None:
    relay = relay_of()
    orders = passage("a")
    relay.take_grant(Grant(credits={orders: ["+1"], passage("a", is_order=False): ["+2"]}), 0.0)
    assert not relay.pacer.goes_at_once(claim("1", "b"), 0.0)
    assert not relay.pacer.goes_at_once(claim("2", "a", cost=2.0), 0.0)
    assert relay.pacer.goes_at_once(claim("3", "a"), 0.0)
    assert not relay.pacer.goes_at_once(claim("4", "a"), 0.0)
    assert relay.pacer.goes_at_once(claim("5", "a", Lane.READ), 0.0)
    assert relay.take_note().wants.keys() == {orders, passage("b"), passage("a", is_order=False)}


def test_a_pause_voids_the_credits_for_what_it_closes() -> None:
    relay = relay_of()
    lent = {passage("a"): ["+1"], passage("a", is_order=False): ["+2"], passage("b"): ["+3"]}
    relay.take_grant(Grant(credits=lent), 0.0)
    relay.pacer.hold("a | orders", 5.0, 0.1)
    assert relay.take_note().gone == ["+1"]
    relay.pacer.shut_out("b", 5.0, 0.2)
    assert relay.take_note().gone == ["+3"]
    relay.pacer.hold(WEIGHT, 5.0, 0.3)
    assert relay.take_note().gone == ["+2"]
    assert relay.credit_ends_at() == math.inf


def test_a_credit_that_comes_twice_is_one() -> None:
    relay = relay_of()
    for _ in range(2):
        relay.take_grant(Grant(credits={passage("a"): ["+1", "+1"]}), 0.0)
    assert [relay.pacer.goes_at_once(claim(name, "a"), 0.0) for name in "12"] == [True, False]


def leader_of(**pools: Limit) -> Leader:
    known = {place.replace("_", " | "): SharedPool((limit,)) for place, limit in pools.items()}
    leader = Leader(PacerSettings(), lambda: 0.5, known, 0.0)
    leader.advance(0.0)
    return leader


def test_credits_are_a_quarter_of_the_smallest_limit_of_what_they_pass() -> None:
    leader = leader_of(address_weight=Limit(40.0, 1.0, 40.0), a_orders=Limit(8.0, 1.0, 8.0))
    leader.receive("m", Note(wants={passage("a"): 20}), 0.0)
    assert [len(names) for names in leader.take_grant("m").credits.values()] == [2]
    leader.receive("m", Note(wants={passage("a"): 20, passage("b"): 20}), 0.1)
    assert {one: len(names) for one, names in leader.take_grant("m").credits.items()} == {passage("b"): 8}
    leader.receive("m", Note(wants={passage("a", is_order=False): 20}), 0.2)
    assert leader.take_grant("m").credits == {}  # the quarter of the address is lent


def test_what_others_sent_counts_in_the_pools_in_which_they_sent_it() -> None:
    leader = leader_of(address_weight=Limit(10.0, 1.0, 10.0), a_orders=Limit(4.0, 1.0, 4.0))
    leader.receive("n", Note(is_new=True, spent={"a | orders": [(0.2, 3.0)], WEIGHT: [(0.2, 5.0)]}), 0.0)
    waits = [claim(f"{key}{number}", key) for key in "ab" for number in range(5)]
    leader.receive("m", Note(waits=waits), 0.0)
    leader.advance(0.0)
    assert sorted(leader.take_grant("m").go) == ["a0", "b0", "b1", "b2", "b3"]


def test_a_member_reports_what_it_sent_by_pool() -> None:
    relay = LeaderRelay(Pacer(SETTINGS, lambda: 0.5), "me")
    for one in (claim("1", "a"), claim("2", "a", Lane.READ, cost=5.0)):
        assert relay.pacer.goes_at_once(one, 9.5)
    relay.share(10.0)
    spent = relay.take_note().spent
    assert {place: sum(cost for _, cost in found) for place, found in spent.items()} == {
        "a | orders": 1.0,
        WEIGHT: 6.0,
    }


def test_alone_each_pool_goes_by_a_careful_part_also_one_that_is_met_later() -> None:
    relay = relay_of()
    relay.pacer.pools.at(WEIGHT)
    learned = SharedPool((Limit(20.0, 1.0, 20.0),), at_a_time=8)
    relay.know(SharedLimits({"a | paths": learned}, replicas=2))
    relay.go_alone(1.0)
    for place in ("a | orders", "a | paths"):
        relay.pacer.pools.at(place)
    found = {place: pool.estimator for place, pool in relay.pacer.pools.by_place.items()}
    assert {place: [limit.n for limit in one.limits] for place, one in found.items()} == {
        WEIGHT: [4.0],
        "a | orders": [1.6],
        "a | paths": [8.0],
    }
    assert found["a | paths"].at_a_time == 4
    shown = relay.shown(relay.pacer.status(1.0), 1.0).pools
    assert all("this gateway's share" in one.limits[0].words for one in shown.values())


def test_what_is_kept_are_the_whole_limits_and_the_pauses_of_its_own_pools(room: Two) -> None:
    a, b = room.members["a"], room.members["b"]
    room.ask(101.0, "b", 1)
    room.went(101.0)
    leader = led_by(a)
    leader.pacer.pools.at("b | orders").estimator.believe([Limit(20.0, 1.0, 20.0, seen=3, last_seen=90.0)])
    room.heartbeat("a", 102.0)
    b.pacer.hold("b | orders", 109.0, 102.0)
    kept = b.relay.snapshot(b.pacer.pools.snapshot(102.0), 102.0)
    assert [one.get("n", one.get("pause")) for one in kept["b | orders"]] == [20.0, 7.0]
    assert a.relay.snapshot(a.pacer.pools.snapshot(102.0), 102.0).keys() == a.pacer.pools.by_place.keys()


def test_a_member_is_shown_what_the_leader_shows_of_its_pools(room: Two) -> None:
    room.ask(101.0, "b", 1)
    room.went(101.0)
    led_by(room.members["a"]).pacer.pools.by_place["b | orders"].estimator.believe([Limit(20.0, 1.0, 20.0)])
    room.heartbeat("a", 102.0)
    for member in room.members.values():
        for place in ("b | orders", WEIGHT):
            member.pacer.pools.at(place)
        shown = member.relay.shown(member.pacer.status(102.0), 102.0).pools
        assert [limit.n for limit in shown["b | orders"].limits] == [20.0]
        assert [limit.n for limit in shown[WEIGHT].limits] == [10.0]
    b = room.members["b"]
    b.pacer.pools.at("b | met later")
    assert b.relay.shown(b.pacer.status(102.0), 102.0).pools["b | met later"].limits == ()


def test_of_many_pools_those_are_announced_that_were_used_last(room: Two) -> None:
    leader = led_by(room.members["a"])
    for number in range(300):
        leader.pacer.pools.at(f"a | paths | {number}").count_sent(101.0 + number / 1000, 1.0)
    announced = json.loads(room.members["a"].heartbeat(102.0).announcement)["limits"]["pools"]
    assert [*announced][:2] == ["a | paths | 299", "a | paths | 298"]
    assert len(announced) == 200


def test_what_the_leader_says_nothing_of_stays_known_while_it_is_used(room: Two) -> None:
    b = room.members["b"]
    b.pacer.pools.at("b | paths")
    for pools in (("b | paths", "a | paths"), ("b | orders",)):
        known = SharedLimits({place: SharedPool((Limit(20.0, 1.0, 20.0),)) for place in pools})
        b.receive(write(Message(room.group.epoch, limits=known), 101.0), 101.0)
    assert b.relay.common.pools.keys() == {"b | paths", "b | orders"}


def test_a_reply_is_learned_from_in_all_pools_that_its_claim_passed() -> None:
    leader = leader_of(address_weight=Limit(10.0, 1.0, 10.0))
    leader.receive("m", Note(waits=[claim("1", "a")]), 0.0)
    leader.advance(0.0)
    headers = (Quota(100.0, 10.0, left=0.0, reset_s=5.0, name="count", pool="orders"),)
    reply = LimitReply(Fate.ACCEPTED, quotas=headers)
    leader.receive("m", Note(completed=[Completion("1", reply, 0.0, 0.1)]), 0.1)
    assert leader.pacer.pools.by_place["a | orders"].estimator.spent_s(0.2) == pytest.approx(4.9)
    assert leader.pacer.pools.by_place[WEIGHT].estimator.spent_s(0.2) == 0.0


def test_a_ban_of_what_a_claim_does_not_belong_to_shuts_out_nobody() -> None:
    leader = leader_of()
    leader.receive("m", Note(waits=[claim("1", "a")]), 0.0)
    leader.advance(0.0)
    before = {*leader.pacer.pools.by_place}
    banned = LimitReply(Fate.BANNED, 900.0, shuts_out="a stranger")
    leader.receive("m", Note(completed=[Completion("1", banned, 0.0, 0.1)]), 0.1)
    assert leader.pacer.pools.by_place.keys() == before
    assert leader.pacer.pools.paused_until(("a | orders",)) > 900.0


def test_a_redis_that_counts_no_gateways_counts_this_one(room: Two) -> None:
    b = room.members["b"]
    b.acknowledged(HeartbeatReply("a", room.group.epoch, {}, 0), 101.0)
    assert b.replicas == 1
    b.failed("gone", 101.1)
    assert b.pacer.goes_at_once(claim("b0", "b"), 101.2)
