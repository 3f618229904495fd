"""The member: elections, epochs, silence and failures, as transcripts."""

import json
import math

import pytest

from rig.member_room import Room
from rig.redis_group import RedisGroup
from sealgate.cluster.leader import LISTENS_S, Leader
from sealgate.cluster.member import HeartbeatReply, Member
from sealgate.cluster.messages import (
    Completion,
    Grant,
    Message,
    MessageError,
    Note,
    Passage,
    SharedLimits,
    SharedPool,
    write,
)
from sealgate.limits import Limit
from sealgate.limits.claims import Claim, Fate, LimitReply
from sealgate.limits.pacer import Pacer
from sealgate.limits.pools import PacerSettings
from sealgate.limits.status import PoolStatus, SharingStatus
from sealgate.venues.routes import Lane

ALL = "all"
ANY = Passage((ALL,), ())  # what a claim passes of which nothing more is known


def member_of(name: str) -> Member:
    return Member(Pacer(PacerSettings(), lambda: 0.5), name, lambda: 0.5)


@pytest.fixture
def room() -> Room:
    """Return one where "a" leads, and "b" has introduced itself."""
    room = Room("a", "b", settings=PacerSettings())
    for now, name in ((100.0, "a"), (100.0, "a"), (100.1, "b"), (100.2, "b"), (100.3, "a")):
        room.heartbeat(name, now)
    return room


def shown(member: Member) -> PoolStatus:
    member.pacer.pools.at(ALL)
    return member.relay.shown(member.pacer.status(101.0), 101.0).pools[ALL]


def limits(member: Member) -> list[float]:
    """Return the whole limits as far as a member knows them."""
    return [limit.n for limit in member.relay.whole(ALL).limits]


def of_all(*known: Limit) -> SharedLimits:
    return SharedLimits({ALL: SharedPool(known)})


def led_by(member: Member) -> Leader:
    assert member.relay.leader is not None
    return member.relay.leader


def claim(name: str) -> Claim:
    return Claim(name, "bot", Lane.ORDER, 1000.0)


def test_the_first_leads_and_both_are_counted(room: Room) -> None:
    assert room.members["a"].status() == SharingStatus(2, is_leader=True, degraded=None)
    room.heartbeat("a", 101.0)
    assert room.members["b"].status() == SharingStatus(2, is_leader=False, degraded=None)


def test_who_waits_goes_over_the_leader(room: Room) -> None:
    a, b = room.members["a"], room.members["b"]
    b.pacer.enter(claim("x"), 101.0)
    assert b.heartbeat_at(101.0) == 101.0
    room.heartbeat("b", 101.0)
    a.catch_up(101.0)
    assert a.heartbeat_at(101.0) == 101.0
    room.heartbeat("a", 101.0)
    assert [one.id for one in b.pacer.release(101.0).go] == ["x"]
    assert a.heartbeat(101.1).grants == ()


def test_the_leads_own_need_no_visit(room: Room) -> None:
    a = room.members["a"]
    assert a.pacer.goes_at_once(claim("x"), 101.0)
    a.pacer.answered(claim("x"), 101.0, LimitReply(Fate.ACCEPTED))
    a.catch_up(101.0)
    assert a.look_at() == math.inf
    assert room.members["b"].look_at() == math.inf
    room.members["b"].catch_up(101.0)


def test_the_leads_own_who_wait_go_when_the_leader_says_so(room: Room) -> None:
    a = room.members["a"]
    a.pacer.enter(claim("x"), 101.0)
    assert list(a.pacer.release(101.0).go) == []
    a.catch_up(101.0)
    assert [one.id for one in a.pacer.release(101.0).go] == ["x"]


def test_a_pause_that_the_leader_learned_of_by_a_note_holds_for_its_own(room: Room) -> None:
    a, epoch = room.members["a"], room.group.epoch
    limited = LimitReply(Fate.LIMITED, 3.0, 0.0)
    for note in (Note(waits=[claim("x")]), Note(completed=[Completion("x", limited, 101.0, 101.0)])):
        a.receive(write(Message(epoch, sender="b", note=note), 101.0), 101.0)
        a.catch_up(101.0)
    assert a.pacer.pools.paused_until() > 103.9


def test_what_a_leader_told_itself_waits_to_be_settled(room: Room) -> None:
    a = room.members["a"]
    before = a.is_behind
    for member in room.members.values():
        member.pacer.enter(claim("x"), 101.0)
    assert (before, a.is_behind, room.members["b"].is_behind) == (False, True, False)


def test_the_leader_shows_what_it_learned_of_the_whole(room: Room) -> None:
    leader = led_by(room.members["a"])
    leader.pacer.pools.at(ALL).estimator.believe([Limit(20.0, 1.0, 20.0)])
    assert [limit.n for limit in shown(room.members["a"]).limits] == [20.0]
    assert room.members["a"].relay.whole(ALL).limits == tuple(leader.pacer.pools.at(ALL).estimator.limits)


def test_a_pause_is_told_once_and_holds_for_all(room: Room) -> None:
    a, b = room.members["a"], room.members["b"]
    b.pacer.hold(ALL, 105.0, 0.0)
    assert b.heartbeat_at(101.0) == 101.0
    room.heartbeat("b", 101.0)
    assert a.pacer.pools.paused_until() > 104.9
    assert led_by(a).pacer.pools.paused_until() > 104.9
    assert b.heartbeat_at(101.0) > 101.0
    assert room.heartbeat("a", 102.0).pauses == {ALL: pytest.approx(3.0)}


def test_a_pause_is_told_anew_where_redis_may_have_lost_it(room: Room) -> None:
    b = room.members["b"]
    b.pacer.hold(ALL, 105.0, 0.0)
    assert [b.heartbeat(101.0).pauses, b.heartbeat(101.1).pauses] == [{ALL: 4.0}, {}]
    b.failed("gone", 101.5)
    assert b.heartbeat(102.0).pauses == {ALL: 3.0}


def test_a_pause_that_is_over_is_not_told(room: Room) -> None:
    room.members["b"].pacer.hold(ALL, 101.0, 0.0)
    assert room.members["b"].heartbeat(101.5).pauses == {}


def test_the_pause_that_redis_knows_of_holds_here() -> None:
    member = member_of("new")
    member.acknowledged(HeartbeatReply("other", 5, {ALL: 3.0}, 2), 1.0)
    assert [member.pacer.pools.paused_until() > now for now in (3.9, 4.1)] == [True, False]


def test_a_new_leader_keeps_to_the_pause_that_it_knew_of() -> None:
    member = member_of("me")
    member.pacer.hold(ALL, 5.0, 0.0)
    member.acknowledged(HeartbeatReply("me", 9, {}, 1), 1.0)
    assert led_by(member).pacer.pools.paused_until() > 4.9


def test_who_leads_nobody_else_opens_at_once() -> None:
    member = member_of("me")
    member.acknowledged(HeartbeatReply("me", 9, {}, 1), 1.0)
    assert member.look_at() == 1.0


def test_the_leader_visits_for_each_beat(room: Room) -> None:
    a = room.members["a"]
    room.heartbeat("a", 101.0)
    assert a.heartbeat_at(101.0) == 101.5
    assert a.heartbeat(101.2).announcement == ""
    assert a.heartbeat(101.5).announcement != ""
    assert room.members["b"].heartbeat(101.5).announcement == ""


def test_credits_that_nobody_needed_go_back_with_the_next_visit(room: Room) -> None:
    b = room.members["b"]
    b.relay.take_grant(Grant(credits={ANY: ["+1"]}), 101.0)
    assert b.heartbeat_at(101.0) <= 102.0
    assert json.loads(b.heartbeat(102.0).note)["note"] == {"gone": ["+1"]}


def test_a_member_that_comes_later_is_shown_what_the_leader_shows(room: Room) -> None:
    leader = led_by(room.members["a"])
    leader.pacer.pools.at(ALL).estimator.believe([Limit(20.0, 1.0, 20.0)])
    room.heartbeat("a", 101.0)
    later = room.members["c"] = member_of("c")
    room.heartbeat("c", 101.1)
    assert [limit.n for limit in shown(later).limits] == [20.0]


def test_how_many_share_is_counted_at_each_visit(room: Room) -> None:
    b = room.members["b"]
    b.acknowledged(HeartbeatReply("a", room.group.epoch, {}, 3), 101.0)
    assert b.replicas == 3


@pytest.mark.parametrize("becomes", ["alone", "a member"])
def test_who_led_goes_on_with_what_it_learned(room: Room, becomes: str) -> None:
    a = room.members["a"]
    led_by(a).pacer.pools.at(ALL).estimator.believe([Limit(20.0, 1.0, 20.0)])
    if becomes == "alone":
        a.failed("gone", 101.0)
    else:
        a.acknowledged(HeartbeatReply("b", room.group.epoch + 1, {}, 2), 101.0)
    assert limits(a) == [20.0]


def test_a_new_leader_is_followed_once_it_has_announced_itself(room: Room) -> None:
    """Before that it may not know that it leads; a made-up epoch only brings the next heartbeat forward."""
    a, b, epoch = room.members["a"], room.members["b"], room.group.epoch
    for member in (a, b):
        member.acknowledged(HeartbeatReply("new", epoch + 1, {}, 3), 101.0)
    assert (a.trouble, a.is_leader, b.trouble) == ("another gateway leads", False, None)
    for member in (a, b):
        member.receive(write(Message(epoch + 1, limits=of_all(Limit(1.0, 1.0, 1.0))), 101.1), 101.1)
        assert (member.heartbeat_at(101.1), limits(member)) == (101.1, [])
        announced = write(Message(epoch + 1, limits=of_all(Limit(20.0, 1.0, 20.0))), 101.1)
        member.acknowledged(HeartbeatReply("new", epoch + 1, {}, 3, announced), 101.2)
        assert (member.trouble, limits(member)) == (None, [20.0])
        assert json.loads(member.heartbeat(101.2).note)["note"]["is_new"]


def test_a_leader_that_is_silent_is_looked_for_and_followed_by_the_next(room: Room) -> None:
    b = room.members["b"]
    at = b.heartbeat_at(100.3)
    assert at <= 100.3 + 2.0
    room.heartbeat("b", 104.0)
    assert b.status().is_leader
    assert led_by(b).look_at == 104.0 + LISTENS_S
    room.heartbeat("a", 104.1)
    assert not room.members["a"].is_leader


def test_a_member_that_was_gone_too_long_is_forgotten_by_the_leader(room: Room) -> None:
    a = room.members["a"]
    for now in range(101, 109):
        room.heartbeat("a", float(now))
    assert led_by(a).members() == ("a",)
    assert a.replicas == 1


def test_without_redis_it_goes_alone_and_tries_again_soon(room: Room) -> None:
    a, b = room.members["a"], room.members["b"]
    for member in (a, b):
        member.failed("gone", 101.0)
        assert member.status().degraded == "gone"
        assert not member.is_leader
        assert member.heartbeat_at(101.0) == 101.25
        assert not member.relay.is_shared
        member.failed("still gone", 101.3)
        assert member.status().degraded == "still gone"
        assert member.replicas == 2


def test_back_at_an_empty_redis_the_new_leader_listens_first(room: Room) -> None:
    for member in room.members.values():
        member.failed("gone", 101.0)
    room.group = RedisGroup(room.tell)
    room.heartbeat("b", 101.3)
    leader = led_by(room.members["b"])
    assert leader.look_at == 101.3 + LISTENS_S


def test_a_leader_that_lost_its_way_to_redis_begins_anew(room: Room) -> None:
    before = room.members["a"].relay.leader
    room.members["a"].failed("gone", 101.0)
    epoch = room.group.epoch
    room.heartbeat("a", 101.1)
    assert room.group.epoch > epoch
    assert room.members["a"].relay.leader is not before
    assert room.members["b"].heartbeat_at(101.1) == 101.1  # it has heard of the new epoch


def test_limits_go_from_leader_to_leader(room: Room) -> None:
    leader = led_by(room.members["a"])
    leader.pacer.pools.at(ALL).estimator.believe([Limit(20.0, 1.0, 20.0, seen=2, last_seen=99.0)])
    room.heartbeat("a", 101.0)
    room.members["a"].failed("gone", 101.1)
    room.heartbeat("b", 103.0)
    next_leader = led_by(room.members["b"])
    assert [(limit.n, limit.window) for limit in next_leader.pacer.pools.at(ALL).estimator.limits] == [
        (20.0, 1.0)
    ]


def test_a_beat_that_makes_no_sense_holds_up_only_those_whom_its_writer_leads() -> None:
    strange = '{"limits":{"pools":0}}'
    with pytest.raises(MessageError):
        member_of("me").acknowledged(HeartbeatReply("other", 5, {}, 2, strange), 1.0)
    with pytest.raises(MessageError):
        member_of("me").acknowledged(HeartbeatReply("other", 5, {}, 2, '{"epoch":5}'), 1.0)
    member = member_of("me")
    member.acknowledged(HeartbeatReply("me", 6, {}, 1, strange), 1.0)
    assert member.status() == SharingStatus(1, is_leader=True, degraded=None)


def test_a_pause_without_end_is_no_pause(room: Room) -> None:
    for text in ('{"pauses":{"all":Infinity}}', '{"pauses":{"all":1e300}}'):
        with pytest.raises(MessageError):
            room.members["b"].receive(text, 101.0)
    assert not room.members["b"].pacer.pools.paused_until() > 101.0


def test_what_comes_from_an_old_epoch_is_void(room: Room) -> None:
    b = room.members["b"]
    b.pacer.enter(claim("x"), 101.0)
    b.receive(write(Message(1, grant=Grant(["x"])), 0.0), 101.0)
    assert list(b.pacer.release(101.0).go) == []


def test_what_it_is_not_meant_for_changes_nothing(room: Room) -> None:
    a, b = room.members["a"], room.members["b"]
    epoch = room.group.epoch
    b.receive(json.dumps({"sender": "m", "epoch": epoch, "note": {"is_new": True}}), 101.0)
    a.receive(write(Message(epoch, limits=of_all(Limit(1.0, 1.0, 1.0))), 101.0), 101.0)
    b.receive(json.dumps({"epoch": epoch}), 101.0)
    assert not b.is_leader
    assert limits(a) == []


def test_before_redis_was_reached_only_a_pause_is_heard() -> None:
    member = member_of("new")
    member.receive(json.dumps({"pauses": {ALL: 2.0}}), 1.0)
    member.receive(write(Message(3, grant=Grant(["x"])), 0.0), 1.0)
    assert [member.pacer.pools.paused_until() > now for now in (2.9, 3.1)] == [True, False]
    assert member.status().degraded == "Redis was not reached yet"


def test_alone_from_the_start_it_knows_of_one_replica() -> None:
    member = member_of("alone")
    member.failed("no Redis", 1.0)
    member.relay.know(SharedLimits())
    assert member.replicas == 1


def test_the_first_visit_is_due_at_once() -> None:
    assert member_of("new").heartbeat_at(1.0) == -math.inf


def test_a_member_visits_when_the_leader_was_silent_and_soon_again(room: Room) -> None:
    b = room.members["b"]
    room.heartbeat("a", 101.0)
    assert b.heartbeat_at(101.0) == pytest.approx(102.2)  # two seconds after its own
    room.heartbeat("b", 102.2)
    assert b.heartbeat_at(102.2) == pytest.approx(102.5)  # a second and a half after the announcement
    b.heartbeat(102.6)
    assert b.heartbeat_at(102.6) == pytest.approx(102.85)


def test_a_pause_that_was_told_is_not_told_again_after_a_shorter_one(room: Room) -> None:
    b = room.members["b"]
    b.receive(json.dumps({"pauses": {ALL: 4.0}}), 101.0)
    b.receive(json.dumps({"pauses": {ALL: 1.0}}), 101.0)
    assert b.heartbeat_at(101.0) > 101.0
    assert b.heartbeat(101.1).pauses == {}


def test_requests_at_a_time_are_shown_by_all(room: Room) -> None:
    leader = led_by(room.members["a"])
    leader.pacer.pools.at(ALL).estimator.believe([], at_a_time=4)
    room.heartbeat("a", 101.0)
    assert [shown(member).at_a_time for member in room.members.values()] == [4, 4]
