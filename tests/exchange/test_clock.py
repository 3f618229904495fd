"""Virtual time: `our` clock reads t, the server's reads offset + t (1 + drift). Nothing here sleeps."""

import math
from dataclasses import dataclass

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from sealgate.exchange.clock import DRIFT, Bounds, Gap, Jump, Sample, Sampling, ServerClock, find_jump
from sealgate.machine.clocks import SystemClocks

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
    st.floats(-DRIFT, DRIFT) | st.sampled_from((-DRIFT, DRIFT)),
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


@example(
    Server(1789000000.7816288, DRIFT, 1e-06),
    [
        Exchange(0.0, 0.06524276805995542, 0.015625),
        Exchange(502.12022086175085, 0.0, 4.913672985920654e-05),
        Exchange(111.03962197177376, 0.0, 1e-05 * 10**1.5),
        Exchange(599.8515625, 0.0001, 0.0),
    ],
    0.0,
)
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


# When to sample.

INTERVAL = 30.0
SOON = 0.2


def after(samples: int, half_round_trip_s: float = 0.03) -> Sampling:
    sampling = Sampling()
    for _ in range(samples):
        sampling = sampling.taken(half_round_trip_s)
    return sampling


def in_trouble(failures: int) -> Sampling:
    sampling = after(5)
    for _ in range(failures):
        sampling = sampling.failed()
    return sampling


@pytest.mark.parametrize(
    ("sampling", "error_s", "gap"),
    [
        pytest.param(after(0), 0.03, Gap(0.05, 0.05), id="at first"),
        pytest.param(after(4), 0.03, Gap(0.05, 0.05), id="at the end of the burst"),
        pytest.param(after(9), 0.03, Gap(SOON, INTERVAL), id="long after the burst"),
        pytest.param(after(5), 0.06, Gap(SOON, INTERVAL), id="twice the best"),
        pytest.param(after(5), 0.0601, Gap(SOON, 1.0), id="more than twice the best"),
        pytest.param(after(5, 0.0001), 0.01, Gap(SOON, INTERVAL), id="just good enough"),
        pytest.param(after(5, 0.0001), 0.0101, Gap(SOON, 1.0), id="not good enough on a fast network"),
        pytest.param(in_trouble(1), 0.03, Gap(1.0, 1.0), id="the first trouble"),
        pytest.param(in_trouble(2), 0.03, Gap(1.0, 2.0), id="the second"),
        pytest.param(after(5, 0.4), 0.5, Gap(SOON, INTERVAL), id="a slow network cannot do better"),
        pytest.param(Sampling().failed(), 0.0, Gap(1.0, 1.0), id="nothing came yet"),
        pytest.param(in_trouble(3), 0.03, Gap(1.0, 4.0), id="the gap doubles in trouble"),
        pytest.param(in_trouble(100), 0.03, Gap(1.0, 30.0), id="but not for ever"),
        pytest.param(in_trouble(9).taken(0.03), 0.03, Gap(SOON, INTERVAL), id="a good one ends the trouble"),
    ],
)
def test_gap(sampling: Sampling, error_s: float, gap: Gap) -> None:
    assert sampling.gap(INTERVAL, error_s) == gap


@pytest.mark.parametrize("error_s", [0.03, 0.5])
def test_an_interval_shorter_than_a_quick_one_stays(error_s: float) -> None:
    assert after(5).gap(0.1, error_s) == Gap(0.1, 0.1)


def test_a_time_in_whole_seconds_is_no_reason_to_ask_more_often() -> None:
    """Asked each second, it would use up what the exchange grants there."""
    rested = Sampling(left=1).taken(0.51)
    assert rested.gap(30.0, 0.6).latest_s == 30.0
    assert rested.gap(30.0, 2.0).latest_s < 30.0, "a step is"
