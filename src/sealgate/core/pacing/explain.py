"""What limiter explains all episodes since the limit was first met: a window, or else a bucket.

Each candidate is a kind and a window. Every episode says how much its window held when it refused: of a
sliding window the count up to the moment it gave way, of a fixed one the same, with edges that repeat. What
was ever accepted within one window is a floor. A candidate whose episodes disagree, or whose floor is above
what refused, is refuted. Of those that are left the one of the highest rate is taken, because it is the least
restriction that explains the refusals; if it was too generous, the next episode comes soon and refutes it.
"""

import math
from collections.abc import Sequence

from sealgate.core.pacing.bucket import explain_bucket
from sealgate.core.pacing.episode import Episode
from sealgate.core.pacing.reading import RATE_TOLERANCE, Evidence, Kind, Reading
from sealgate.core.pacing.sent_log import Tally

# Seconds: what exchanges publish, and below a second what buckets with a small burst look like.
CANDIDATES = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 300.0, 600.0, 900.0, 3600.0)
_LEAST_EPISODES = 2  # of a bucket, where no window explains them
_TELLABLE = 0.9  # of the blur
_SHARP = 0.25  # of a window: with less blur its edges are known
_LONGEST_BLUR_S = 60.0  # a longer pause says little of the window: this is the longest that is common
_STILL_IN = 0.5  # of what a sliding window held is still in it just before it gives way; refusals may be more
_EDGES = 100  # windows that are looked at for what each held


def explain(evidence: Evidence) -> Reading | None:
    """Return the least restriction that explains all episodes; None where nothing does."""
    return explain_window(evidence) or explain_bucket(evidence, _LEAST_EPISODES)


def explain_window(evidence: Evidence) -> Reading | None:
    """Return the least restrictive window that explains all episodes; None where no window does."""
    readings = [
        reading
        for window in _candidates(evidence)
        for reading in (_sliding(evidence, window), _fixed(evidence, window))
        if reading is not None
    ]
    return max(readings, key=lambda one: (one.rate, one.window), default=None)


def _candidates(evidence: Evidence) -> Sequence[float]:
    """Return the windows that can be told apart: none that is shorter than what is unknown of its end."""
    blur_s = min(_LONGEST_BLUR_S, *(2 * one.blur_s for one in evidence.episodes))
    return [window for window in CANDIDATES if window >= _TELLABLE * blur_s]


def explain_last(evidence: Evidence, at_most: float = math.inf) -> Reading | None:
    """Return what the last episode alone says, of a rate up to `at_most` if there is one."""
    last = evidence.episodes[-1]
    counts = (
        (evidence.log.count(last.gave_way - window, last.began), window) for window in _candidates(evidence)
    )
    fitting = [Reading(Kind.UNKNOWN, n, window) for n, window in counts if n > 0]
    slow_enough = [one for one in fitting if one.rate <= at_most * RATE_TOLERANCE]
    return max(slow_enough or fitting[-1:], key=lambda one: one.rate, default=None)


def _sliding(evidence: Evidence, window: float) -> Reading | None:
    """Count what it held when it first refused: it is full then, whatever is stated."""
    log, jitter_s = evidence.log, evidence.jitter_s
    if any(_has_left(log, one, window, jitter_s) for one in evidence.episodes):
        return None
    sure_s = max(window - 2 * jitter_s, 0.0)
    floor = log.most(sure_s, evidence.since, evidence.episodes[-1].latest)
    return _agreed(
        evidence, window, Kind.SLIDING, floor, [(one.began, one.began) for one in evidence.episodes]
    )


def _has_left(log: Tally, episode: Episode, window: float, jitter_s: float) -> bool:
    """Whether a sliding window would have had much room before it gave way."""
    left = log.count(episode.earliest - jitter_s - window, episode.began)
    return left < max(1.0, _STILL_IN * log.count(episode.began - window, episode.began))


def _fixed(evidence: Evidence, window: float) -> Reading | None:
    ends = [(one.earliest, one.latest) for one in evidence.episodes]
    sharp = [one for one in evidence.episodes if one.blur_s < _SHARP * window]
    if not sharp:
        return _agreed(evidence, window, Kind.FIXED, 0.0, ends)
    sharpest = min(reversed(sharp), key=lambda one: one.blur_s)
    edge, known_s = sharpest.gave_way, sharpest.blur_s + evidence.jitter_s
    if any(_off_edge(one.gave_way - edge, window) > one.blur_s + known_s for one in sharp):
        return None
    return _agreed(evidence, window, Kind.FIXED, _most_between_edges(evidence, edge, window, known_s), ends)


def _off_edge(distance: float, window: float) -> float:
    return abs(math.remainder(distance, window))


def _most_between_edges(evidence: Evidence, edge: float, window: float, known_s: float) -> float:
    """Return the most that surely went between two edges, which are known to `known_s`."""
    log = evidence.log
    first = max(log.first(), evidence.since, edge - _EDGES * window)
    if first == math.inf:
        return 0.0
    edges = (edge - turn * window for turn in range(1, int((edge - first) / window) + 2))
    return max((log.count(at + known_s, at + window - known_s) for at in edges), default=0.0)


def _agreed(
    evidence: Evidence, window: float, kind: Kind, floor: float, ends: Sequence[tuple[float, float]]
) -> Reading | None:
    """Return what all windows that ended then, give or take, can have held; None if they disagree."""
    log, jitter_s = evidence.log, evidence.jitter_s
    held = [
        (
            log.count(latest + jitter_s - window, one.began),
            log.count(earliest - jitter_s - window, one.began) + one.cost - 1,
        )
        for one, (earliest, latest) in zip(evidence.episodes, ends, strict=True)
    ]
    low = max(floor, *(low for low, _ in held))
    high = min(high for _, high in held)
    is_bounded = evidence.failed_rate * window <= high
    if is_bounded:
        high = math.ceil(evidence.failed_rate * window) - 1.0
    if high < max(low, 1.0):
        return None
    return Reading(kind, max(low, 1.0, (low + high) // 2) if is_bounded else high, window)
