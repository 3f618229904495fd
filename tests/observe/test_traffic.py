"""The totals of all requests."""

import pytest

from rig.outcome import ANSWERED, changed
from sealgate.observe.traffic import Durations, TrafficTotals
from sealgate.orders.outcome import Outcome
from sealgate.venues.routes import Lane

ORDER = changed(ANSWERED, method="POST", route="/order", lane=Lane.ORDER, attempts=1)

BUCKETS: dict[str, tuple[tuple[float, ...], list[float]]] = {
    "nothing": ((), [0, 0, 0]),
    "below the first bound": ((0.05,), [1, 1, 1]),
    "a bound is included": ((0.1, 1.0), [1, 2, 2]),
    "beyond the last": ((5.0,), [0, 0, 1]),
    "all of them": ((0.0, 0.5, 0.5, 5.0), [1, 3, 4]),
}


@pytest.mark.parametrize(("seconds", "counts"), BUCKETS.values(), ids=BUCKETS)
def test_durations_are_counted_at_each_bound(seconds: tuple[float, ...], counts: list[float]) -> None:
    """As Prometheus has it: a bucket counts what is at most its bound."""
    durations = Durations((0.1, 1.0))
    for one in seconds:
        durations.add(one)
    buckets, sum_s = durations.buckets()
    assert buckets == list(zip(("0.1", "1.0", "+Inf"), counts, strict=True))
    assert sum_s == pytest.approx(sum(seconds))


def taken(*outcomes: Outcome) -> TrafficTotals:
    traffic = TrafficTotals()
    traffic.take(outcomes)
    return traffic


def test_requests_of_a_kind_are_counted_with_their_attempts() -> None:
    stranger, refused = changed(ORDER, bot=None), changed(ORDER, lane=None, attempts=0)
    traffic = taken(ORDER, changed(ORDER, attempts=3), stranger, refused)
    assert [(one.requests, one.sent) for one in traffic.tallies().values()] == [(2, 4), (1, 0)]
    assert {key: one.buckets()[0][-1] for key, one in traffic.queued().items()} == {
        ("spot", "main", Lane.ORDER): ("+Inf", 2.0)
    }


def test_who_reads_holds_copies_of_what_grows() -> None:
    """Another thread reads while one adds."""
    traffic = taken(ORDER)
    tallies, queued = traffic.tallies(), traffic.queued()
    traffic.take([changed(ORDER, status=500, lane=Lane.CANCEL, key="alt")])
    assert (len(tallies), len(queued)) == (1, 1)
