"""What token bucket explains the episodes.

A bucket has no window: between two moments at which it gave way it let through just its rate. It is written
down as the window that its burst takes to come back, because `burst` per `burst / rate` seconds is the most
that a sliding window can take of it.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

from sealgate.core.pacing.episode import Episode
from sealgate.core.pacing.reading import RATE_TOLERANCE, Evidence, Kind, Reading

_EPISODES = 3  # two gaps between them, or there is nothing to agree
_LONGEST_WAIT = 8.0  # requests' time that a bucket may make wait: one, and refused ones that it counted
_IDLE_S = 0.3  # a pause that lasts so much longer than needed fills a small burst
_BURST_S = 10.0  # before that the bucket may have been another
_SHARP_S = 0.1  # a bucket is told by when it gave way


def explain_bucket(evidence: Evidence, least: int = _EPISODES) -> Reading | None:
    """Return the bucket that explains the latest episodes, at `least` so many; None where it does not.

    A bucket that was full in between let less through, and one that was changed something else: so the most
    episodes are taken that agree.
    """
    if any(one.blur_s > _SHARP_S for one in evidence.episodes):
        return None
    episodes = [one for one in evidence.episodes if one.gave_way > evidence.slow_until]
    for start in range(len(episodes) - least + 1):
        latest = episodes[start:]
        if any(one.resumed - one.gave_way > _IDLE_S for one in latest[:-1]):
            continue  # it may have been full before anything was sent again
        rate = _agreed_rate(evidence, latest)
        if rate and all(one.wait_s <= _LONGEST_WAIT / rate for one in evidence.episodes):
            seen_s = math.inf if len(latest) == len(evidence.episodes) else _BURST_S
            burst = max(1.0, math.floor(_burst(evidence, rate, seen_s) + 0.5))
            return Reading(Kind.BUCKET, burst, burst / rate)
    return None


def _agreed_rate(evidence: Evidence, episodes: Sequence[Episode]) -> float:
    """Return the rate that went between the episodes, 0 where they disagree."""
    gaps = [
        (evidence.log.count(earlier.gave_way, later.gave_way), later.gave_way - earlier.gave_way)
        for earlier, later in pairwise(episodes)
    ]
    blur_s = evidence.jitter_s + 2 * max(one.blur_s for one in episodes)
    least = max(cost / (length_s + blur_s) for cost, length_s in gaps)
    most = min(cost / max(length_s - blur_s, 1e-9) for cost, length_s in gaps)
    whole_s = episodes[-1].gave_way - episodes[0].gave_way
    if least > most * RATE_TOLERANCE or whole_s <= 0:
        return 0.0
    return sum(cost for cost, _ in gaps) / whole_s


def _burst(evidence: Evidence, rate: float, seen_s: float) -> float:
    """Return how much was taken beyond the rate, in the last `seen_s` before the bucket was empty."""
    return 1.0 + max(
        evidence.log.most_beyond(rate, one.gave_way, max(evidence.since, one.gave_way - seen_s))
        for one in evidence.episodes
    )
