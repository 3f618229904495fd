"""The clock as the pipeline reads it, with the host's clocks moved by hand."""

import pytest

from sealgate.core.clock import Sample
from sealgate.core.host_jumps import HostClocks
from sealgate.errors import Refusal
from sealgate.gateway.clock.kept import ClockNeeds, KeptClock
from sealgate.gateway.host.host import Host

EPOCH = 1_790_000_000.0
OUTSIDE = b'{"detail": "Timestamp outside recv_window (5000ms). Server time: %d"}' % (EPOCH * 1000 + 60_000)


class HandHost(Host):
    """Time stands still until it is moved."""

    boot = 100.0
    mono = 100.0
    epoch = EPOCH

    def now(self) -> float:
        return self.boot

    def wall(self) -> float:
        return self.epoch

    def clocks(self) -> HostClocks:
        return HostClocks(self.boot, self.mono, self.epoch)

    def move(self, boot: float, mono: float, wall: float) -> None:
        self.boot, self.mono, self.epoch = self.boot + boot, self.mono + mono, self.epoch + wall


def synced(host: HandHost, *, is_required: bool = True, recv_window_ms: int = 5000) -> KeptClock:
    clock = KeptClock(ClockNeeds(is_required, 10.0, recv_window_ms), host)
    clock.observe(Sample(host.boot - 0.06, host.boot, EPOCH, 0.001))
    clock.trouble = None
    clock.due.clear()
    return clock


def test_time_that_passes_is_no_jump() -> None:
    host = HandHost()
    clock = synced(host)
    host.move(3600.0, 3600.0, 3600.0)
    assert clock.timestamp_ms(host.boot) == pytest.approx((EPOCH + 3600) * 1000, abs=1000)
    assert not clock.due.is_set()
    assert clock.status().steps == 0


def test_a_suspend_asks_for_a_sample_and_widens_the_bound() -> None:
    host = HandHost()
    clock = synced(host)
    before_ms = clock.error_ms(host.boot)
    host.move(boot=3600.0, mono=1.0, wall=3600.0)
    clock.timestamp_ms(host.boot)
    assert clock.due.is_set()
    assert clock.status().steps == 1
    assert clock.error_ms(host.boot) > before_ms + 1000
    assert clock.is_good_for(5000, host.boot), "no sample delays what can be signed safely"


def test_a_wall_clock_that_is_set_changes_no_timestamp() -> None:
    host = HandHost()
    clock = synced(host)
    before_ms = clock.timestamp_ms(host.boot)
    host.move(boot=0.5, mono=0.5, wall=-7200.0)
    assert clock.timestamp_ms(host.boot) == pytest.approx(before_ms + 500, abs=2)
    assert clock.due.is_set()
    assert clock.status().steps == 1


def test_a_bound_worse_than_half_of_the_window_is_not_good_enough() -> None:
    host = HandHost()
    clock = synced(host, recv_window_ms=100)
    assert clock.is_good_for(100, host.boot)
    assert not clock.is_good_for(50, host.boot)
    assert clock.not_ready is None
    host.move(1e5, 1e5, 1e5)
    assert clock.not_ready == "clock known to 20031 ms only, too poor for a recv_window of 100 ms"


def test_where_it_is_not_required_a_poor_clock_will_do() -> None:
    host = HandHost()
    clock = synced(host, is_required=False)
    host.move(1e6, 1e6, 1e6)
    assert clock.is_good_for(1, host.boot)


async def test_it_is_ready_once_it_is_good_for_the_shortest_window() -> None:
    host = HandHost()
    clock = synced(host, recv_window_ms=50)
    await clock.wait_until_good(host.boot, 5000)
    with pytest.raises(Refusal, match="too poor for a recv_window of 50 ms"):
        await clock.wait_until_ready(host.boot)
    clock.observe(Sample(host.boot - 0.001, host.boot, EPOCH, 0.001))
    await clock.wait_until_ready(host.boot)


async def test_without_a_sample_the_host_clock_stands_in_after_the_grace() -> None:
    host = HandHost()
    clock = KeptClock(ClockNeeds(is_required=False, grace_s=10.0, recv_window_ms=5000), host)
    with pytest.raises(Refusal, match="clock_unsynced"):
        await clock.wait_until_good(host.boot, 5000)
    host.move(10.0, 10.0, 10.0)
    await clock.wait_until_good(host.boot, 5000)
    assert clock.timestamp_ms(host.boot) == int(host.epoch * 1000)


def test_what_a_refusal_states_may_narrow_the_bound_and_never_makes_a_step() -> None:
    host = HandHost()
    clock = KeptClock(ClockNeeds(is_required=True, grace_s=10.0, recv_window_ms=5000), host)
    clock.observe(Sample(host.boot - 1.0, host.boot, EPOCH, 0.001))
    before_ms = clock.error_ms(host.boot)
    clock.refused(EPOCH + 0.4, host.boot - 0.05, is_second=False)
    assert clock.error_ms(host.boot) < before_ms / 5
    clock.refused(EPOCH + 60.0, host.boot - 0.05, is_second=False)
    assert clock.offset_s() == pytest.approx(0.4, abs=0.1)
    assert clock.status().steps == 0


@pytest.mark.parametrize(("ahead_s", "offset_s"), [(60.0, 60.0), (-3500.0, -3500.0), (86_400.0, 0.0)])
def test_without_a_sample_a_refusal_is_believed_where_it_is_near_this_hosts_clock(
    ahead_s: float, offset_s: float
) -> None:
    host = HandHost()
    clock = KeptClock(ClockNeeds(is_required=False, grace_s=0.0, recv_window_ms=5000), host)
    clock.refused(EPOCH + ahead_s, host.boot - 0.05, is_second=False)
    assert clock.offset_s() == pytest.approx(offset_s, abs=0.1)


def test_a_sample_that_was_sent_before_a_refusal_came_is_dropped_and_the_next_one_is_not() -> None:
    """Refusals that come meanwhile do not put it off: else a crowd of them would put it off for ever."""
    host = HandHost()
    clock = synced(host)
    clock.refused(EPOCH + 60.0, host.boot - 0.05, is_second=False)
    clock.observe(Sample(host.boot - 0.05, host.boot + 0.05, EPOCH, 0.001))
    host.move(1.0, 1.0, 1.0)
    clock.refused(EPOCH + 60.0, host.boot - 0.05, is_second=False)
    clock.observe(Sample(host.boot - 0.5, host.boot, EPOCH + 61.0, 0.001))
    assert clock.offset_s() == pytest.approx(60.0, abs=0.5)


def test_a_refused_timestamp_asks_for_a_sample_and_a_second_one_is_a_fault() -> None:
    host = HandHost()
    clock = synced(host)
    clock.refused(EPOCH + 60.0, host.boot - 0.05, is_second=False)
    assert clock.due.is_set()
    assert clock.status().trouble is None
    clock.refused(EPOCH + 60.0, host.boot - 0.05, is_second=True)
    assert clock.status().refusals == 2
    assert clock.status().trouble == "a timestamp was refused right after a resync"
    clock.was_accepted()
    assert clock.status().trouble is None


def test_a_date_is_only_taken_while_nothing_better_is_known() -> None:
    host = HandHost()
    clock = synced(host)
    clock.observe_date(Sample(host.boot, host.boot, EPOCH + 5, 1.0))
    assert clock.offset_s() == pytest.approx(0.0, abs=0.1)
    fresh = KeptClock(ClockNeeds(is_required=True, grace_s=10.0, recv_window_ms=5000), host)
    fresh.observe_date(Sample(host.boot, host.boot, EPOCH + 5, 1.0))
    assert fresh.offset_s() == pytest.approx(5.5, abs=0.1)
