"""The seat: elections, epochs, silence and failures, as transcripts."""

import json
import math

import pytest

from rig.table import Table
from sealgate.core.pacing.claims import Claim, Fate, LimitReply
from sealgate.core.pacing.limit import Limit
from sealgate.core.pacing.pacer import PacerSettings
from sealgate.core.pacing.status import SharingStatus
from sealgate.core.routes import Lane
from sealgate.core.sharing.lead import LISTENS_S
from sealgate.core.sharing.member_pacer import MemberPacer, SharedLimit
from sealgate.core.sharing.seat import LEAD_LEASE_S, MEMBER_LEASE_S, Seat, VisitAnswer

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


def test_the_leads_own_need_no_visit(room: Room) -> None:
    a = room.seats["a"]
    assert a.pacer.goes_at_once(claim("x"), 101.0)
    a.pacer.answered(claim("x"), 101.0, LimitReply(Fate.ACCEPTED))
    a.catch_up(101.0)
    assert a.look_at() == math.inf
    assert room.seats["b"].look_at() == math.inf
    room.seats["b"].catch_up(101.0)


def test_what_a_lead_told_itself_waits_to_be_settled(room: Room) -> None:
    a = room.seats["a"]
    before = a.is_behind
    for seat in room.seats.values():
        seat.pacer.enter(claim("x"), 101.0)
    assert (before, a.is_behind, room.seats["b"].is_behind) == (False, True, False)


def test_the_lead_shows_what_it_learned_of_the_whole(room: Room) -> None:
    lead = room.seats["a"].pacer.lead
    assert lead is not None
    lead.pacer.believe([Limit(20.0, 1.0)])
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
    lead.pacer.believe([Limit(20.0, 1.0, seen=2, last_seen=99.0)])
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


def test_what_comes_from_an_old_epoch_is_void(room: Room) -> None:
    b = room.seats["b"]
    b.pacer.enter(claim("x"), 101.0)
    b.heard(json.dumps({"epoch": 1, "grant": [["x"], []]}), 101.0)
    assert list(b.pacer.release(101.0).go) == []


def test_what_it_is_not_meant_for_changes_nothing(room: Room) -> None:
    a, b = room.seats["a"], room.seats["b"]
    epoch = room.table.epoch
    b.heard(json.dumps({"from": "m", "epoch": epoch, "note": [True, [], [], [], [], [], 0]}), 101.0)
    a.heard(json.dumps({"epoch": epoch, "beat": {}}), 101.0)
    b.heard(json.dumps({"epoch": epoch}), 101.0)
    assert not b.is_lead


def test_before_redis_was_reached_only_a_pause_is_heard() -> None:
    seat = seat_of("new")
    seat.heard(json.dumps({"pause": 2.0}), 1.0)
    seat.heard(json.dumps({"epoch": 3, "grant": [["x"], []]}), 1.0)
    assert seat.pacer.is_paused(2.9)
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
    lead.pacer._envelope.in_flight.cap = 4
    room.visit("a", 101.0)
    assert [seat.pacer.status(101.0).at_a_time for seat in room.seats.values()] == [4, 4]
