"""Which belief an episode changes, and how.

| the refusal came | what it says | what changes |
|---|---|---|
| where no limit of that wait is known | there is one | a limit is added |
| while a probe was under way | the step was too high | back to what held |
| at a pace that held, a little too early | the pace is a little too fast | just so much slower |
| at a pace that held, a window far below | others spend it, or it was lowered | down to what was accepted |
| in a burst, at a rate that held | the burst is smaller than thought | the burst |
| before anything held | the window is another | all episodes are read again, unless published |

A cycle reaches from one giving way to the next: what was accepted in it, over its length, is what the limiter
delivers, whatever its kind.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sealgate.core.pacing.episode import Episode
from sealgate.core.pacing.explain import (
    CANDIDATES,
    Evidence,
    Kind,
    Reading,
    explain,
    explain_bucket,
    explain_last,
)
from sealgate.core.pacing.limit import Limit
from sealgate.core.pacing.patience import SPAN_S
from sealgate.core.pacing.sent_log import Tally

_NEAR = 0.7  # of the limit: with less than this in the window it cannot be the pace
_LONGER = 1.5  # a wait beyond this many windows (and a second, for rounding) is that of a longer, stacked one
_INSTANT_S = 1e-3  # the shortest cycle that is divided by
_AT_LEAST_S = 1.0  # a count over less is hardly a rate
_SAME = 0.02  # of a rate: less is jitter
_KEPT = 0.25  # of the excess over the delivered rate is kept: the pause itself makes that rate look low
_KEPT_BLURRED = 0.5  # where the end is known to a second only, the pause was longer than needed by about half
_SLOTS = 1.5  # a request that is early by more is not refused for its pace
_UNEXPLAINED = 4  # episodes that nothing explains: the limit has changed, or others spend it
_SHORT_OF = 0.95  # of what held: the rate of a bucket that was always empty is higher
_PRECISE_S = 5.0  # the rate of a bucket over so long is not blurred by jitter any more
_HELD = 2.0  # windows, and a second, without a refusal: the pace holds


@dataclass(frozen=True, slots=True)
class Context:
    """What was going on: paced since `paced_since` (None: freely), the last cycle since `cycle_start`."""

    log: Tally
    cycle_start: float
    paced_since: float | None
    jitter_s: float = 0.005
    slow_until: float = -math.inf  # before it less was sent than the limits allow
    is_patience_thin: bool = False


def learn(limits: list[Limit], episode: Episode, context: Context, now: float) -> None:
    """Change `limits` by what a finished episode says; they stay sorted by window."""
    wait_s = episode.gave_way - episode.began
    possible = [one for one in limits if wait_s <= _LONGER * one.window + 1.0]
    limit = max(possible, key=lambda one: _used(one, episode, context.log), default=None)
    if limit is None:
        limit = _new(limits, episode, context, now)
    else:
        _correct(limit, episode, context, now)
    if limit is not None:
        limit.seen += 1
        limit.last_seen = now
    limits.sort(key=lambda one: one.window)


def _used(limit: Limit, episode: Episode, log: Tally) -> float:
    return log.count(episode.began - limit.window, episode.began) / limit.n


def _new(limits: list[Limit], episode: Episode, context: Context, now: float) -> Limit | None:
    evidence = Evidence([episode], context.log, context.jitter_s)
    found = explain(evidence) or explain_last(evidence)
    if found is None:
        return None
    limit = Limit(found.n, found.window, kind=found.kind)
    limit.heard(episode)
    _take_up(limit, _bounded(found, limit, context), episode, context, now)
    limits.append(limit)
    return limit


def _bounded(found: Reading, limit: Limit, context: Context) -> Reading:
    """Return what was read, but not below what was delivered; nor above, where patience is thin."""
    last = limit.episodes[-1]
    first = _first_of_late(limit.episodes)
    if first is None and found.window >= _AT_LEAST_S:
        return found  # counted over all of its window
    rate = max(found.rate, _rate(context.log, first.gave_way, last.began, last.latest) if first else 0.0)
    if context.is_patience_thin:
        since = (
            max(first.resumed, context.slow_until)
            if first
            else max(context.log.first(), last.began - _AT_LEAST_S)
        )
        rate = min(rate, _rate(context.log, since - _INSTANT_S, last.began, last.earliest))
    if rate <= 0 or abs(rate / found.rate - 1) < _SAME:
        return found
    if found.kind is Kind.BUCKET:
        return Reading(found.kind, found.n, found.n / rate, 0.0)
    window = max(found.window, _AT_LEAST_S)
    return Reading(Kind.UNKNOWN, rate * window, window, 0.0)


def _first_of_late(episodes: Sequence[Episode]) -> Episode | None:
    """Return the first episode of those shortly before the last."""
    late = (one for one in episodes[:-1] if one.gave_way > episodes[-1].began - SPAN_S)
    return next(late, None)


def _rate(log: Tally, since: float, until: float, end: float) -> float:
    return log.count(since, until) / max(end - since, CANDIDATES[0])


def _take_up(limit: Limit, found: Reading, episode: Episode, context: Context, now: float) -> None:
    limit.n, limit.window, limit.kind = found.n, found.window, found.kind
    # What a sliding window holds when it refuses needs no end to be known.
    blur_s = 0.0 if found.kind is Kind.SLIDING else episode.blur_s
    counted = context.log.count(context.cycle_start, episode.began)  # true to one
    blur_s = max(blur_s, found.window / max(counted, 1.0))
    failed = limit.failed_rate * limit.window if _is_blurred(limit, episode) else math.inf
    limit.search(now, blur_s, failed)


def _correct(limit: Limit, episode: Episode, context: Context, now: float) -> None:
    paced_since = math.inf if context.paced_since is None else context.paced_since
    is_paced = episode.began >= paced_since + limit.window / 2
    resumed = max(limit.episodes[-1].resumed if limit.episodes else context.cycle_start, context.slow_until)
    has_held = limit.is_proven or episode.began - resumed >= _HELD * limit.window + 1.0
    limit.heard(episode)
    if is_paced:
        limit.is_soft = _is_little(limit, episode)
        if limit.kind is Kind.SLIDING and not limit.is_soft and not _is_blurred(limit, episode):
            limit.kind = Kind.FIXED
    if _refill(limit, context, now):
        return
    if limit.step and context.paced_since is not None:
        limit.probe_failed(now)
    elif is_paced and has_held:
        _correct_pace(limit, episode, context, now)
    elif limit.most < math.inf:
        _lower(limit, episode, context, now)
    elif has_held and limit.is_proven:
        _shrink(limit, episode, context)
    else:
        _read_again(limit, episode, context, now, is_paced=is_paced)


def _shrink(limit: Limit, episode: Episode, context: Context) -> None:
    """Keep the rate, and take the burst that was accepted."""
    rate = limit.rate
    limit.n = max(1.0, min(limit.n, context.log.count(episode.began - limit.window, episode.began)))
    limit.window = limit.n / rate


def _read_again(limit: Limit, episode: Episode, context: Context, now: float, *, is_paced: bool) -> None:
    if is_paced and not _is_little(limit, episode):
        limit.failed_rate = min(limit.failed_rate, limit.rate)
    evidence = _evidence(limit, context)
    found = explain(evidence)
    if found is not None:
        found = _bounded(found, limit, context)
        is_same = (found.n, found.window) == (limit.n, limit.window)
        _take_up(limit, found, episode, context, now)
        if is_same and is_paced and _is_little(limit, episode):
            _slow(limit, episode, context)
        return
    limit.kind = Kind.UNKNOWN
    if len(limit.episodes) > _UNEXPLAINED:
        limit.forget(episode.began)
    if is_paced:
        _lower(limit, episode, context, now)
    elif (last := explain_last(evidence, _delivered_rate(limit, episode, context))) is not None:
        _take_up(limit, _bounded(last, limit, context), episode, context, now)


def _refill(limit: Limit, context: Context, now: float) -> bool:
    """Where all episodes are those of a bucket, take its rate: each refusal tells it better."""
    if limit.kind not in (Kind.UNKNOWN, Kind.BUCKET) or limit.most < math.inf:
        return False
    found = explain_bucket(_evidence(limit, context))
    if found is None:
        return False
    # A burst that was seen before may come back, unless it is refused.
    failed_rate = limit.rate * (1 + limit.step)
    is_short_of = limit.step > 0 and found.rate < _SHORT_OF * limit.rate
    limit.n = max(found.n, limit.n) if limit.kind is Kind.BUCKET else found.n
    limit.window, limit.kind = limit.n / found.rate, found.kind
    if is_short_of:  # it was full for a while, at a pace below its rate
        limit.search(now, 0.0, failed_rate * limit.window)
    elif limit.episodes[-1].gave_way - limit.episodes[0].gave_way >= _PRECISE_S:
        limit.rest(now)
    else:
        limit.search(now, 0.0)
    return True


def _evidence(limit: Limit, context: Context) -> Evidence:
    return Evidence(
        limit.episodes, context.log, context.jitter_s, limit.failed_rate, limit.since, context.slow_until
    )


def _correct_pace(limit: Limit, episode: Episode, context: Context, now: float) -> None:
    end = episode.began if _is_blurred(limit, episode) else episode.gave_way
    used = context.log.count(end - limit.window, episode.began)
    # A window is judged only when all of it lies after the last pause.
    if 0 < used < _NEAR * limit.n - 1:
        limit.fall(now, used)
    elif _is_little(limit, episode):
        _slow(limit, episode, context)
    else:
        _lower(limit, episode, context, now)


def _slow(limit: Limit, episode: Episode, context: Context) -> None:
    delivered = _rate(context.log, context.cycle_start, episode.began, episode.gave_way)
    limit.slow(episode.gave_way - episode.began, delivered)


def _is_little(limit: Limit, episode: Episode) -> bool:
    """Whether the request was early by no more than a slot or so."""
    wait_s = episode.gave_way - episode.began
    return episode.blur_s < _INSTANT_S and wait_s <= _SLOTS / limit.rate


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
