"""How wrong is the clock? The interval intersection beside three usual ways, in virtual time.

The error is the distance of each way's best guess from the true offset, looked at once a second over ten
minutes of samples every 30 s: 60 ms round trip, 8 % of the requests with a spike, drift up to 200 ppm.
"""

import argparse
from collections.abc import Callable
from itertools import pairwise
from random import Random
from statistics import median, quantiles

from rig.clocks import Network, Pair, schedule
from sealgate.exchange.clock import Sample, ServerClock

DURATION, INTERVAL = 600.0, 30.0
Guess = Callable[[list[Sample], float], float]


def middle_of(sample: Sample) -> float:
    return sample.server + sample.resolution / 2 - (sample.sent + sample.received) / 2


def intersection(samples: list[Sample], now: float) -> float:
    clock = ServerClock()
    for sample in samples:
        clock = clock.observe(sample)
    return clock.bounds(now).middle


def one_sample(samples: list[Sample], _: float) -> float:
    """Take the server time as if it had come at once: what most bots do."""
    return samples[-1].server - samples[-1].received


def median_of_five(samples: list[Sample], _: float) -> float:
    return median(middle_of(sample) for sample in samples[-5:])


def shortest_round_trip(samples: list[Sample], _: float) -> float:
    return middle_of(min(samples[-8:], key=lambda sample: sample.received - sample.sent))


WAYS: dict[str, Guess] = {
    "interval intersection": intersection,
    "one sample": one_sample,
    "median of five": median_of_five,
    "shortest round trip of eight": shortest_round_trip,
}
NETWORKS = {
    "symmetric": Network(),
    "40 ms asymmetric": Network(asymmetry=0.040),
    "heavy tail": Network(jitter=0.010, spike_chance=0.3, spike_mean=0.4),
}


def errors(way: Guess, network: Network, seed: int) -> list[float]:
    random = Random(seed)
    pair = Pair(random, network, drift=random.uniform(-200e-6, 200e-6))
    samples: list[Sample] = []
    found = []
    times = [*schedule(DURATION, INTERVAL), DURATION]
    for start, end in pairwise(times):
        samples.append(pair.ask(start))
        seconds = range(int(start) + 1, int(end) + 1)
        found += [abs(way(samples, now) - pair.offset_at(now)) for now in map(float, seconds)]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=50)
    seeds = parser.parse_args().seeds
    print(f"{'error, ms (' + str(seeds) + ' seeds)':32} {'network':18} {'p50':>7} {'p99':>8} {'max':>8}")
    for network_name, network in NETWORKS.items():
        for way_name, way in WAYS.items():
            found = [error * 1000 for seed in range(seeds) for error in errors(way, network, seed)]
            p50, p99 = median(found), quantiles(found, n=100)[98]
            print(f"{way_name:32} {network_name:18} {p50:7.1f} {p99:8.1f} {max(found):8.1f}")


if __name__ == "__main__":
    main()
