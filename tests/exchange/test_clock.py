"""Virtual time: `our` clock reads t, the server's reads offset + t (1 + drift). Nothing here sleeps."""

import math
from dataclasses import dataclass

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sealgate.exchange.clock import DRIFT, Bounds, Gap, Jump, Sample, Sampling, ServerClock, find_jump
from sealgate.machine.clocks import SystemClocks
from sealgate.orders.validity import Stamps

EPOCH = 1_790_000_000.0
ROUNDING = 2e-6  # of sums of floats as large as an epoch


@dataclass(frozen=True)
class Exchange:
    """One `/time`: the pause before it, the way there, the way back."""

    gap: float
    there: float
    back: float


@dataclass(frozen=True)
class Server:
    """A server whose clock is off by `offset` and runs too fast by `drift`."""

    offset: float
    drift: float
    resolution: float = 0.001

    def offset_at(self, ours: float) -> float:
        return self.offset + self.drift * ours

    def sample(self, sent: float, there: float, back: float) -> Sample:
        made = sent + there
        time = made + self.offset_at(made)
        return Sample(
            sent, made + back, math.floor(time / self.resolution) * self.resolution, self.resolution
        )


usual = st.floats(0.001, 0.2)
heavy_tailed = st.floats(0.0, 6.0).map(lambda power: 1e-5 * 10**power)  # 10 µs to 10 s
gaps = st.floats(0.0, 600.0)
exchanges = st.one_of(
    st.builds(lambda gap, way: Exchange(gap, way, way), gaps, usual),
    st.builds(Exchange, gaps, usual, usual),
    st.builds(Exchange, gaps, st.just(0.0), heavy_tailed),
    st.builds(Exchange, gaps, heavy_tailed, st.just(0.0)),
    st.builds(Exchange, gaps, heavy_tailed, heavy_tailed),
)
servers = st.builds(
    Server,
    st.floats(EPOCH - 1e6, EPOCH + 1e6),
    st.floats(-90e-6, 90e-6) | st.sampled_from((-90e-6, 90e-6)),
    st.sampled_from((1e-6, 1e-3, 1.0)),
)


def samples_of(server: Server, course: list[Exchange], start: float = 0.0) -> list[Sample]:
    samples, now = [], start
    for exchange in course:
        samples.append(server.sample(now + exchange.gap, exchange.there, exchange.back))
        now = samples[-1].received
    return samples


def clock_after(samples: list[Sample]) -> ServerClock:
    clock = ServerClock()
    for sample in samples:
        clock = clock.observe(sample)
    return clock


@given(servers, st.lists(exchanges, min_size=1, max_size=12), gaps)
def test_the_true_offset_is_always_within_the_bounds(
    server: Server, course: list[Exchange], later: float
) -> None:
    """However the delays fall, nothing true is ever taken for a step, and the truth is never shut out."""
    clock = ServerClock()
    for sample in samples_of(server, course):
        clock = clock.observe(sample)
        for now in (sample.received, sample.received + later):
            bounds = clock.bounds(now)
            assert bounds.low - ROUNDING <= server.offset_at(now) <= bounds.high + ROUNDING
            assert abs(bounds.middle - server.offset_at(now)) <= clock.error(now) + ROUNDING
    assert clock.steps == 0


@given(servers, st.lists(exchanges, min_size=1, max_size=12), gaps)
def test_the_timestamp_is_never_from_the_future(server: Server, course: list[Exchange], later: float) -> None:
    """It is early by no more than the bounds are wide, and a millisecond cut off."""
    samples = samples_of(server, course)
    clock, now = clock_after(samples), samples[-1].received + later
    signed_s, server_s = clock.timestamp_ms(now) / 1000, now + server.offset_at(now)
    assert signed_s <= server_s + ROUNDING
    assert signed_s >= server_s - 2 * clock.error(now) - 0.001 - ROUNDING


@given(servers, st.lists(exchanges, min_size=1, max_size=12))
def test_the_bounds_are_no_wider_than_the_latest_round_trip(server: Server, course: list[Exchange]) -> None:
    samples = samples_of(server, course)
    latest = samples[-1]
    trip = latest.received - latest.sent
    width = 2 * clock_after(samples).error(latest.received)
    assert width <= trip * (1 + DRIFT) + latest.resolution + ROUNDING


def interval(sample: Sample, now: float) -> tuple[float, float]:
    """Return what one sample says of the offset at `now`."""
    low = sample.server - sample.received - DRIFT * (now - sample.received)
    high = sample.server + sample.resolution - sample.sent + DRIFT * (now - sample.sent)
    return low, high


def brute_force(samples: list[Sample]) -> tuple[list[Sample], int]:
    """Return the samples since the last step, and how many steps there were, from all intervals each time."""
    known: list[Sample] = []
    steps = 0
    for sample in samples:
        known.append(sample)
        intervals = [interval(one, sample.received) for one in known]
        overlap = min(high for _, high in intervals) - max(low for low, _ in intervals)
        assume(abs(overlap) > ROUNDING)
        if overlap < 0:
            known, steps = [sample], steps + 1
    return known, steps


@given(servers, st.lists(st.tuples(exchanges, st.sampled_from((0.0, 0.0, -0.05, 0.05, 5.0))), min_size=1))
def test_equals_the_intersection_of_all_samples(server: Server, course: list[tuple[Exchange, float]]) -> None:
    """With steps of the server's clock on the way, small ones too, which the bounds may or may not reveal."""
    samples: list[Sample] = []
    for exchange, step in course:
        server = Server(server.offset + step, server.drift, server.resolution)
        start = samples[-1].received if samples else 0.0
        samples += samples_of(server, [exchange], start)
    known, steps = brute_force(samples)
    clock, now = clock_after(samples), samples[-1].received
    intervals = [interval(sample, now) for sample in known]
    assert clock.steps == steps
    assert clock.bounds(now).low == pytest.approx(max(low for low, _ in intervals), rel=0, abs=ROUNDING)
    assert clock.bounds(now).high == pytest.approx(min(high for _, high in intervals), rel=0, abs=ROUNDING)


@given(
    servers,
    st.lists(exchanges, min_size=1, max_size=6),
    exchanges,
    st.floats(0.001, 1e6),
    st.sampled_from((-1, 1)),
)
def test_a_step_beyond_the_bounds_is_noticed(
    server: Server, course: list[Exchange], after: Exchange, beyond: float, sign: int
) -> None:
    """Whichever way it goes: what was known is void, and the bounds hold the new truth."""
    before = samples_of(server, course)
    clock, now = clock_after(before), before[-1].received
    trip = after.there + after.back
    room = 2 * clock.error(now + after.gap + trip) + (trip + server.resolution) * (1 + DRIFT)
    stepped = Server(server.offset + sign * (room + beyond), server.drift, server.resolution)
    sample = samples_of(stepped, [after], now)[0]
    clock = clock.observe(sample)
    bounds = clock.bounds(sample.received)
    assert clock.steps == 1
    assert bounds.low - ROUNDING <= stepped.offset_at(sample.received) <= bounds.high + ROUNDING


def test_nothing_is_known_before_the_first_sample() -> None:
    clock = ServerClock()
    assert not clock.is_synced
    assert clock.bounds(5.0) == Bounds(-math.inf, math.inf)


def test_one_sample_bounds_the_offset_by_its_round_trip() -> None:
    clock = ServerClock().observe(Sample(sent=0.0, received=0.5, server=1000.0, resolution=0.25))
    bounds = clock.bounds(0.0)
    assert clock.is_synced
    assert (clock.last, clock.steps) == (0.5, 0)
    assert bounds.low == pytest.approx(999.5 + DRIFT * 0.5)
    assert bounds.high == pytest.approx(1000.25)
    assert bounds.middle == pytest.approx(999.875, abs=1e-3)
    assert clock.error(0.0) == pytest.approx(0.375, abs=1e-3)


def test_bounds_widen_with_age() -> None:
    clock = ServerClock().observe(Sample(0.0, 0.0, 1000.0, 0.001))
    bounds = clock.bounds(1000.0)
    assert (bounds.low, bounds.high) == pytest.approx((999.8, 1000.201), rel=0, abs=1e-9), "200 ppm"


def test_a_server_time_is_cut_to_milliseconds_unless_told() -> None:
    clock = ServerClock().observe(Sample(0.0, 0.0, 1000.0))
    assert clock.bounds(0.0).high == pytest.approx(1000.001, rel=0, abs=1e-9)


def test_bounds_that_only_touch_are_no_step() -> None:
    exact = Sample(0.0, 0.0, 1000.0, 0.0)
    assert ServerClock().observe(exact).observe(exact).steps == 0


def test_the_upper_edge_ages_from_the_sending() -> None:
    """The reply may have been made the moment we sent; on its long way back the clocks drift too."""
    clock = ServerClock().observe(Sample(sent=0.0, received=10.0, server=1000.0, resolution=0.0))
    bounds = clock.bounds(10.0)
    assert (bounds.low, bounds.high) == pytest.approx((990.0, 1000.0 + 10 * DRIFT), rel=0, abs=1e-9)


def test_a_better_sample_narrows_a_worse_one_does_nothing() -> None:
    rough = ServerClock().observe(Sample(0.0, 1.0, 1000.5, 0.001))
    fine = rough.observe(Sample(1.0, 1.01, 1001.505, 0.001))
    same = fine.observe(Sample(2.0, 3.0, 1002.9, 0.001))
    assert fine.error(3.0) < 0.01 < rough.error(3.0)
    assert same.bounds(3.0) == fine.bounds(3.0)
    assert same.last == 3.0


def test_the_timestamp_is_the_early_edge_in_whole_milliseconds() -> None:
    clock = ServerClock().observe(Sample(sent=10.0, received=10.25, server=1000.125))
    assert clock.timestamp_ms(10.25) == 1_000_125
    assert clock.timestamp_ms(11.25) == 1_001_124  # 100 ppm of a second earlier


def test_a_widened_clock_still_contains_what_it_did() -> None:
    clock = ServerClock().observe(Sample(0.0, 0.0, 1000.0, 0.001)).widened(1.0)
    bounds = clock.bounds(0.0)
    assert (bounds.low, bounds.high) == pytest.approx((999.0, 1001.001))


BEFORE = SystemClocks(boot=1000.0, mono=900.0, wall=1_790_000_000.0)


def later(boot: float, mono: float, wall: float) -> SystemClocks:
    return SystemClocks(BEFORE.boot + boot, BEFORE.mono + mono, BEFORE.wall + wall)


@pytest.mark.parametrize(
    ("after", "jump"),
    [
        pytest.param(later(5.0, 5.0, 5.0), None, id="time passes"),
        pytest.param(later(5.0, 5.0, 5.05), None, id="read one after the other"),
        pytest.param(later(3600.0, 5.0, 3600.0), Jump.SUSPEND, id="laptop closed"),
        pytest.param(later(3600.0, 5.0, 5.0), Jump.SUSPEND, id="closed, and the wall clock not yet set"),
        pytest.param(later(5.0, 5.0, 3605.0), Jump.WALL_STEP, id="set forward"),
        pytest.param(later(5.0, 5.0, -3595.0), Jump.WALL_STEP, id="set back"),
        pytest.param(later(5.15, 5.0, 5.15), Jump.SUSPEND, id="a nap"),
        pytest.param(later(5.0, 5.0, 5.15), Jump.WALL_STEP, id="set a little forward"),
    ],
)
def test_jumps(after: SystemClocks, jump: Jump | None) -> None:
    assert find_jump(BEFORE, after) is jump


@given(st.floats(0, 1e6))
def test_a_stopped_process_is_no_jump(seconds: float) -> None:
    """All clocks go on while the process does not: what was known still holds."""
    assert find_jump(BEFORE, later(seconds, seconds, seconds)) is None


def test_a_tenth_of_a_second_is_no_jump() -> None:
    start = SystemClocks(0.0, 0.0, 0.0)
    assert find_jump(start, SystemClocks(0.1, 0.0, 0.1)) is None
    assert find_jump(start, SystemClocks(0.0, 0.0, 0.1)) is None


FURTHEST_MS = 500


def test_different_requests_share_a_millisecond() -> None:
    stamps = Stamps()
    assert [stamps.take(1000, content) for content in range(3)] == [1000] * 3


@pytest.mark.parametrize("gap_ms", [2, 100, 499, 500, 501, 5000])
def test_equal_requests_after_any_time_of_the_same_get_earlier_ones_too(gap_ms: int) -> None:
    """What was taken long ago neither is in the way, nor makes the next ones repeat themselves."""
    stamps = Stamps()
    taken = [stamps.take(10_000 + turn * gap_ms, 7) for turn in range(400) for _ in range(2)]
    assert len(set(taken)) == len(taken)


def test_the_largest_gap_of_late_is_filled() -> None:
    stamps = Stamps()
    nows = [*range(1000, 2000, 100), 1901, 1901]
    assert [stamps.take(now, 7) for now in nows] == [*range(1000, 2000, 100), 1901, 1499]


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3)), max_size=30))
def test_no_pair_comes_twice_and_none_is_of_the_future(steps: list[tuple[int, int]]) -> None:
    stamps, now, taken = Stamps(), 1_790_000_000_000, []
    for passed, content in steps:
        now += passed
        taken.append((stamps.take(now, content), content))
        assert now - FURTHEST_MS <= taken[-1][0] <= now
    assert len(set(taken)) == len(taken)


@given(st.lists(st.tuples(st.integers(5, 600), st.integers(1, 5)), max_size=40))
def test_a_few_at_once_are_told_apart_however_long_it_goes_on(bursts: list[tuple[int, int]]) -> None:
    stamps, now, taken = Stamps(), 1_790_000_000_000, []
    for passed, count in bursts:
        now += passed
        taken += [stamps.take(now, 7) for _ in range(count)]
        assert now - FURTHEST_MS <= min(taken[-count:])
    assert len(set(taken)) == len(taken)


def test_a_flood_of_equal_requests_repeats_itself_rather_than_grow_old() -> None:
    stamps = Stamps()
    taken = [stamps.take(1_000_000, 7) for _ in range(3 * FURTHEST_MS)]
    assert min(taken) == 1_000_000 - FURTHEST_MS
    assert len(set(taken)) == FURTHEST_MS + 1


def test_what_it_remembers_is_bounded_and_the_oldest_goes() -> None:
    stamps = Stamps()
    for content in range(1025):
        stamps.take(1000, content)
    assert [*stamps._taken] == [*range(1, 1025)]


def test_a_clock_that_is_set_back_is_followed() -> None:
    stamps = Stamps()
    assert stamps.take(1_000_000, 7) == 1_000_000
    assert stamps.take(970_000, 7) == 970_000
    assert stamps.take(970_000, 7) == 969_999


def test_how_often_the_exchange_is_asked_for_its_time() -> None:
    """Five times within a quarter of a second at first, then at the interval; ever less often in trouble."""
    sampling, burst = Sampling(), []
    while (gap := sampling.gap(60.0, 0.001)).latest_s < 1.0:
        burst.append(gap)
        sampling = sampling.taken(0.020)
    assert burst == [Gap(0.05, 0.05)] * 5
    assert gap == Gap(0.2, 60.0)
    poor = {error_s: sampling.gap(60.0, error_s).latest_s for error_s in (0.039, 0.041)}
    assert poor == {0.039: 60.0, 0.041: 1.0}  # twice the best that one sample can do
    near = {error_s: Sampling(0, 0.001).gap(60.0, error_s).latest_s for error_s in (0.0099, 0.0101)}
    assert near == {0.0099: 60.0, 0.0101: 1.0}  # good enough wherever the exchange is near
    waits = []
    for _ in range(7):
        sampling = sampling.failed()
        waits.append(sampling.gap(60.0, 0.001))
    assert [wait.latest_s for wait in waits] == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert {wait.soonest_s for wait in waits} == {1.0}
