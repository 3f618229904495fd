"""A pacer and its relay: what it reports, what it lets go, and what it does alone; as transcripts."""

import math
from collections.abc import Callable

import pytest

from rig.kept_limit import kept
from rig.pacing import settings_of
from sealgate.cluster.leader import Leader
from sealgate.cluster.messages import (
    Completion,
    Grant,
    Note,
    Passage,
    RejectedClaim,
    SharedLimits,
    SharedPool,
)
from sealgate.cluster.relay import LeaderRelay
from sealgate.limits import Limit
from sealgate.limits.claims import Claim, Fate, LimitReply, Rejection, Release
from sealgate.limits.pacer import Pacer
from sealgate.limits.pools import PacerSettings
from sealgate.limits.quotas import Quota
from sealgate.limits.snapshots import Snapshot
from sealgate.limits.status import LimitStatus
from sealgate.venues.routes import Lane

ALL = "all"
ANY = Passage((ALL,), ())  # what a claim passes of which nothing more is known
ACCEPTED = LimitReply(Fate.ACCEPTED)
SHOWN = LimitStatus(
    20.0, 1.0, 0.5, 3, is_foreign_use=False, words="about 20 per 1 s", low=20.0, high=20.0, next_step=""
)


def claim(name: str = "a", give_up_at: float = 1000.0, cost: float = 1.0) -> Claim:
    return Claim(name, "bot", Lane.ORDER, give_up_at, cost=cost)


@pytest.fixture
def relay() -> LeaderRelay:
    """Return one that shares, and has introduced itself."""
    relay = LeaderRelay(Pacer(PacerSettings(), lambda: 0.5), "me")
    relay.share(0.0)
    assert relay.take_note().is_new
    return relay


def waiting(relay: LeaderRelay, *names: str, now: float = 0.0) -> list[Claim]:
    claims = [claim(name) for name in names]
    assert [relay.pacer.enter(one, now) for one in claims] == [None] * len(claims)
    return claims


def shown(relay: LeaderRelay) -> tuple[LimitStatus, ...]:
    relay.pacer.pools.at(ALL)
    return relay.shown(relay.pacer.status(0.0), 0.0).pools[ALL].limits


def of_all(*known: Limit, replicas: int = 1, shown: tuple[LimitStatus, ...] = ()) -> SharedLimits:
    return SharedLimits({ALL: SharedPool(known, shown)}, replicas)


def count_sent(relay: LeaderRelay, *sends: tuple[float, float]) -> None:
    for at, cost in sends:
        relay.pacer.pools.at(ALL).estimator.log.add(at, cost)


def adopt(relay: LeaderRelay, settings: PacerSettings) -> None:
    relay.pacer.pools.adopt(settings)
    relay.adopt(settings)


def restore(relay: LeaderRelay, snapshot: Snapshot) -> None:
    relay.pacer.pools.restore({ALL: snapshot}, 0.0)
    relay.restored()


def granted(relay: LeaderRelay, *names: str, now: float = 0.0) -> list[Claim]:
    relay.take_grant(Grant(go=list(names)), now)
    return list(relay.pacer.release(now).go)


def test_who_waits_goes_when_granted_and_not_before_and_only_once(relay: LeaderRelay) -> None:
    a, b = waiting(relay, "a", "b")
    assert relay.take_note().waits == [a, b]
    assert list(relay.pacer.release(0.0).go) == []
    assert granted(relay, "b", "b") == [b]
    assert granted(relay, "a", "b") == [a]
    assert relay.take_note() == Note()


def leave(relay: LeaderRelay) -> None:
    relay.pacer.leave(claim("a"))


def go_and_leave(relay: LeaderRelay) -> None:
    granted(relay, "a")
    leave(relay)


def leave_and_go(relay: LeaderRelay) -> None:
    leave(relay)
    relay.take_note()
    granted(relay, "a")


GONE: dict[str, Callable[[LeaderRelay], object]] = {
    "it leaves the queue": leave,
    "it was granted, and leaves": go_and_leave,
    "its time is over": lambda relay: relay.pacer.release(1.0),
    "it is granted although it left": leave_and_go,
}


@pytest.mark.parametrize("give_up", GONE.values(), ids=GONE)
def test_what_will_not_be_sent_is_given_back(
    relay: LeaderRelay, give_up: Callable[[LeaderRelay], object]
) -> None:
    for one in (claim("a", give_up_at=1.0), claim("b")):
        relay.pacer.enter(one, 0.0)
    relay.take_note()
    give_up(relay)
    assert relay.take_note() == Note(gone=["a"])
    assert relay.due_at == math.inf
    assert relay.pacer.status(0.0).waiting == {("", Lane.ORDER, "bot"): 1}


def test_who_leaves_before_the_leader_has_heard_of_it_is_not_mentioned(relay: LeaderRelay) -> None:
    a, b = waiting(relay, "a", "b")
    relay.pacer.leave(a)
    assert relay.take_note() == Note(waits=[b])


@pytest.mark.parametrize("names", [("1",), ("1", "2")], ids=["one is granted", "both are granted at once"])
def test_reads_that_are_alike_go_as_one_and_the_leader_gets_the_other_place_back(
    relay: LeaderRelay, names: tuple[str, ...]
) -> None:
    one, other = (Claim(name, "bot", Lane.READ, 9.0, is_read=True, alike="positions") for name in "12")
    assert (relay.pacer.enter(one, 0.0), relay.pacer.enter(other, 0.0)) == (None, None)
    relay.take_note()
    relay.take_grant(Grant(go=list(names)), 0.0)
    release = relay.pacer.release(0.0)
    assert (release.go, release.shared) == ((one,), ((other, one),))
    assert relay.take_note().gone == ["2"]
    assert relay.pacer.status(0.0).waiting == {}


def test_a_grant_that_comes_with_the_end_of_a_deadline_is_refused_once(relay: LeaderRelay) -> None:
    late, other = claim("late", give_up_at=1.0), claim("other", give_up_at=1.0)
    for one in (late, other):
        relay.pacer.enter(one, 0.0)
    relay.take_note()
    relay.take_grant(Grant(go=["late"]), 1.0)
    release = relay.pacer.release(1.0)
    assert ([one.claim for one in release.rejected], release.go) == ([late, other], ())
    assert relay.pacer.release(1.0) == Release((), (), None)
    assert relay.take_note().gone == ["late", "other"]


def test_what_the_leader_declines_is_refused_here_with_its_reason(relay: LeaderRelay) -> None:
    a, _ = waiting(relay, "a", "b")
    relay.take_note()
    rejected = RejectedClaim("a", "deadline_exceeded", "The queue is too long.", 2.0)
    unknown = rejected._replace(name="never heard of")
    relay.take_grant(Grant(rejected=[rejected, rejected, unknown]), 0.0)
    expected = Rejection(a, "deadline_exceeded", "The queue is too long.", 2.0)
    assert relay.pacer.release(0.0) == Release((), (expected,), 1000.0)
    assert relay.take_note() == Note()


def test_a_late_first_byte_is_told(relay: LeaderRelay) -> None:
    a, b = waiting(relay, "a", "b")
    granted(relay, "a", "b", now=1.0)
    relay.take_note()
    relay.pacer.sent(a, 1.004)
    relay.pacer.sent(b, 1.006)
    relay.pacer.answered(b, 1.1, ACCEPTED)
    note = relay.take_note()
    assert note.sent == [("b", 1.006)]
    assert note.completed == [Completion("b", ACCEPTED, 1.006, 1.1)]


def test_a_credit_lets_one_go_at_once_and_is_told_as_sent(relay: LeaderRelay) -> None:
    assert not relay.pacer.goes_at_once(claim(), 0.0)
    assert relay.take_note().wants[ANY] > 0
    relay.take_grant(Grant(credits={ANY: ["+1", "+2"]}), 0.0)
    assert relay.pacer.goes_at_once(claim(), 0.1)
    relay.pacer.sent(claim(), 0.1)
    relay.pacer.answered(claim(), 0.2, ACCEPTED)
    note = relay.take_note()
    assert note.sent == [("+1", 0.1)]
    assert note.completed == [Completion("+1", ACCEPTED, 0.1, 0.2)]


def test_in_the_leaders_own_process_a_claim_goes_while_the_leader_has_room(relay: LeaderRelay) -> None:
    relay.leader = Leader(settings_of(Quota(1, 1.0)), lambda: 0.5, {}, 0.0)
    assert [relay.pacer.goes_at_once(claim(name), 0.0) for name in "ab"] == [True, False]
    relay.pacer.leave(claim("b"))
    assert relay.take_note() == Note()


def test_a_credit_that_is_not_used_goes_back(relay: LeaderRelay) -> None:
    relay.take_grant(Grant(credits={ANY: ["+1"]}), 0.0)
    relay.take_grant(Grant(credits={ANY: ["+2"]}), 0.5)
    for end, name in ((1.0, "+1"), (1.5, "+2")):
        assert relay.credit_ends_at() == end
        relay.return_credits(end)
        assert relay.take_note().gone == [name]
    assert relay.credit_ends_at() == float("inf")


def test_no_credit_outlives_a_pause(relay: LeaderRelay) -> None:
    [a] = waiting(relay, "a")
    granted(relay, "a")
    relay.take_note()
    relay.take_grant(Grant(credits={ANY: ["+1"]}), 0.0)
    relay.pacer.hold(ALL, 0.2, 0.0)
    assert relay.take_note().gone == ["+1"]
    relay.take_grant(Grant(credits={ANY: ["+2"]}), 0.3)
    relay.pacer.hold(ALL, 0.2, 0.0)  # what was known already voids nothing
    assert relay.take_note().gone == []
    relay.pacer.answered(a, 0.3, LimitReply(Fate.LIMITED, 0.1, 0.0))
    assert relay.take_note().gone == ["+2"]


NO_CREDIT: dict[str, tuple[Callable[[LeaderRelay], object], Claim, float, bool]] = {
    "at hand": (lambda _: None, claim(), 0.0, True),
    "up to the end of its time": (lambda _: None, claim(give_up_at=0.5), 0.5, True),
    "its time is over": (lambda _: None, claim(give_up_at=-1.0), 0.0, False),
    "it costs more than one": (lambda _: None, claim(cost=2.0), 0.0, False),
    "the credit is too old": (lambda _: None, claim(), 1.0, False),
    "paused": (lambda relay: relay.pacer.hold(ALL, 1.0, 0.0), claim(), 0.0, False),
    "somebody waits": (lambda relay: waiting(relay, "before"), claim(), 0.0, False),
    "another of its serial is under way": (
        lambda relay: relay.pacer.goes_at_once(Claim("b", "bot", Lane.ORDER, 9.0, serial="k"), 0.0),
        Claim("a", "bot", Lane.ORDER, 9.0, serial="k"),
        0.0,
        False,
    ),
}


@pytest.mark.parametrize(("before", "one", "now", "is_used"), NO_CREDIT.values(), ids=NO_CREDIT)
def test_when_a_credit_is_used(
    relay: LeaderRelay, before: Callable[[LeaderRelay], object], one: Claim, now: float, *, is_used: bool
) -> None:
    relay.take_grant(Grant(credits={ANY: ["+1", "+2"]}), 0.0)
    before(relay)
    assert relay.pacer.goes_at_once(one, now) is is_used


def answered(name: str, fate: Fate) -> Callable[[LeaderRelay], None]:
    """Return what has the claim `a` answered, which was granted, or went on the credit `+1`."""

    def tell(relay: LeaderRelay) -> None:
        one = claim("a" if name == "a" else "c")
        if name != "a":
            relay.take_grant(Grant(credits={ANY: [name]}), 1.0)
            assert relay.pacer.goes_at_once(one, 1.0)
            relay.take_note()
        relay.pacer.answered(one, 1.0, LimitReply(fate))

    return tell


# What is reported at 1.0, and when that is due: at once, or a little later, in company.
DUE: dict[str, tuple[Callable[[LeaderRelay], object], float]] = {
    "all that it has": (lambda relay: relay.share(1.0), 1.0),
    "a claim that waits": (lambda relay: relay.pacer.enter(claim("b"), 1.0), 1.0),
    "one that is gone": (lambda relay: relay.pacer.leave(claim("a")), -math.inf),
    "a late first byte": (lambda relay: relay.pacer.sent(claim("a"), 1.0), 1.01),
    "the answer to a granted one, which may hold others up": (answered("a", Fate.ACCEPTED), 1.0),
    "the answer to one on credit": (answered("+1", Fate.ACCEPTED), 1.01),
    "one on credit that is lost": (answered("+1", Fate.LOST), 1.01),
    "a 429": (answered("+1", Fate.LIMITED), 1.0),
}


@pytest.mark.parametrize(("report", "due_at"), DUE.values(), ids=DUE)
def test_when_a_report_is_due(
    relay: LeaderRelay, report: Callable[[LeaderRelay], object], due_at: float
) -> None:
    waiting(relay, "a")
    granted(relay, "a")
    relay.take_note()
    assert relay.due_at == math.inf
    report(relay)
    assert relay.due_at == pytest.approx(due_at)


def test_what_is_granted_in_a_pause_is_asked_for_anew_unless_it_ends_soon(relay: LeaderRelay) -> None:
    [a] = waiting(relay, "a")
    relay.take_note()
    relay.pacer.hold(ALL, 5.0, 0.0)
    assert granted(relay, "a", now=4.94) == []
    assert relay.take_note() == Note(gone=["a"], waits=[a])
    relay.take_grant(Grant(go=["a"]), 4.99)
    assert relay.pacer.release(4.99).look_again_at == 5.0
    assert list(relay.pacer.release(5.0).go) == [a]


def test_what_another_leader_decided_is_void(relay: LeaderRelay) -> None:
    a, b = waiting(relay, "a", "b")
    rejected = RejectedClaim("b", "rate_limited", "The key is paused.", 2.0)
    relay.take_grant(Grant(["a"], {ANY: ["+1"]}, [rejected]), 0.0)
    relay.share(0.1)
    assert relay.take_note().waits == [a, b]
    release = relay.pacer.release(0.1)
    assert (list(release.go), list(release.rejected), relay.credit_ends_at()) == ([], [], math.inf)
    assert granted(relay, "a", "b", now=0.2) == [a, b]


def test_of_one_serial_one_is_under_way_whatever_the_leader_grants(relay: LeaderRelay) -> None:
    lanes = {"a": Lane.ORDER, "b": Lane.ORDER, "c": Lane.CANCEL}
    a, b, c = (Claim(name, "bot", lane, 1000.0, serial="k") for name, lane in lanes.items())
    for one in (a, b, c):
        assert relay.pacer.enter(one, 0.0) is None
    assert granted(relay, "a", "b") == [a]
    assert granted(relay, "c") == []
    relay.pacer.answered(a, 0.1, ACCEPTED)
    assert list(relay.pacer.release(0.1).go) == [c]
    relay.pacer.leave(c)
    assert list(relay.pacer.release(0.1).go) == [b]


def test_who_cannot_be_served_in_time_by_its_part_is_refused_and_not_told(relay: LeaderRelay) -> None:
    relay.know(of_all(Limit(20.0, 1.0, 20.0), replicas=4))
    before = waiting(relay, *"12345")
    in_time, late = claim("in time", give_up_at=1.01), claim("late", give_up_at=1.09)
    assert relay.pacer.enter(in_time, 0.0) is None
    refused = relay.pacer.enter(late, 0.0)
    assert refused is not None
    assert refused.slug == "deadline_exceeded"
    assert refused.retry_after_s == pytest.approx(1.2, abs=0.01)
    assert relay.take_note().waits == [*before, in_time]


def test_what_was_answered_is_under_way_no_longer(relay: LeaderRelay) -> None:
    [a] = waiting(relay, "a")
    granted(relay, "a")
    relay.pacer.answered(a, 0.1, ACCEPTED)
    relay.know(SharedLimits({ALL: SharedPool(at_a_time=1)}))
    relay.go_alone(0.2)
    assert relay.pacer.goes_at_once(claim("b"), 0.2)


def test_a_pause_begins_here_at_once_and_outlasts_the_sharing(relay: LeaderRelay) -> None:
    a, b = waiting(relay, "a", "b")
    granted(relay, "a", "b")
    for one in (a, b):
        relay.pacer.answered(one, 0.0, LimitReply(Fate.LIMITED, 3.0, 0.0))
    assert [relay.pacer.pools.paused_until() > now for now in (2.9, 3.1)] == [True, False]
    relay.go_alone(0.1)
    assert relay.pacer.pools.paused_until() > 2.9
    waiting(relay, "c", now=0.1)
    assert list(relay.pacer.release(2.9).go) == []


def test_what_was_sent_under_another_leader_is_not_told_to_this_one(relay: LeaderRelay) -> None:
    [a] = waiting(relay, "a")
    granted(relay, "a")
    relay.share(1.0)
    note = relay.take_note()
    assert note.is_new
    assert sum(cost for _, cost in note.spent[ALL]) == 1.0
    relay.pacer.sent(a, 1.5)
    relay.pacer.answered(a, 2.0, ACCEPTED)
    assert relay.take_note() == Note()


def test_alone_it_goes_by_a_careful_part_and_says_so(relay: LeaderRelay) -> None:
    relay.know(of_all(Limit(20.0, 1.0, 20.0), replicas=4, shown=(SHOWN,)))
    assert shown(relay) == (SHOWN,)
    relay.go_alone(0.0)
    [limit] = shown(relay)
    assert limit.n == 4.0
    assert limit.words == "4 per 1 s, never refused yet, this gateway's share while sharing fails"
    went = [relay.pacer.goes_at_once(claim(str(number)), 0.0) for number in range(6)]
    assert went == [True] * 4 + [False] * 2
    relay.pacer.leave(claim("0"))
    relay.pacer.sent(claim("1"), 0.1)
    relay.pacer.answered(claim("1"), 0.1, ACCEPTED)
    relay.know(of_all(Limit(8.0, 1.0, 8.0), replicas=1))  # what is heard meanwhile is for later
    assert relay.pacer.pools.at(ALL).estimator.limits[0].n == 4.0
    assert relay.take_note() == Note()


def test_back_from_being_alone_it_tells_only_what_it_sent_meanwhile(relay: LeaderRelay) -> None:
    a, b = waiting(relay, "a", "r")
    granted(relay, "a", "r")
    relay.pacer.answered(b, 0.1, LimitReply(Fate.LIMITED, 0.1, 0.0))  # which the exchange did not count
    relay.share(0.5)
    assert sum(cost for _, cost in relay.take_note().spent[ALL]) == 1.0
    relay.pacer.answered(a, 0.6, ACCEPTED)
    relay.go_alone(1.0)
    relay.go_alone(1.5)
    assert relay.pacer.goes_at_once(claim("b"), 2.0)
    relay.share(3.0)
    assert sum(cost for _, cost in relay.take_note().spent[ALL]) == 1.0
    relay.share(4.0)
    assert sum(cost for _, cost in relay.take_note().spent[ALL]) == 2.0


def test_who_waits_when_it_goes_alone_goes_at_an_even_pace(relay: LeaderRelay) -> None:
    relay.know(of_all(Limit(20.0, 1.0, 20.0), replicas=4))
    a, _, _ = waiting(relay, "a", "b", "c")
    relay.go_alone(1.0)
    release = relay.pacer.release(1.0)
    assert list(release.go) == [a]
    assert release.look_again_at == pytest.approx(1.125, abs=0.05)  # half a place
    assert relay.pacer.release(1.13).go
    assert relay.pacer.release(1.13).look_again_at == pytest.approx(1.255, abs=0.05)


def test_what_the_journal_kept_is_where_a_leader_starts() -> None:
    relay = LeaderRelay(Pacer(PacerSettings(), lambda: 0.5), "me")
    restore(relay, [])
    assert relay.whole(ALL).limits == ()
    relay.pacer.pools.at(ALL).estimator.believe([Limit(3.0, 1.0, 3.0)])
    assert [limit.n for limit in shown(relay)] == [
        3.0
    ]  # alone from the start, it shows what it learned itself
    restore(relay, kept(20.0, 1.0))
    assert [limit.n for limit in relay.whole(ALL).limits] == [20.0]
    published = LeaderRelay(Pacer(settings_of(Quota(5.0, 1.0)), lambda: 0.5), "me")
    restore(published, kept(20.0, 1.0))
    assert [limit.n for limit in published.whole(ALL).limits] == [5.0]


@pytest.mark.parametrize(
    ("at_hand", "before", "wants"),
    [
        pytest.param(2, 0, 1, id="two, where nothing was sent of late"),
        pytest.param(3, 0, 0, id="none, where more than half of that are at hand"),
        pytest.param(1, 5, 12, id="twice what was sent of late, and two"),
        pytest.param(8, 5, 0, id="none, where more than half of those are at hand"),
        pytest.param(1, 40, 64, id="but no more than the most"),
    ],
)
def test_how_many_credits_it_asks_for(relay: LeaderRelay, at_hand: int, before: int, wants: int) -> None:
    for at, cost in ((0.89, 9.0), (0.91, float(before))):
        count_sent(relay, (at, cost))
    relay.take_grant(Grant(credits={ANY: [f"+{number}" for number in range(at_hand)]}), 1.0)
    assert relay.pacer.goes_at_once(claim(), 1.0)
    assert relay.due_at == pytest.approx(1.01 if wants else float("inf"))
    assert relay.take_note().wants.get(ANY, 0) == wants


@pytest.mark.parametrize(
    ("limits", "now", "spent"),
    [
        pytest.param(
            (Limit(9.0, 32.0, 0.28125), Limit(5.0, 1.0, 5.0)),
            100.0,
            [(31.0, 1.0), (23.0, 2.0), (0.0, 1.0)],
            id="within the longest window",
        ),
        pytest.param((), 100.0, [(0.0, 9.0)], id="all of an hour where no limit is known"),
        pytest.param((), 3650.0, [(3487.5, 5.0)], id="no more than an hour where no limit is known"),
    ],
)
def test_what_was_spent_is_told_in_parts(
    relay: LeaderRelay, limits: tuple[Limit, ...], now: float, spent: list[tuple[float, float]]
) -> None:
    relay.know(of_all(*limits))
    count_sent(relay, (10.0, 4.0), (67.5, 1.0), (68.5, 1.0), (76.5, 2.0), (99.5, 1.0))
    relay.share(now)
    assert relay.take_note().spent == {ALL: spent}


def test_what_was_to_be_told_to_a_leader_that_is_lost_is_dropped(relay: LeaderRelay) -> None:
    a, b, c = waiting(relay, "a", "b", "c")
    granted(relay, "a")
    relay.take_grant(Grant(credits={ANY: ["+1"]}), 0.0)
    relay.go_alone(1.0)
    relay.pacer.enter(claim("d"), 1.0)
    relay.pacer.answered(a, 1.0, LimitReply(Fate.LIMITED, 2.0, 0.0))
    assert relay.pacer.pools.paused_until() > 2.9
    relay.pacer.leave(b)
    relay.pacer.hold(ALL, 4.0, 0.0)
    assert relay.due_at == float("inf")
    assert relay.take_note() == Note()
    assert [one.id for one in relay.pacer.release(4.0).go] == [c.id]


def test_other_settings_are_the_leads_to_go_by(relay: LeaderRelay) -> None:
    """A member keeps its share of what the leader knows; alone it goes by what is published."""
    relay.know(of_all(Limit(10.0, 1.0, 10.0), replicas=2))
    share = relay.pacer.pools.at(ALL).estimator.limits[:]
    settings = settings_of(Quota(20, 1), queue=1)
    adopt(relay, settings)
    assert relay.pacer.pools.at(ALL).estimator.limits == share
    waiting(relay, "a")
    assert relay.pacer.enter(claim("b"), 0.0) is not None
    relay.leader = Leader(PacerSettings(), lambda: 0.5, {}, 0.0)
    adopt(relay, settings)
    assert [limit.n for limit in relay.leader.pacer.pools.at(ALL).estimator.limits] == [20.0]
    assert relay.leader.pacer.settings.queue is None  # each member bounds its own
    alone = LeaderRelay(Pacer(PacerSettings(), lambda: 0.5), "me")
    adopt(alone, settings)
    assert [limit.n for limit in alone.pacer.pools.at(ALL).estimator.limits] == [20.0]


def test_what_cannot_wait_for_the_end_of_a_pause_is_told_so_before_it_enters() -> None:
    relay = LeaderRelay(Pacer(PacerSettings(), lambda: 0.5), "me")
    relay.pacer.hold(ALL, 10.0, 0.0)
    early, patient = (Claim(name, "bot", Lane.ORDER, at) for name, at in (("a", 5.0), ("b", 20.0)))
    rejection = relay.pacer.outlasted(early, 1.0)
    assert rejection is not None
    assert rejection.retry_after_s == 9.0
    assert relay.pacer.outlasted(patient, 1.0) is None
