"""Which limit an episode speaks of: one that is known, a longer one beside it, or one on a class alone.

Among the limits that count the request, the fullest is the one that refused, unless its window is far
shorter than the wait. A limit is added only where no single window explains all that was refused: first its
window is taken to have been another. Reads and the rest get limits of their own once no count of both fits,
and a common one again if none of their own does.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sealgate.core.pacing.classes import read_apart, read_together
from sealgate.core.pacing.episode import Episode
from sealgate.core.pacing.explain import explain, explain_last
from sealgate.core.pacing.lesson import Lesson
from sealgate.core.pacing.limit import Limit
from sealgate.core.pacing.reading import Evidence, Reading
from sealgate.core.pacing.sent_log import LimitScope, SentLog

_LONGER = 1.5  # a wait beyond this many windows (and a second, for rounding) is that of a longer, stacked one


@dataclass(frozen=True, slots=True)
class Context:
    """What was sent, the episodes of late with this one, and how true all that is."""

    log: SentLog
    recent: Sequence[Episode]
    jitter_s: float = 0.005
    slow_until: float = -math.inf  # before it less was sent than the limits allow
    is_patience_thin: bool = False


def learn(limits: list[Limit], episode: Episode, context: Context, now: float) -> None:
    """Change `limits` by what a finished episode says; they stay sorted by window."""
    limit = _refuser(limits, episode, context)
    if limit is None:
        limit = _widened(limits, episode, context, now) or _new(limits, episode, context, now)
    else:
        _lesson(limit, episode, context, now).correct()
    if limit is not None:
        limit.met(now)
    _classify(limits, episode, context, now)
    for one in limits:
        if one.scope.covers(is_read=episode.is_read):
            one.cycle_start = episode.gave_way
    limits.sort(key=lambda one: (one.window, one.scope))


def _lesson(limit: Limit, episode: Episode, context: Context, now: float) -> Lesson:
    log = context.log.of(limit.scope)
    return Lesson(limit, episode, log, now, context.jitter_s, context.slow_until, context.is_patience_thin)


def _refuser(limits: Sequence[Limit], episode: Episode, context: Context) -> Limit | None:
    possible = [
        one
        for one in limits
        if one.scope.covers(is_read=episode.is_read) and episode.wait_s <= _LONGER * one.window + 1.0
    ]
    return max(possible, key=lambda one: _used(one, episode, context.log), default=None)


def _used(limit: Limit, episode: Episode, log: SentLog) -> float:
    return log.of(limit.scope).count(episode.began - limit.window, episode.began) / limit.n


def _widened(limits: Sequence[Limit], episode: Episode, context: Context, now: float) -> Limit | None:
    """Return the limit of the longest window, if its window was another, so that it explains this one too."""
    learned = [one for one in limits if one.most == math.inf and one.scope.covers(is_read=episode.is_read)]
    limit = max(learned, key=lambda one: one.window, default=None)
    if limit is None:
        return None
    lesson = _lesson(limit, episode, context, now)
    found = explain(lesson.evidence([*limit.episodes, episode]))
    if found is None or found.window <= limit.window:
        return None
    limit.heard(episode)
    lesson.take_up(found)
    return limit


def _new(limits: list[Limit], episode: Episode, context: Context, now: float) -> Limit | None:
    scopes = {one.scope for one in limits} - {LimitScope.ALL}
    own = LimitScope.READS if episode.is_read else LimitScope.OTHERS
    scope = own if scopes else LimitScope.ALL
    evidence = Evidence([episode], context.log.of(scope), context.jitter_s)
    found = explain(evidence) or explain_last(evidence)
    if found is None:
        return None
    limit = Limit(found.n, found.window, scope=scope, kind=found.kind)
    limit.heard(episode)
    lesson = _lesson(limit, episode, context, now)
    lesson.take_up(lesson.bounded(found))
    limits.append(limit)
    return limit


def _classify(limits: list[Limit], episode: Episode, context: Context, now: float) -> None:
    """Put one limit on each class in the place of one on both, or the other way round."""
    learned = [one for one in limits if one.most == math.inf]
    apart = [one for one in learned if one.scope is not LimitScope.ALL]
    readings: dict[LimitScope, Reading] = {}
    if apart:
        together = read_together(context.recent, context.log, context.jitter_s)
        if together:
            readings = {LimitScope.ALL: together}
    elif len(learned) == 1:  # stacked limits do not fit one count either
        readings = read_apart(context.recent, context.log, context.jitter_s)
    if not readings:
        return
    for one in apart or learned:
        limits.remove(one)
    for scope, found in readings.items():
        episodes = [one for one in context.recent if scope.covers(is_read=one.is_read)]
        limit = Limit(found.n, found.window, scope=scope, kind=found.kind, episodes=episodes)
        limit.met(now)
        _lesson(limit, episode, context, now).take_up(found)
        limits.append(limit)
