"""The numbers that every request adds to: which of them, and into which bucket."""

import pytest

from rig.outcome import ANSWERED, changed
from sealgate.admin.traffic import Durations, Traffic
from sealgate.core.outcome import Batch, Conclusion, Outcome
from sealgate.core.routes import Lane

ORDER = changed(ANSWERED, method="POST", route="/order", lane=Lane.ORDER, attempts=1)
BOUNDS = (0.1, 1.0)


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
    durations = Durations(BOUNDS)
    durations.add([*seconds])
    buckets, sum_s = durations.buckets()
    assert buckets == list(zip(("0.1", "1.0", "+Inf"), counts, strict=True))
    assert sum_s == pytest.approx(sum(seconds))


def taken(*outcomes: Outcome) -> Traffic:
    traffic = Traffic()
    traffic.take(Batch(outcomes))
    return traffic


def all_of(durations: Durations) -> float:
    return durations.buckets()[0][-1][1]


def test_requests_are_counted_by_all_their_labels() -> None:
    refused = changed(ORDER, status=429, conclusion=Conclusion.REFUSED)
    done = ("grid", "main", "/order", "POST", 200, Conclusion.DONE)
    assert taken(ORDER, ORDER, refused).rows() == {
        done: 2,
        ("grid", "main", "/order", "POST", 429, Conclusion.REFUSED): 1,
    }


COUNTED: dict[str, tuple[Outcome, tuple[int, int]]] = {
    "answered": (ORDER, (1, 1)),
    "never sent": (changed(ORDER, attempts=0), (0, 1)),
    "refused before it had a lane": (changed(ORDER, attempts=0, lane=None), (0, 0)),
}


@pytest.mark.parametrize(("outcome", "counts"), COUNTED.values(), ids=COUNTED)
def test_only_what_was_sent_waited_for_the_exchange(outcome: Outcome, counts: tuple[int, int]) -> None:
    traffic = taken(outcome)
    assert all_of(traffic.added) == 1
    assert (all_of(traffic.upstream), sum(map(all_of, traffic.queued().values()))) == counts


def test_waits_are_kept_apart_by_key_and_lane() -> None:
    traffic = taken(ORDER, ORDER, changed(ORDER, lane=Lane.CANCEL), changed(ORDER, key="alt"))
    assert {place: all_of(one) for place, one in traffic.queued().items()} == {
        ("main", Lane.ORDER): 2,
        ("main", Lane.CANCEL): 1,
        ("alt", Lane.ORDER): 1,
    }


def test_who_reads_holds_copies_of_what_grows() -> None:
    """Another thread reads while one adds."""
    traffic = taken(ORDER)
    rows, queued = traffic.rows(), traffic.queued()
    traffic.take(Batch([changed(ORDER, status=500, lane=Lane.CANCEL, key="alt")]))
    assert (len(rows), len(queued)) == (1, 1)
