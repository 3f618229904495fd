"""The certified bound against the truth, in virtual time: it must contain the true offset, always."""

from collections.abc import Iterator
from random import Random  # noqa: TID251 - seeded

import pytest

from rig.clocks import Network, Pair, schedule
from sealgate.exchange.clock import ServerClock

NETWORKS = {
    "symmetric": Network(),
    "40 ms asymmetric": Network(asymmetry=0.040),
    "all of it on the way back": Network(asymmetry=0.060),
    "heavy tail": Network(jitter=0.010, spike_chance=0.3, spike_mean=0.4),
    "loopback": Network(base_rtt=0.0004, jitter=0.0001, spike_chance=0.02, spike_mean=0.01),
    "/time in whole seconds": Network(),
}
SEEDS = range(200)  # for each network: 1200 runs
RESUME_SLACK_S = 1.0
STEPS_S = (-3600.0, -30.0, -5.0, 5.0, 30.0, 3600.0)


def follow(pair: Pair, clock: ServerClock, times: list[float]) -> Iterator[tuple[ServerClock, float]]:
    """Yield the clock and a moment: right after each sample, and later, before the next."""
    for now in times:
        sample = pair.ask(now)
        clock = clock.observe(sample)
        for later in (sample.received, sample.received + pair.random.uniform(0, 30)):
            yield clock, later


@pytest.mark.parametrize("network", NETWORKS)
def test_the_true_offset_lies_inside_the_bound(network: str) -> None:
    """Drift up to 200 ppm, a suspend that leaves our clock up to a second off, and a step of the server's."""
    for seed in SEEDS:
        random = Random(seed)
        resolution = 1.0 if network == "/time in whole seconds" else 0.001
        pair = Pair(random, NETWORKS[network], random.uniform(-200e-6, 200e-6), resolution=resolution)
        clock = ServerClock()
        for phase in range(3):
            start = phase * 10_000.0
            if phase == 1:
                pair.step(random.uniform(-RESUME_SLACK_S, RESUME_SLACK_S))
                clock = clock.widened(RESUME_SLACK_S)
            if phase == 2:
                pair.step(random.choice(STEPS_S))
            times = [start + moment for moment in schedule(300.0, 30.0)]
            for clock, moment in follow(pair, clock, times):  # noqa: B020 - the clock goes on in the next phase
                bounds = clock.bounds(moment)
                assert bounds.low <= pair.offset_at(moment) <= bounds.high, (seed, phase, moment)
                assert clock.timestamp_ms(moment) <= pair.server_at(moment) * 1000, (seed, phase, moment)
        assert clock.steps == 1, seed
