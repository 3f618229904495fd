"""An event, and what windows of any length held of what was sent up to it."""

from collections.abc import Sequence
from dataclasses import dataclass

from sealgate.limits.sent_log import SentLog
from sealgate.limits.throttle import ThrottleEvent

RATIO = 1.15  # of two neighbours in GRID: nearer windows hold nearly the same, and are told apart afterwards
ROUND_S = (1.0, 2.0, 3.0, 5.0, 10.0, 15.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0)
# Windows in seconds: from what a jitter blurs up to an hour.
GRID = sorted([*(0.05 * RATIO**i for i in range(81)), *ROUND_S])
Held = list[tuple[float, float]]  # reads and others, by window
Kept = list[tuple[tuple[float, float], tuple[float, float]]]  # the same at two moments


@dataclass(slots=True, eq=False)
class Observation:
    """An event, and what each window of GRID held of what was sent up to it: at the least and at the most.

    That is as of `latest` and as of `earliest`, the moments between which the limiter gave way. `kept` is
    what each still held at `since`, when the event before was over, and half-way from there to this event.
    """

    event: ThrottleEvent
    since: float
    least: Held
    most: Held
    kept: Kept
    scale: float = 1.0  # by how much the limit is known to have grown since


def observe(log: SentLog, event: ThrottleEvent, since: float) -> Observation:
    """Return the event with its counts; the one before was over at `since`."""
    return Observation(event, since, *held_at(log, event, since, GRID))


def held_at(
    log: SentLog, event: ThrottleEvent, since: float, windows: Sequence[float]
) -> tuple[Held, Held, Kept]:
    """Return what each window held: at the least, at the most, and what it still held at two moments."""
    reads, others = log.reads, log.others

    def at(end: float, until: float) -> Held:
        return [(reads.count(end - one, until), others.count(end - one, until)) for one in windows]

    least = at(event.latest, event.refused_at)
    most = least if event.earliest == event.latest else at(event.earliest, event.refused_at)
    middle = max((since + event.refused_at) / 2, since)
    return least, most, list(zip(at(since, since), at(middle, middle), strict=True))
