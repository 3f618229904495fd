"""Which belief an episode changes, and how.

| the refusal came | what it says | what changes |
|---|---|---|
| where no limit of that wait is known | there is one | a limit is added |
| while a probe was under way | the step was too high | back to what held |
| while pacing, near the limit | a little too fast | the rate, towards what the last cycle delivered |
| while pacing, a whole window far below | others spend it, or it was lowered | down to what was accepted |
| in a burst | the window is another | window and number are read again, unless published |

A cycle reaches from one giving way to the next: what was accepted in it, over its length, is what the limiter
delivers, whatever its kind.
"""

import math
from dataclasses import dataclass

from sealgate.core.pacing.episode import Episode, read_episode
from sealgate.core.pacing.limit import Limit
from sealgate.core.pacing.sent_log import SentLog

_NEAR = 0.7  # of the limit: with less than this in the window it cannot be the pace
_LONGER = 1.5  # a wait beyond this many windows (and a second, for rounding) is that of a longer, stacked one
_INSTANT_S = 1e-3  # the shortest cycle that is divided by
_KEPT = 0.25  # of the excess over the delivered rate is kept: the pause itself makes that rate look low
_KEPT_BLURRED = 0.5  # where the end is known to a second only, the pause was longer than needed by about half


@dataclass(frozen=True, slots=True)
class Context:
    """What was going on: paced since `paced_since` (None: freely), the last cycle since `cycle_start`."""

    log: SentLog
    cycle_start: float
    paced_since: float | None


def learn(limits: list[Limit], episode: Episode, context: Context, now: float) -> None:
    """Change `limits` by what a finished episode says; they stay sorted by window."""
    wait_s = episode.gave_way - episode.began
    possible = [one for one in limits if wait_s <= _LONGER * one.window + 1.0]
    limit = max(possible, key=lambda one: _used(one, episode, context.log), default=None)
    if limit is None:
        limit = _new(limits, episode, context.log, now)
    else:
        _correct(limit, episode, context, now)
    if limit is not None:
        limit.seen += 1
        limit.last_seen = now


def _used(limit: Limit, episode: Episode, log: SentLog) -> float:
    return log.count(episode.began - limit.window, episode.began) / limit.n


def _new(limits: list[Limit], episode: Episode, log: SentLog, now: float) -> Limit | None:
    found = read_episode(episode, log)
    if found is None:
        return None
    limit = Limit(*found)
    limit.search(now, episode.blur_s)
    limits.append(limit)
    limits.sort(key=lambda one: one.window)
    return limit


def _correct(limit: Limit, episode: Episode, context: Context, now: float) -> None:
    is_paced = context.paced_since is not None
    if limit.step and is_paced:
        limit.probe_failed(now)
    elif context.paced_since is not None and episode.began >= context.paced_since + limit.window / 2:
        _correct_pace(limit, episode, context, now)
    elif limit.most < math.inf:
        _lower(limit, episode, context, now)
    else:
        found = read_episode(episode, context.log, _delivered_rate(limit, episode, context))
        if found is not None:
            limit.n, limit.window = found
        limit.search(now, episode.blur_s)


def _correct_pace(limit: Limit, episode: Episode, context: Context, now: float) -> None:
    end = episode.began if _is_blurred(limit, episode) else episode.gave_way
    used = context.log.count(end - limit.window, episode.began)
    # A window is judged only when all of it lies after the last pause.
    is_whole = episode.began - context.cycle_start >= 0.9 * limit.window
    if is_whole and 0 < used < _NEAR * limit.n - 1:
        limit.fall(now, used)
    else:
        _lower(limit, episode, context, now)


def _lower(limit: Limit, episode: Episode, context: Context, now: float) -> None:
    accepted = context.log.count(context.cycle_start, episode.began)
    limit.lower(now, _delivered_rate(limit, episode, context), accepted)


def _delivered_rate(limit: Limit, episode: Episode, context: Context) -> float:
    """Return the rate to go on with: that of the last cycle and a part of what was tried beyond."""
    if context.cycle_start == -math.inf:
        return limit.rate
    accepted = context.log.count(context.cycle_start, episode.began)
    delivered = accepted / max(episode.gave_way - context.cycle_start, _INSTANT_S)
    kept = _KEPT_BLURRED if _is_blurred(limit, episode) else _KEPT
    return delivered + kept * (limit.rate - delivered)


def _is_blurred(limit: Limit, episode: Episode) -> bool:
    return episode.blur_s > limit.window / 4
