"""The clock as the pipeline reads it, with the host's clocks moved by hand."""

import pytest

from rig.hand_host import EPOCH, HandHost
from sealgate.errors import Refusal
from sealgate.exchange.clock import Sample
from sealgate.exchange.kept_clock import ClockNeeds, KeptClock


def synced(system: HandHost, *, is_required: bool = True, recv_window_ms: int = 5000) -> KeptClock:
    clock = KeptClock("spot", ClockNeeds(is_required, 10.0, recv_window_ms), system)
    clock.observe(Sample(system.boot - 0.06, system.boot, EPOCH, 0.001))
    clock.trouble = None
    clock.due.clear()
    return clock


def test_time_that_passes_is_no_jump() -> None:
    system = HandHost()
    clock = synced(system)
    system.move(3600.0, 3600.0, 3600.0)
    assert clock.timestamp_ms(system.boot) == pytest.approx((EPOCH + 3600) * 1000, abs=1000)
    assert not clock.due.is_set()
    assert clock.status().steps == 0


def test_a_suspend_asks_for_a_sample_and_widens_the_bound() -> None:
    system = HandHost()
    clock = synced(system)
    before_ms = clock.error_ms(system.boot)
    system.move(boot=3600.0, mono=1.0, wall=3600.0)
    clock.timestamp_ms(system.boot)
    assert clock.due.is_set()
    assert clock.status().steps == 1
    assert clock.error_ms(system.boot) > before_ms + 1000
    assert clock.is_good_for(5000, system.boot), "no sample delays what can be signed safely"


def test_a_wall_clock_that_is_set_changes_no_timestamp() -> None:
    system = HandHost()
    clock = synced(system)
    before_ms = clock.timestamp_ms(system.boot)
    system.move(boot=0.5, mono=0.5, wall=-7200.0)
    assert clock.timestamp_ms(system.boot) == pytest.approx(before_ms + 500, abs=2)
    assert clock.due.is_set()
    assert clock.status().steps == 1


def test_a_bound_worse_than_half_of_the_window_is_not_good_enough() -> None:
    system = HandHost()
    clock = synced(system, recv_window_ms=100)
    assert clock.is_good_for(100, system.boot)
    assert not clock.is_good_for(50, system.boot)
    assert clock.not_ready is None
    system.move(1e5, 1e5, 1e5)
    assert clock.not_ready == "clock uncertain (±20031 ms), not precise enough for a recv_window of 100 ms"


def test_where_it_is_not_required_a_poor_clock_will_do() -> None:
    system = HandHost()
    clock = synced(system, is_required=False)
    system.move(1e6, 1e6, 1e6)
    assert clock.is_good_for(1, system.boot)


async def test_it_is_ready_once_it_is_good_for_the_shortest_window() -> None:
    system = HandHost()
    clock = synced(system, recv_window_ms=50)
    await clock.wait_until_good(system.boot, 5000)
    with pytest.raises(Refusal, match="not precise enough for a recv_window of 50 ms"):
        await clock.wait_until_ready(system.boot)
    clock.observe(Sample(system.boot - 0.001, system.boot, EPOCH, 0.001))
    await clock.wait_until_ready(system.boot)


async def test_without_a_sample_the_host_clock_stands_in_after_the_grace() -> None:
    system = HandHost()
    clock = KeptClock("spot", ClockNeeds(is_required=False, grace_s=10.0, recv_window_ms=5000), system)
    with pytest.raises(Refusal, match="clock_unsynced"):
        await clock.wait_until_good(system.boot, 5000)
    system.move(10.0, 10.0, 10.0)
    await clock.wait_until_good(system.boot, 5000)
    assert clock.timestamp_ms(system.boot) == int(system.epoch * 1000)


def test_what_a_refusal_states_may_narrow_the_bound_and_never_makes_a_step() -> None:
    system = HandHost()
    clock = KeptClock("spot", ClockNeeds(is_required=True, grace_s=10.0, recv_window_ms=5000), system)
    clock.observe(Sample(system.boot - 1.0, system.boot, EPOCH, 0.001))
    before_ms = clock.error_ms(system.boot)
    clock.refused(EPOCH + 0.4, system.boot - 0.05, is_second=False)
    assert clock.error_ms(system.boot) < before_ms / 5
    clock.refused(EPOCH + 60.0, system.boot - 0.05, is_second=False)
    assert clock.offset_s() == pytest.approx(0.4, abs=0.1)
    assert clock.status().steps == 0


@pytest.mark.parametrize(("ahead_s", "offset_s"), [(60.0, 60.0), (-3500.0, -3500.0), (86_400.0, 0.0)])
def test_without_a_sample_a_refusal_is_believed_where_it_is_near_this_hosts_clock(
    ahead_s: float, offset_s: float
) -> None:
    system = HandHost()
    clock = KeptClock("spot", ClockNeeds(is_required=False, grace_s=0.0, recv_window_ms=5000), system)
    clock.refused(EPOCH + ahead_s, system.boot - 0.05, is_second=False)
    assert clock.offset_s() == pytest.approx(offset_s, abs=0.1)


def test_a_sample_that_was_sent_before_a_refusal_came_is_dropped_and_the_next_one_is_not() -> None:
    """Refusals that come meanwhile do not put it off: else a crowd of them would put it off for ever."""
    system = HandHost()
    clock = synced(system)
    clock.refused(EPOCH + 60.0, system.boot - 0.05, is_second=False)
    clock.observe(Sample(system.boot - 0.05, system.boot + 0.05, EPOCH, 0.001))
    system.move(1.0, 1.0, 1.0)
    clock.refused(EPOCH + 60.0, system.boot - 0.05, is_second=False)
    clock.observe(Sample(system.boot - 0.5, system.boot, EPOCH + 61.0, 0.001))
    assert clock.offset_s() == pytest.approx(60.0, abs=0.5)


def test_a_refused_timestamp_asks_for_a_sample_and_a_second_one_is_a_fault() -> None:
    system = HandHost()
    clock = synced(system)
    clock.refused(EPOCH + 60.0, system.boot - 0.05, is_second=False)
    assert clock.due.is_set()
    assert clock.status().trouble is None
    clock.refused(EPOCH + 60.0, system.boot - 0.05, is_second=True)
    assert clock.status().refusals == 2
    assert clock.status().trouble == "a timestamp was refused right after a resync"
    clock.was_accepted()
    assert clock.status().trouble is None


def test_a_date_is_only_taken_while_nothing_better_is_known() -> None:
    system = HandHost()
    clock = synced(system)
    clock.observe_date(Sample(system.boot, system.boot, EPOCH + 5, 1.0))
    assert clock.offset_s() == pytest.approx(0.0, abs=0.1)
    fresh = KeptClock("spot", ClockNeeds(is_required=True, grace_s=10.0, recv_window_ms=5000), system)
    fresh.observe_date(Sample(system.boot, system.boot, EPOCH + 5, 1.0))
    assert fresh.offset_s() == pytest.approx(5.5, abs=0.1)
