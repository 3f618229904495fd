"""Corners of the envelope that no transcript of the pacer reaches."""

import math
from dataclasses import replace

import pytest

from sealgate.core.pacing.claims import Claim
from sealgate.core.pacing.envelope import Envelope
from sealgate.core.pacing.episode import Episode
from sealgate.core.pacing.limit import Limit
from sealgate.core.pacing.reading import Kind
from sealgate.core.pacing.sent_log import LimitScope
from sealgate.core.pacing.stated import Quota
from sealgate.core.routes import Lane

READ = Claim("1", "a", Lane.READ, 1e9, is_read=True)
ORDER = Claim("2", "a", Lane.ORDER, 1e9)


def test_what_the_log_has_forgotten_is_not_counted_again() -> None:
    envelope = Envelope()
    envelope.sent(READ, 1.0, 2.0)
    assert envelope.log.all.count(0.0) == 0.0


def test_only_the_limit_that_is_probed_is_lifted() -> None:
    envelope = Envelope((Quota(5, 1.0), Quota(50, 60.0)))
    probed, other = envelope.limits
    probed.step = 0.1
    envelope.took(READ, 1.0, is_paced=False)
    envelope.accepted(READ, 1.0, 1.04, is_scout=False)
    assert (probed.lifted, other.lifted) == (1.0, 0.0)


def test_what_overtook_the_first_refused_on_its_way_is_counted() -> None:
    """Nothing is known of the jitter yet, so all who could not know of the pause may have come first."""
    envelope = Envelope()
    sent = [(replace(READ, id=str(number)), 0.004 * number) for number in range(25)]
    for claim, at in sent:
        envelope.took(claim, at, is_paced=False)
    for claim, at in (sent[6], *sent[21:]):
        envelope.refused(claim, at, 1.0, 1.0 - at, 0.0)
    scout = replace(READ, id="scout")
    envelope.took(scout, 1.01, is_paced=True)
    envelope.accepted(scout, 1.01, 1.05, is_scout=True)
    [limit] = envelope.limits
    assert (limit.n, limit.window) == (20.0, 1.0)


@pytest.mark.parametrize(
    ("before", "at_once", "is_burst"),
    [
        pytest.param(0, 10, True, id="ten at once"),
        pytest.param(0, 9, False, id="too few"),
        pytest.param(3, 12, True, id="four fifths of the last second"),
        pytest.param(4, 12, False, id="less of it"),
    ],
)
def test_what_a_burst_is(before: int, at_once: int, *, is_burst: bool) -> None:
    envelope = Envelope()
    for at, count in ((8.9, 50), (9.84, before), (9.86, at_once - 1), (10.14, 1), (10.16, 20)):
        for _ in range(count):
            envelope.log.add(at, 1.0)
    assert envelope._is_burst(10.0) is is_burst


@pytest.mark.parametrize(
    ("first_s", "stated_s", "is_lie"),
    [
        pytest.param(None, 5.0, False, id="nothing was stated before"),
        pytest.param(10.0, 9.0, False, id="the same end"),
        pytest.param(10.0, 4.0, True, id="far earlier, by more than half of the shorter wait"),
        pytest.param(10.0, 16.0, True, id="far later"),
        pytest.param(10.0, 6.0, False, id="earlier by half of the shorter wait"),
        pytest.param(1.5, 1.4, False, id="within a second, which is rounding"),
        pytest.param(1.5, 1.6, True, id="more than a second"),
    ],
)
def test_when_two_stated_waits_contradict_each_other(
    first_s: float | None, stated_s: float, *, is_lie: bool
) -> None:
    envelope = Envelope()
    for claim in (READ, ORDER):
        envelope.took(claim, 100.0, is_paced=False)
    envelope.refused(READ, 100.0, 100.04, first_s, 0.0)
    envelope.refused(ORDER, 101.0, 101.04, stated_s, 0.0)
    assert envelope._lies == is_lie


def test_what_is_stated_is_not_learned_from_after_two_lies() -> None:
    envelope = Envelope()
    for index, stated_s in enumerate((10.0, 30.0, 90.0, 5.0)):
        claim = replace(READ, id=str(index))
        envelope.took(claim, float(index), is_paced=False)
        envelope.refused(claim, float(index), index + 0.04, stated_s, 0.0)
    episode = envelope._episode
    assert episode is not None
    assert (episode.began, episode.earliest, episode.latest) == (0.0, 31.0, 31.0)


def test_what_replies_publish_replaces_what_was_learned_and_keeps_other_windows() -> None:
    envelope = Envelope((Quota(100, 60.0),))
    envelope.limits += [Limit(20.0, 1.0), Limit(50.0, 5.0)]
    envelope.stated((Quota(10, 1.0),), 0.0)
    assert [(one.n, one.window, one.most) for one in envelope.limits] == [(10, 1.0, 10), (100, 60.0, 100)]
    before = envelope.limits
    envelope.stated((Quota(10, 1.0), Quota(5, math.inf)), 0.0)
    assert envelope.limits is before
    envelope.stated((Quota(12, 1.0),), 0.0)
    assert [(one.n, one.window) for one in envelope.limits] == [(12, 1.0), (100, 60.0)]


def test_what_a_reply_says_is_left_holds_until_its_reset() -> None:
    envelope = Envelope()
    envelope.took(READ, 0.0, is_paced=False)
    envelope.stated((Quota(math.inf, left=3.0, reset_s=10.0),), 1.0)
    envelope.took(ORDER, 1.0, is_paced=False)
    assert envelope.ready_at(ORDER, 2.0, is_paced=False) == 2.0, "one is left"
    envelope.took(replace(ORDER, id="3"), 2.0, is_paced=False)
    assert envelope.ready_at(ORDER, 2.0, is_paced=False) == 11.0
    assert envelope.ready_at(ORDER, 12.0, is_paced=False) == 12.0


def test_each_count_holds_until_its_own_reset_and_the_tightest_decides() -> None:
    envelope = Envelope()
    per_second, per_day = (
        Quota(math.inf, left=left, reset_s=reset_s, name=name)
        for left, reset_s, name in ((2.0, 1.0, "second"), (1.0, 500.0, "day"))
    )
    envelope.stated((per_second, per_day), 0.0)
    envelope.took(ORDER, 0.0, is_paced=False)
    assert envelope.ready_at(ORDER, 0.0, is_paced=False) == 500.0
    envelope.accepted(ORDER, 0.0, 0.1, is_scout=False)
    assert envelope.spent_s(0.1) == pytest.approx(499.9)
    envelope.stated((replace(per_second, left=9.0),), 0.1)
    assert envelope.ready_at(ORDER, 0.1, is_paced=False) == 500.0, "another count said more"
    envelope.stated((replace(per_day, left=3.0),), 0.2)
    assert envelope.ready_at(ORDER, 0.2, is_paced=False) == 0.2
    envelope.stated((replace(per_second, left=0.0),), 0.3)
    assert envelope.ready_at(ORDER, 0.3, is_paced=False) == pytest.approx(1.3)
    assert envelope.spent_s(2.0) == 0.0


def test_of_counts_without_end_those_that_leave_least_are_kept() -> None:
    envelope = Envelope()
    for number in range(20):
        left = float(abs(number - 5))
        envelope.stated((Quota(math.inf, left=left, reset_s=10.0 + number, name=str(number)),), 0.0)
    assert envelope.spent_s(0.0) == 15.0
    assert len(envelope._counts) == 8


@pytest.mark.parametrize("quota", [Quota(math.inf, left=0.0), Quota(math.inf, reset_s=10.0)])
def test_half_of_what_is_left_says_nothing(quota: Quota) -> None:
    envelope = Envelope()
    envelope.stated((quota,), 0.0)
    assert envelope.ready_at(ORDER, 1.0, is_paced=False) == 1.0


def test_how_much_of_a_limit_is_used() -> None:
    envelope = Envelope((Quota(10, 2.0),))
    for at in (0.5, 1.5, 2.0):
        envelope.log.add(at, 1.0)
    assert envelope.used(envelope.limits[0], 3.0) == pytest.approx(0.2)


def test_how_long_one_of_cost_1_waits_where_others_do() -> None:
    assert Envelope().wait_per_cost_s(ORDER) == 0.0
    envelope = Envelope((Quota(10, 1.0), Quota(30, 60.0)))
    assert envelope.wait_per_cost_s(ORDER) == pytest.approx(2.0, rel=0.001)
    envelope.limits = [Limit(10.0, 1.0, scope=LimitScope.READS), Limit(5.0, 1.0, scope=LimitScope.OTHERS)]
    waits = [envelope.wait_per_cost_s(claim) for claim in (READ, ORDER)]
    assert waits == pytest.approx([0.1, 0.2], rel=0.01)


@pytest.mark.parametrize(
    ("limit", "length_s"),
    [
        pytest.param(Limit(20.0, 1.0), 1.1, id="the spread of the trips beside it"),
        pytest.param(Limit(20.0, 0.2), 0.25, id="but a quarter of it at most"),
        pytest.param(Limit(20.0, 1.0, kind=Kind.BUCKET), 1.005, id="a bucket's burst takes that up"),
        pytest.param(Limit(2.0, 1.0, kind=Kind.BUCKET), 1.005, id="even one of two"),
        pytest.param(Limit(1.0, 1.0, kind=Kind.BUCKET), 1.1, id="where it has one"),
    ],
)
def test_how_long_a_window_is_taken_for(limit: Limit, length_s: float) -> None:
    envelope = Envelope()
    for trip_s in [0.05, 0.15] * 10:
        envelope._trips.add(trip_s)
    assert envelope._trips.spread_s == pytest.approx(0.1)
    assert envelope.pace.length_s(limit) == pytest.approx(length_s)


@pytest.mark.parametrize(
    ("every_s", "count", "is_flood"),
    [
        pytest.param(0.02, 50, True, id="all the time, more than twice the rate"),
        pytest.param(0.06, 32, False, id="all the time, and slower"),
        pytest.param(0.001, 500, False, id="in half of the second"),
        pytest.param(0.001, 520, True, id="in the sixth tenth of it, too"),
        pytest.param(0.001, 600, True, id="in six tenths of it"),
    ],
)
def test_what_a_flood_is(every_s: float, count: int, *, is_flood: bool) -> None:
    envelope = Envelope((Quota(600, 60.0),))
    for index in reversed(range(count)):
        envelope.log.add(9.9995 - index * every_s, 1.0)
    assert envelope.pace._is_flood(envelope.limits[0], 10.0) is is_flood


@pytest.mark.parametrize(
    ("limit", "spacing_s"),
    [
        pytest.param(Limit(20.0, 1.0), 0.05, id="the even pace"),
        pytest.param(Limit(20.0, 1.0, step=0.25), 0.04, id="faster by the step"),
        pytest.param(Limit(20.0, 10.0), 0.5, id="a long window"),
        pytest.param(Limit(5.0, 10.0, kind=Kind.BUCKET), 2.01, id="a bucket"),
    ],
)
def test_the_spacing_of_those_who_wait(limit: Limit, spacing_s: float) -> None:
    envelope = Envelope()
    assert envelope.pace.spacing_s(limit, 100.0) == pytest.approx(spacing_s, rel=0.006)


def test_what_is_left_of_a_long_window_is_spread_over_the_rest_of_it() -> None:
    envelope = Envelope((Quota(100, 10.0),))
    (limit,) = envelope.limits
    for _ in range(60):
        envelope.log.add(0.0, 1.0)
    length_s = envelope.pace.length_s(limit)
    assert envelope.pace._spread_s(limit, 1.0) == pytest.approx(length_s * 7 / 8 / 40)
    for _ in range(40):
        envelope.log.add(1.01, 1.0)
    assert envelope.pace._spread_s(limit, 1.02) == pytest.approx(length_s * 7 / 8 / 40), (
        "not looked at again so soon"
    )
    assert envelope.pace._spread_s(limit, 1.1) > 1.0


def full(limit: Limit, count: int = 20) -> Envelope:
    """Return an envelope of that limit which let go so many in the second before 10."""
    envelope = Envelope()
    envelope.limits = [limit]
    for index in range(count):
        envelope.log.add(9.05 + index * 0.04, 1.0)
    return envelope


@pytest.mark.parametrize(
    ("limit", "count", "is_probed"),
    [
        pytest.param(Limit(20.0, 1.0, probe_at=10.0), 20, True, id="it is time, and the limit is full"),
        pytest.param(Limit(20.0, 1.0, probe_at=10.1), 20, False, id="it is not time"),
        pytest.param(Limit(20.0, 1.0, probe_at=10.0), 17, True, id="nearly full"),
        pytest.param(Limit(20.0, 1.0, probe_at=10.0), 16, False, id="another limit holds the rate"),
        pytest.param(Limit(20.0, 5.0, probe_at=10.0), 10, False, id="half full, though all in one second"),
        pytest.param(
            Limit(5.0, 0.5, probe_at=10.0, kind=Kind.BUCKET), 14, True, id="a bucket over two seconds"
        ),
        pytest.param(
            Limit(5.0, 0.5, probe_at=10.0, kind=Kind.BUCKET), 13, False, id="a bucket that has room"
        ),
    ],
)
def test_when_a_limit_is_probed(limit: Limit, count: int, *, is_probed: bool) -> None:
    full(limit, count)._probe(limit, 10.0, 0.0)
    assert (limit.step > 0) is is_probed


@pytest.mark.parametrize(("paced_since", "is_probed"), [(7.5, True), (7.6, False)])
def test_a_limit_is_probed_once_it_was_paced_for_long(paced_since: float, *, is_probed: bool) -> None:
    limit = Limit(20.0, 1.0, probe_at=10.0)
    full(limit)._probe(limit, 10.0, paced_since)
    assert (limit.step > 0) is is_probed


def test_nothing_is_probed_while_patience_is_thin() -> None:
    limit = Limit(20.0, 1.0, probe_at=10.0)
    envelope = full(limit)
    for at in (8.0, 8.5, 9.0):
        envelope._patience.refused(at, at, is_burst=False)
    envelope._probe(limit, 10.0, 0.0)
    assert limit.step == 0.0


def test_classes_count_apart_where_one_limit_is_of_a_class() -> None:
    envelope = Envelope((Quota(10, 1.0),))
    assert not envelope.counts_apart
    envelope.limits.append(Limit(5.0, 1.0, scope=LimitScope.READS))
    assert envelope.counts_apart


def test_what_was_not_sent_after_all_is_neither_counted_nor_under_way() -> None:
    envelope = Envelope((Quota(10, 1.0),))
    envelope.took(READ, 1.0, is_paced=False)
    assert len(envelope.in_flight) == 1
    envelope.untook(READ, 1.0)
    assert (len(envelope.in_flight), envelope.log.all.count(0.0)) == (0, 0.0)


def test_since_when_somebody_waits() -> None:
    envelope = Envelope((Quota(10, 1.0),))
    (limit,) = envelope.limits
    since = []
    for at, is_paced in ((1.0, True), (1.1, True), (1.2, False), (1.3, True)):
        envelope.took(replace(READ, id=str(at)), at, is_paced=is_paced)
        since.append(limit.paced_since)
    assert since == [1.0, 1.0, None, 1.3]


def test_what_is_learned_per_time_is_dropped_where_it_was_a_limit_at_a_time() -> None:
    envelope = Envelope((Quota(100, 60.0),))
    envelope.limits.append(Limit(20.0, 1.0))
    envelope.in_flight.cap = 4
    envelope._end(Episode(1.0, 2.0, 2.0), 3.0)
    assert [one.n for one in envelope.limits] == [100]


def test_a_limit_that_may_be_none_is_searched_in_long_steps() -> None:
    envelope = Envelope((Quota(100, 1.0),))
    for index in range(6):
        envelope.took(replace(ORDER, id=str(index)), 0.1 * index, is_paced=False)
    envelope.in_flight.refused("5", 0.005, is_first=True)
    envelope.in_flight.cap = None
    assert envelope.in_flight.is_suspected
    envelope._end(Episode(0.5, 1.0, 1.0), 1.1)
    assert [one.next_step for one in envelope.limits] == [0.35]


def test_where_reads_probe_the_window_ahead_has_that_much_more_room() -> None:
    limit = Limit(100.0, 10.0, step=0.1)
    envelope = Envelope()
    assert envelope.pace._spread_s(limit, 100.0) == pytest.approx(envelope.pace.length_s(limit) / 110)


def test_costs_that_add_up_to_the_limit_fit_into_it() -> None:
    """Ten times 0.1 is a little less than 1, and three times 0.1 a little more than 0.3."""
    envelope = Envelope((Quota(1, 1.0),))
    for _ in range(3):
        envelope.log.add(9.9, 0.1)
    cheap = replace(READ, cost=1.0 - 0.3)
    assert envelope.ready_at(cheap, 10.0, is_paced=False) == 10.0


@pytest.mark.parametrize(
    ("limit", "is_paced", "ready_at"),
    [
        pytest.param(Limit(20.0, 2.0, kind=Kind.BUCKET), True, 11.91, id="a short one is kept"),
        pytest.param(Limit(20.0, 2.1, kind=Kind.BUCKET), True, 10.0, id="a long one has its rate"),
        pytest.param(Limit(20.0, 2.1, kind=Kind.BUCKET), False, 12.0105, id="which no burst may take"),
        pytest.param(Limit(20.0, 2.1), True, 12.005, id="other windows are kept"),
        pytest.param(Limit(20.0, 2.0), False, 11.905, id="to the last one"),
    ],
)
def test_when_a_full_window_has_room(limit: Limit, ready_at: float, *, is_paced: bool) -> None:
    envelope = Envelope()
    for _ in range(20):
        envelope.log.add(9.9, 1.0)
    assert envelope.pace.room_at(limit, READ, 10.0, is_paced=is_paced) == pytest.approx(ready_at)


@pytest.mark.parametrize(("at_once", "is_ready"), [(15, True), (16, False), (19, False)])
def test_a_flood_leaves_a_fifth_of_a_long_window(at_once: int, *, is_ready: bool) -> None:
    envelope = Envelope()
    for index in range(at_once):
        envelope.log.add(9.05 + 0.06 * index, 1.0)
    at = envelope.pace.room_at(Limit(20.0, 10.0), READ, 10.0, is_paced=False)
    assert (at <= 10.0) is is_ready


@pytest.mark.parametrize(
    ("last_slot", "cost", "slot"),
    [
        pytest.param(9.98, 1.0, 10.08, id="a slot after the last"),
        pytest.param(9.98, 3.0, 10.28, id="three, for one of cost three"),
        pytest.param(9.8, 1.0, 9.99, id="a timer that was late loses no more than a tenth of one"),
    ],
)
def test_the_slot_of_one_that_waited(last_slot: float, cost: float, slot: float) -> None:
    envelope = Envelope()
    envelope.limits = [Limit(10.05, 1.0, last_slot=last_slot)]
    envelope.took(replace(READ, cost=cost), 10.0, is_paced=True)
    assert envelope.limits[0].last_slot == pytest.approx(slot)


def test_a_bucket_that_is_paced_over_a_long_window_goes_at_its_pace_though_it_is_full() -> None:
    envelope = Envelope()
    envelope.limits = [Limit(20.0, 10.0, kind=Kind.BUCKET, last_slot=9.8)]
    for _ in range(20):
        envelope.log.add(9.9, 1.0)
    assert envelope.ready_at(READ, 10.0, is_paced=True) == pytest.approx(9.8 + 10.05 / 20)


@pytest.mark.parametrize(
    ("trips", "mixed_until"),
    [
        pytest.param([], 12.0, id="all that did not know of the pause, while nothing is known of the trips"),
        pytest.param([0.04, 0.06] * 10, 10.03, id="else what may have overtaken it"),
    ],
)
def test_what_may_have_come_before_the_first_refused(trips: list[float], mixed_until: float) -> None:
    envelope = Envelope()
    for trip_s in trips:
        envelope._trips.add(trip_s)
    envelope.took(READ, 10.0, is_paced=False)
    envelope.refused(READ, 10.0, 12.0, 2.0, 0.0)
    assert envelope._episode is not None
    assert envelope._episode.mixed_until == pytest.approx(mixed_until)


def test_windows_that_are_stated_without_end_are_not_kept() -> None:
    """An exchange that writes the seconds left in the day publishes another window with each reply."""
    envelope = Envelope((Quota(100.0, 5.0),))
    lengths = []
    for window_s in range(1000, 1100):
        envelope.stated((Quota(50.0, float(window_s)),), 0.0)
        lengths.append(len(envelope.limits))
    assert lengths[:8] == [2, 3, 4, 5, 6, 7, 8, 2]
    assert {5.0, 1099.0} <= {limit.window for limit in envelope.limits}


@pytest.mark.parametrize("is_first", [True, False])
def test_of_several_states_the_least_counts(*, is_first: bool) -> None:
    envelope = Envelope()
    states = [Quota(math.inf, left=0.0, reset_s=10.0), Quota(math.inf, left=500.0, reset_s=3000.0)]
    envelope.stated(tuple(states if is_first else reversed(states)), 100.0)
    assert envelope.ready_at(READ, 100.0, is_paced=False) == 110.0


def test_patience_that_is_worn_halves_the_pace_and_what_is_delivered_says_nothing() -> None:
    envelope = Envelope((Quota(10, 1.0),))
    for index in range(5):
        envelope._patience.refused(1.0 + 0.1 * index, 1.04 + 0.1 * index, is_burst=False)
    envelope.took(READ, 2.0, is_paced=True)
    [limit] = envelope.limits
    assert (envelope._slow_until, limit.paced_since) == (2.0, 2.0)
    assert limit.last_slot == pytest.approx(2.0 - 0.1 * 0.201)
    dear = replace(ORDER, cost=2.0)
    assert envelope.ready_at(dear, 2.0, is_paced=False) == pytest.approx(limit.last_slot + 0.402)


def test_refusals_wear_patience() -> None:
    envelope = Envelope()
    for index in range(3):
        claim = replace(READ, id=str(index))
        envelope.took(claim, 1.0, is_paced=False)
        envelope.refused(claim, 1.0, 1.5, None, 0.0)
    assert envelope._patience.is_thin(2.0)


def test_the_jitter_is_that_of_the_trips() -> None:
    envelope = Envelope()
    for index in range(20):
        claim = replace(READ, id=str(index))
        envelope.took(claim, 1.0 + index, is_paced=False)
        envelope.accepted(claim, 1.0 + index, 1.04 + index + 0.02 * (index % 2), is_scout=False)
    assert envelope._jitter_s() == pytest.approx(0.03)


@pytest.mark.parametrize(("claim", "lifted"), [(READ, 1.0), (ORDER, 0.0)])
def test_reads_alone_lift_a_limit_that_is_probed(claim: Claim, lifted: float) -> None:
    envelope = Envelope((Quota(5, 1.0),))
    envelope.limits[0].step = 0.1
    envelope.took(claim, 1.0, is_paced=False)
    envelope.accepted(claim, 1.0, 1.04, is_scout=False)
    assert envelope.limits[0].lifted == lifted


@pytest.mark.parametrize(("left", "spent_s"), [(0.0, 10.0), (1.0, 0.0)])
def test_one_that_is_left_is_not_nothing(left: float, spent_s: float) -> None:
    envelope = Envelope()
    envelope.stated((Quota(math.inf, left=left, reset_s=10.0),), 0.0)
    assert envelope.spent_s(0.0) == spent_s


@pytest.mark.parametrize(
    ("sent_at", "count"),
    [
        pytest.param(1.0, 0, id="with the refused one: it may have come before it"),
        pytest.param(1.1, 1, id="after it"),
        pytest.param(2.99, 1, id="just before the end"),
        pytest.param(2.995, 0, id="so shortly before that it may have come after it"),
    ],
)
def test_what_is_accepted_within_the_wait_that_was_stated(sent_at: float, count: int) -> None:
    envelope = Envelope()
    envelope.took(READ, 1.0, is_paced=False)
    envelope.took(ORDER, sent_at, is_paced=False)
    envelope.refused(READ, 1.0, 3.0, 2.0, 0.0)
    envelope.accepted(ORDER, sent_at, 3.1, is_scout=False)
    assert envelope.in_flight._interleaved == count


@pytest.mark.parametrize(
    ("slow_until", "n"),
    [
        pytest.param(6.0, 19.0, id="nothing before it is evidence of the limit"),
        pytest.param(9.95, 13.0, id="unless what went slowly was refused, too"),
    ],
)
def test_what_was_delivered_at_a_slow_pace(slow_until: float, n: float) -> None:
    """Five per second went for six seconds and then twenty, of which the last was refused."""
    envelope = Envelope()
    envelope.limits = [Limit(20.0, 1.0, paced_since=0.0, cycle_start=0.0)]
    for index in range(30):
        envelope.log.add(0.001 + index / 5, 1.0)
    for index in range(79):
        envelope.log.add(6.001 + index / 20, 1.0)
    envelope._slow_until = slow_until
    envelope._end(Episode(9.95, 10.2, 10.2), 10.3)
    assert envelope.limits[0].n == pytest.approx(n, abs=0.1)
