"""What is kept over a restart: the limits, as plain values.

They are trusted slowly: pacing starts below what held, and the search for the true height ends at it,
unless the upstream refuses before. The times of a monotonic clock mean nothing after a restart, so the last
429 is kept as its age.
"""

import math
from collections.abc import Mapping, Sequence

from sealgate.core.pacing.limit import Limit
from sealgate.core.pacing.sent_log import LimitScope
from sealgate.core.pacing.status import in_words

Snapshot = list[dict[str, float]]

_TRUST = 0.8  # of what held
_MOST_KEPT = 10  # more limits than any exchange stacks: a longer list is not ours


def snapshot(limits: Sequence[Limit], now: float) -> Snapshot:
    """Return the learned limits as plain values; published ones come from where they are published."""
    return [
        {
            "n": limit.n,
            "window": limit.window,
            "scope": limit.scope,
            "seen": limit.seen,
            "age": now - limit.last_seen,
        }
        for limit in limits
        if limit.most == math.inf
    ]


def restore(kept: Sequence[Mapping[str, float]], now: float) -> list[Limit]:
    """Return limits from a snapshot; what is not plausible is left out."""
    return [_restored(one, now) for one in kept[:_MOST_KEPT] if _is_plausible(one)]


def kept_in_words(kept: Sequence[Mapping[str, float]], now: float) -> list[str]:
    """Return limits of a snapshot as `in_words` says them, as they held."""
    return [in_words(_as_kept(one, 1.0, now), now) for one in kept[:_MOST_KEPT] if _is_plausible(one)]


def _is_plausible(one: Mapping[str, float]) -> bool:
    values = [one.get(name) for name in ("n", "window", "scope", "seen", "age")]
    numbers = [value for value in values if isinstance(value, int | float) and math.isfinite(value)]
    is_sound = len(numbers) == len(values) and min(numbers[:2]) > 0 and min(numbers) >= 0
    return is_sound and one["scope"] in tuple(LimitScope)


def _as_kept(one: Mapping[str, float], trust: float, now: float) -> Limit:
    scope, seen, last_seen = LimitScope(int(one["scope"])), int(one["seen"]), now - one["age"]
    return Limit(trust * one["n"], one["window"], scope=scope, seen=seen, last_seen=last_seen)


def _restored(one: Mapping[str, float], now: float) -> Limit:
    limit = _as_kept(one, _TRUST, now)
    # Twice as far as it held, as the search halves the bracket: its first step ends where it held.
    limit.search(now, 0.0, limit.n * (2 / _TRUST - 1))
    return limit
