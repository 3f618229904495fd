"""The seat: elections, epochs, silence and failures, as transcripts."""

import contextlib
import json
import math

import pytest

from rig.table import Table
from sealgate.core.limits import Limit
from sealgate.core.limits.claims import Claim, Fate, LimitReply
from sealgate.core.limits.pacer import PacerSettings
from sealgate.core.limits.status import SharingStatus
from sealgate.core.routes import Lane
from sealgate.core.sharing.lead import LISTENS_S
from sealgate.core.sharing.member_pacer import MemberPacer
from sealgate.core.sharing.notes import (
    Grant,
    MessageError,
    Note,
    Over,
    SharedLimit,
    write_beat,
    write_grant,
    write_note,
)
from sealgate.core.sharing.seat import LEAD_LEASE_S, MEMBER_LEASE_S, Seat, TooMuchError, VisitAnswer

LEASES_US = round(MEMBER_LEASE_S * 1e6), round(LEAD_LEASE_S * 1e6)


def seat_of(name: str) -> Seat:
    settings = PacerSettings()
    return Seat(MemberPacer(settings, lambda: 0.5, name), lambda: 0.5)


class Room:
    """Seats at one table; what is told arrives at once."""

    def __init__(self, *names: str) -> None:
        self.seats = {name: seat_of(name) for name in names}
        self.table = Table(self._tell)
        self.now = 100.0

    def _tell(self, channel: str, message: str) -> None:
        for name, seat in self.seats.items():
            if channel in ("all", name):
                seat.heard(message, self.now)

    def visit(self, name: str, now: float) -> VisitAnswer:
        self.now = now
        seat = self.seats[name]
        answer = self.table.visit(round(now * 1e6), name, seat.visit(now), *LEASES_US)
        seat.visited(answer, now)
        seat.catch_up(now)
        return answer


@pytest.fixture
def room() -> Room:
    """Return one where "a" leads, and "b" has introduced itself."""
    room = Room("a", "b")
    for now, name in enumerate("abba"):
        room.visit(name, 100.0 + now / 10)
    return room


def claim(name: str) -> Claim:
    return Claim(name, "bot", Lane.ORDER, 1000.0)


def test_the_first_leads_and_both_are_counted(room: Room) -> None:
    assert room.seats["a"].status() == SharingStatus(2, is_lead=True, degraded=None)
    room.visit("a", 101.0)
    assert room.seats["b"].status() == SharingStatus(2, is_lead=False, degraded=None)


def test_who_waits_goes_over_the_lead(room: Room) -> None:
    a, b = room.seats["a"], room.seats["b"]
    b.pacer.enter(claim("x"), 101.0)
    assert b.visit_at(101.0) == 101.0
    room.visit("b", 101.0)
    a.catch_up(101.0)
    assert a.visit_at(101.0) == 101.0
    room.visit("a", 101.0)
    assert [one.id for one in b.pacer.release(101.0).go] == ["x"]
    assert a.visit(101.1).grants == ()


def test_the_leads_own_need_no_visit(room: Room) -> None:
    a = room.seats["a"]
    assert a.pacer.goes_at_once(claim("x"), 101.0)
    a.pacer.answered(claim("x"), 101.0, LimitReply(Fate.ACCEPTED))
    a.catch_up(101.0)
    assert a.look_at() == math.inf
    assert room.seats["b"].look_at() == math.inf
    room.seats["b"].catch_up(101.0)


def test_the_leads_own_who_wait_go_when_the_lead_says_so(room: Room) -> None:
    a = room.seats["a"]
    a.pacer.enter(claim("x"), 101.0)
    assert list(a.pacer.release(101.0).go) == []
    a.catch_up(101.0)
    assert [one.id for one in a.pacer.release(101.0).go] == ["x"]


def test_a_pause_that_the_lead_learned_of_by_a_note_holds_for_its_own(room: Room) -> None:
    a, epoch = room.seats["a"], room.table.epoch
    limited = LimitReply(Fate.LIMITED, 3.0, 0.0)
    for note in (Note(waits=[claim("x")]), Note(over=[Over("x", limited, 101.0, 101.0)])):
        a.heard(write_note(note, "b", epoch, 101.0), 101.0)
        a.catch_up(101.0)
    assert a.pacer.is_paused(103.9)


def test_what_a_lead_told_itself_waits_to_be_settled(room: Room) -> None:
    a = room.seats["a"]
    before = a.is_behind
    for seat in room.seats.values():
        seat.pacer.enter(claim("x"), 101.0)
    assert (before, a.is_behind, room.seats["b"].is_behind) == (False, True, False)


def test_the_lead_shows_what_it_learned_of_the_whole(room: Room) -> None:
    lead = room.seats["a"].pacer.lead
    assert lead is not None
    lead.pacer.believe([Limit(20.0, 1.0, 20.0)])
    pacer = room.seats["a"].pacer
    assert [limit.n for limit in pacer.status(101.0).limits] == [20.0]
    assert pacer.known() == lead.pacer.limits


def test_a_pause_is_told_once_and_holds_for_all(room: Room) -> None:
    a, b = room.seats["a"], room.seats["b"]
    b.pacer.hold(105.0)
    assert b.visit_at(101.0) == 101.0
    room.visit("b", 101.0)
    assert a.pacer.is_paused(104.9)
    assert a.pacer.lead is not None
    assert a.pacer.lead.pacer.is_paused(104.9)
    assert b.visit_at(101.0) > 101.0
    assert room.visit("a", 102.0).pause_s == pytest.approx(3.0)


def test_a_pause_is_told_anew_where_redis_may_have_lost_it(room: Room) -> None:
    b = room.seats["b"]
    b.pacer.hold(105.0)
    assert [b.visit(101.0).pause_s, b.visit(101.1).pause_s] == [4.0, 0.0]
    b.failed("gone", 101.5)
    assert b.visit(102.0).pause_s == 3.0


def test_a_pause_that_is_over_is_not_told(room: Room) -> None:
    room.seats["b"].pacer.hold(101.0)
    assert room.seats["b"].visit(101.5).pause_s == 0.0


def test_the_pause_that_redis_knows_of_holds_here() -> None:
    seat = seat_of("new")
    seat.visited(VisitAnswer("other", 5, 3.0, 2), 1.0)
    assert [seat.pacer.is_paused(now) for now in (3.9, 4.1)] == [True, False]


def test_a_new_lead_keeps_to_the_pause_that_it_knew_of() -> None:
    seat = seat_of("me")
    seat.pacer.hold(5.0)
    seat.visited(VisitAnswer("me", 9, 0.0, 1), 1.0)
    assert seat.pacer.lead is not None
    assert seat.pacer.lead.pacer.is_paused(4.9)


def test_who_leads_nobody_else_opens_at_once() -> None:
    seat = seat_of("me")
    seat.visited(VisitAnswer("me", 9, 0.0, 1), 1.0)
    assert seat.look_at() == 1.0


def test_the_lead_visits_for_each_beat(room: Room) -> None:
    a = room.seats["a"]
    room.visit("a", 101.0)
    assert a.visit_at(101.0) == 101.5
    assert a.visit(101.2).beat == ""
    assert a.visit(101.5).beat != ""
    assert room.seats["b"].visit(101.5).beat == ""


def test_credits_that_nobody_needed_go_back_with_the_next_visit(room: Room) -> None:
    b = room.seats["b"]
    b.pacer.take_grant(Grant(credits=["+1"]), 101.0)
    assert b.visit_at(101.0) <= 102.0
    assert json.loads(b.visit(102.0).note)["note"][2] == ["+1"]


def test_a_member_that_comes_later_is_shown_what_the_lead_shows(room: Room) -> None:
    lead = room.seats["a"].pacer.lead
    assert lead is not None
    lead.pacer.believe([Limit(20.0, 1.0, 20.0)])
    room.visit("a", 101.0)
    later = room.seats["c"] = seat_of("c")
    room.visit("c", 101.1)
    assert [limit.n for limit in later.pacer.status(101.1).limits] == [20.0]


def test_how_many_share_is_counted_at_each_visit(room: Room) -> None:
    b = room.seats["b"]
    b.visited(VisitAnswer("a", room.table.epoch, 0.0, 3), 101.0)
    assert b.replicas == 3


@pytest.mark.parametrize("becomes", ["alone", "a member"])
def test_who_led_goes_on_with_what_it_learned(room: Room, becomes: str) -> None:
    a = room.seats["a"]
    assert a.pacer.lead is not None
    a.pacer.lead.pacer.believe([Limit(20.0, 1.0, 20.0)])
    if becomes == "alone":
        a.failed("gone", 101.0)
    else:
        a.visited(VisitAnswer("b", room.table.epoch + 1, 0.0, 2), 101.0)
    assert [limit.n for limit in a.pacer.known()] == [20.0]


def test_a_lead_that_is_silent_is_looked_for_and_followed_by_the_next(room: Room) -> None:
    b = room.seats["b"]
    at = b.visit_at(100.3)
    assert at <= 100.3 + 2.0
    room.visit("b", 104.0)
    assert b.status().is_lead
    assert b.pacer.lead is not None
    assert b.pacer.lead.look_at == 104.0 + LISTENS_S
    room.visit("a", 104.1)
    assert not room.seats["a"].is_lead


def test_a_member_that_was_gone_too_long_is_forgotten_by_the_lead(room: Room) -> None:
    a = room.seats["a"]
    assert a.pacer.lead is not None
    for now in range(101, 109):
        room.visit("a", float(now))
    assert a.pacer.lead is not None
    assert a.pacer.lead.members() == ("a",)
    assert a.replicas == 1


def test_without_redis_it_goes_alone_and_tries_again_soon(room: Room) -> None:
    a, b = room.seats["a"], room.seats["b"]
    for seat in (a, b):
        seat.failed("gone", 101.0)
        assert seat.status().degraded == "gone"
        assert not seat.is_lead
        assert seat.visit_at(101.0) == 101.25
        assert not seat.pacer.is_shared
        seat.failed("still gone", 101.3)
        assert seat.status().degraded == "still gone"
        assert seat.replicas == 2


def test_back_at_an_empty_redis_the_new_lead_listens_first(room: Room) -> None:
    for seat in room.seats.values():
        seat.failed("gone", 101.0)
    room.table = Table(room._tell)
    room.visit("b", 101.3)
    lead = room.seats["b"].pacer.lead
    assert lead is not None
    assert lead.look_at == 101.3 + LISTENS_S


def test_a_lead_that_lost_its_way_to_redis_begins_anew(room: Room) -> None:
    before = room.seats["a"].pacer.lead
    room.seats["a"].failed("gone", 101.0)
    epoch = room.table.epoch
    room.visit("a", 101.1)
    assert room.table.epoch > epoch
    assert room.seats["a"].pacer.lead is not before
    assert room.seats["b"].visit_at(101.1) == 101.1  # it has heard of the new epoch


def test_limits_go_from_lead_to_lead(room: Room) -> None:
    lead = room.seats["a"].pacer.lead
    assert lead is not None
    lead.pacer.believe([Limit(20.0, 1.0, 20.0, seen=2, last_seen=99.0)])
    room.visit("a", 101.0)
    room.seats["a"].failed("gone", 101.1)
    room.visit("b", 103.0)
    next_lead = room.seats["b"].pacer.lead
    assert next_lead is not None
    assert [(limit.n, limit.window) for limit in next_lead.pacer.limits] == [(20.0, 1.0)]


def test_what_is_said_to_a_lead_before_it_knows_that_it_is_one_is_kept() -> None:
    seat = seat_of("late")
    seat.visited(VisitAnswer("other", 5, 0.0, 2), 1.0)
    seat.heard(json.dumps({"from": "m", "epoch": 9, "note": [True, [], [], [], [], [], 3]}), 1.0)
    assert seat.visit_at(1.0) == 1.0
    seat.visited(VisitAnswer("late", 9, 0.0, 1), 1.1)
    assert seat.pacer.lead is not None
    assert seat.pacer.lead.members() == ("m",)


def test_what_is_said_of_an_epoch_that_a_visit_does_not_find_is_dropped() -> None:
    """Whoever can write to Redis may name any epoch: that must not stay, nor have an effect later."""
    seat = seat_of("me")
    seat.visited(VisitAnswer("other", 5, 0.0, 2), 1.0)
    for number in range(300):
        seat.heard(write_note(Note(waits=[claim("x" * 900)]), f"m{number}", 9, 1.0), 1.0)
        seat.visit(1.0)
        seat.visited(VisitAnswer("other", 5, 0.0, 2), 1.0)
    seat.visited(VisitAnswer("me", 9, 0.0, 1), 1.1)
    assert seat.pacer.lead is not None
    assert seat.pacer.lead.members() == ()


def test_what_was_said_since_the_visit_is_kept_for_the_next() -> None:
    seat = seat_of("me")
    seat.visited(VisitAnswer("other", 5, 0.0, 2), 1.0)
    seat.visit(1.0)
    seat.heard(write_note(Note(wants=3), "m", 9, 1.0), 1.0)
    seat.visited(VisitAnswer("other", 5, 0.0, 2), 1.0)
    assert seat.visit_at(1.0) == 1.0
    seat.visit(1.0)
    seat.visited(VisitAnswer("me", 9, 0.0, 1), 1.1)
    assert seat.pacer.lead is not None
    assert seat.pacer.lead.members() == ("m",)


@pytest.mark.parametrize("size", [0, 100_000])
def test_more_than_gateways_have_to_say_is_not_kept(size: int) -> None:
    seat = seat_of("me")
    seat.visited(VisitAnswer("other", 5, 0.0, 2), 1.0)
    message = json.dumps({"epoch": 9, "padding": "x" * size})
    heard = 0
    with contextlib.suppress(TooMuchError):
        for heard in range(3000):  # noqa: B007 - where it ended
            seat.heard(message, 1.0)
    assert 10 < heard < 2500
    seat.failed("too much", 1.0)
    seat.visited(VisitAnswer("other", 9, 0.0, 2), 1.0)
    seat.heard(json.dumps({"epoch": 10}), 1.0)
    assert seat.trouble is None


def test_a_beat_that_makes_no_sense_holds_up_only_those_whom_its_writer_leads() -> None:
    strange = '{"beat":{}}'
    with pytest.raises(MessageError):
        seat_of("me").visited(VisitAnswer("other", 5, 0.0, 2, strange), 1.0)
    with pytest.raises(MessageError):
        seat_of("me").visited(VisitAnswer("other", 5, 0.0, 2, '{"epoch":5}'), 1.0)
    seat = seat_of("me")
    seat.visited(VisitAnswer("me", 6, 0.0, 1, strange), 1.0)
    assert seat.status() == SharingStatus(1, is_lead=True, degraded=None)


def test_a_pause_without_end_is_no_pause(room: Room) -> None:
    for text in ('{"pause":Infinity}', '{"pause":1e300}'):
        with pytest.raises(MessageError):
            room.seats["b"].heard(text, 101.0)
    assert not room.seats["b"].pacer.is_paused(101.0)


def test_what_comes_from_an_old_epoch_is_void(room: Room) -> None:
    b = room.seats["b"]
    b.pacer.enter(claim("x"), 101.0)
    b.heard(write_grant(Grant(["x"]), 1), 101.0)
    assert list(b.pacer.release(101.0).go) == []


def test_what_it_is_not_meant_for_changes_nothing(room: Room) -> None:
    a, b = room.seats["a"], room.seats["b"]
    epoch = room.table.epoch
    b.heard(json.dumps({"from": "m", "epoch": epoch, "note": [True, [], [], [], [], [], 0]}), 101.0)
    a.heard(write_beat(SharedLimit((Limit(1.0, 1.0, 1.0),)), epoch, 101.0), 101.0)
    b.heard(json.dumps({"epoch": epoch}), 101.0)
    assert not b.is_lead
    assert a.pacer.known() == []


def test_before_redis_was_reached_only_a_pause_is_heard() -> None:
    seat = seat_of("new")
    seat.heard(json.dumps({"pause": 2.0}), 1.0)
    seat.heard(write_grant(Grant(["x"]), 3), 1.0)
    assert [seat.pacer.is_paused(now) for now in (2.9, 3.1)] == [True, False]
    assert seat.status().degraded == "Redis was not reached yet"


def test_alone_from_the_start_it_knows_of_one_replica() -> None:
    seat = seat_of("alone")
    seat.failed("no Redis", 1.0)
    seat.pacer.know(SharedLimit())
    assert seat.replicas == 1


def test_the_first_visit_is_due_at_once() -> None:
    assert seat_of("new").visit_at(1.0) == -math.inf


def test_a_member_visits_when_the_lead_was_silent_and_soon_again(room: Room) -> None:
    b = room.seats["b"]
    room.visit("a", 101.0)
    assert b.visit_at(101.0) == pytest.approx(102.2)  # two seconds after its own
    room.visit("b", 102.2)
    assert b.visit_at(102.2) == pytest.approx(102.5)  # a second and a half after the beat
    b.visit(102.6)
    assert b.visit_at(102.6) == pytest.approx(102.85)


def test_a_pause_that_was_told_is_not_told_again_after_a_shorter_one(room: Room) -> None:
    b = room.seats["b"]
    b.heard(json.dumps({"pause": 4.0}), 101.0)
    b.heard(json.dumps({"pause": 1.0}), 101.0)
    assert b.visit_at(101.0) > 101.0
    assert b.visit(101.1).pause_s == 0.0


def test_requests_at_a_time_are_shown_by_all(room: Room) -> None:
    lead = room.seats["a"].pacer.lead
    assert lead is not None
    lead.pacer.believe([], at_a_time=4)
    room.visit("a", 101.0)
    assert [seat.pacer.status(101.0).at_a_time for seat in room.seats.values()] == [4, 4]
