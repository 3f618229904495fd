"""A simulated pair of clocks and the network between them: the truth that an estimate is held against.

Theirs runs at `1 + drift` of ours from an offset, and may be stepped. A delay is drawn for each way apart:
half of the base round trip each, unevenly split if asked for, with jitter and, now and then, a spike.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random  # noqa: TID251 - seeded

from sealgate.exchange.clock import Sample


@dataclass(frozen=True, slots=True)
class Network:
    """Delays in seconds. `asymmetry` is how much longer the way back is than the way there."""

    base_rtt: float = 0.060
    jitter: float = 0.002
    spike_chance: float = 0.08
    spike_mean: float = 0.100
    asymmetry: float = 0.0

    def delays(self, random: Random) -> tuple[float, float]:
        """Return the delay there and the delay back."""
        there, back = (self.base_rtt - self.asymmetry) / 2, (self.base_rtt + self.asymmetry) / 2
        return there + self._extra(random), back + self._extra(random)

    def _extra(self, random: Random) -> float:
        spike = random.expovariate(1 / self.spike_mean) if random.random() < self.spike_chance / 2 else 0.0
        return random.expovariate(1 / self.jitter) + spike


@dataclass(slots=True)
class Pair:
    """Our clock and theirs. Times are ours, the server's are epoch seconds."""

    random: Random
    network: Network = field(default_factory=Network)
    drift: float = 30e-6
    offset: float = 1_790_000_000.0
    resolution: float = 0.001

    def server_at(self, now: float) -> float:
        """Return the true server time at a moment of ours."""
        return self.offset + now * (1 + self.drift)

    def offset_at(self, now: float) -> float:
        """Return the true offset at a moment of ours."""
        return self.server_at(now) - now

    def step(self, seconds: float) -> None:
        """Set the server's clock forward, or back if negative."""
        self.offset += seconds

    def ask(self, now: float) -> Sample:
        """Return what one `/time` request sent at `now` brings."""
        there, back = self.network.delays(self.random)
        served = self.server_at(now + there)
        cut_off = served - served % self.resolution
        return Sample(now, now + there + back, cut_off, self.resolution)


def schedule(duration: float, interval: float, burst: int = 5) -> Iterator[float]:
    """Yield when samples are taken: a burst at the start, then one per interval."""
    for number in range(burst):
        yield number * 0.3
    now = interval
    while now < duration:
        yield now
        now += interval
