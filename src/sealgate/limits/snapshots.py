"""Limits as plain values: for the journal, and for another gateway that takes over the pacing.

The times of a monotonic clock mean nothing elsewhere, so the last 429 is written as its age. What comes back
from the journal is believed as it held; but nobody knows what was sent just before the restart, so a part of
each window is kept back until it has passed.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

from sealgate.limits import Limit, LimitEstimator
from sealgate.limits.limit import OF_ONE_CLASS
from sealgate.limits.quotas import Quota
from sealgate.limits.status import in_words

Snapshot = list[dict[str, float]]

SHORT_PAUSE_S = 0.3  # over by the time that another run has begun
_TRUST = 0.8  # of a window is free after a restart
_TRY_AFTER_S = 10.0  # whoever takes over looks for a while before it tries more
_MOST_KEPT = 10  # more limits than any exchange stacks: a longer list is not ours
SMALLEST, LARGEST = 1e-9, 1e15  # of a limit's numbers: nobody means others, and sums of them may overflow
_NUMBERS = ("n", "window", "low", "reads", "others", "seen", "age", "step", "rest")


def write(limits: Iterable[Limit], now: float) -> Snapshot:
    """Return limits as plain values; what is infinite is left out."""
    return [_plain(limit, now) for limit in limits]


def _plain(limit: Limit, now: float) -> dict[str, float]:
    reads, others = limit.weights
    plain = {
        "n": limit.n,
        "window": limit.window,
        "low": limit.low,
        "reads": reads,
        "others": others,
        "is_bucket": limit.is_bucket,
        "is_held": limit.is_held,
        "seen": limit.seen,
        "age": now - limit.last_seen if limit.seen else 0.0,
        "step": limit.step,
        "rest": limit.rest_s,
    }
    bounds = {"high": limit.high, "most": limit.most}
    if limit.refutes is not None:
        bounds |= {"refuted": limit.refutes.n, "refuted_window": limit.refutes.window_s}
    return plain | {name: value for name, value in bounds.items() if value < math.inf}


def read(one: Mapping[str, float], now: float) -> Limit:
    """Return the limit that was written. Raises ValueError, KeyError or TypeError where there is none."""
    n, window, low, reads, others, seen, age_s, step, rest_s = (_number(one[name]) for name in _NUMBERS)
    most, high = (_number(one[name]) if name in one else math.inf for name in ("most", "high"))
    is_of_one_class = (reads, others) in OF_ONE_CLASS
    if min(n, window, low, step - 1, most, *(() if is_of_one_class else (reads, others))) < SMALLEST:
        raise ValueError("no limit")
    refutes = None
    if "refuted" in one:
        refutes = Quota(_number(one["refuted"]), _number(one["refuted_window"]))
        if min(refutes.n, refutes.window_s) < SMALLEST:
            raise ValueError("no limit that is refuted")
    return Limit(
        n,
        window,
        low,
        max(low, high),
        (reads, others),
        most,
        refutes,
        is_bucket=bool(one["is_bucket"]),
        is_held=bool(one["is_held"]),
        seen=int(seen),
        last_seen=now - age_s if seen else -math.inf,
        step=step,
        rest_s=rest_s,
        next_at=now + _TRY_AFTER_S,
    )


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LARGEST:
        raise ValueError(f"no number from 0: {value!r:.100}")
    return float(value)


def snapshot(limits: Iterable[Limit], now: float) -> Snapshot:
    """Return the learned limits as plain values; published ones come from where they are published."""
    return write((limit for limit in limits if limit.most == math.inf), now)


def paused(seconds: float) -> Snapshot:
    """Return what is kept of a pause with so much left, beside the limits: nothing of a short one."""
    return [{"pause": seconds}] if seconds > SHORT_PAUSE_S else []


def pause_s(kept: Sequence[Mapping[str, float]]) -> float:
    """Return what is left of the pause in a snapshot, 0 where there is none."""
    return max((_number(one["pause"]) for one in kept if "pause" in one), default=0.0)


def aged(one: Mapping[str, float], seconds: float) -> dict[str, float]:
    """Return one row of a snapshot, so much older. Raises ValueError where it is none."""
    if "pause" in one:
        return {"pause": max(0.0, _number(one["pause"]) - seconds)}
    if not _read_all([one], 0.0):
        raise ValueError("no limit")
    return {**one, "age": one["age"] + seconds}


def restore(estimator: LimitEstimator, kept: Sequence[Mapping[str, float]], now: float) -> None:
    """Let an estimator start from a snapshot; what is no limit is left out.

    Beside limits that are published only those are believed that refute one of them.
    """
    limits = _read_all(kept, now)
    for limit in limits:
        limit.withheld, limit.withheld_until = (1 - _TRUST) * limit.n, now + limit.window
    published = {limit.quota: limit for limit in estimator.limits if limit.most < math.inf}
    if published:
        limits = [limit for limit in limits if limit.refutes in published]
        refuted = {limit.refutes for limit in limits}
        limits += (limit for quota, limit in published.items() if quota not in refuted)
    estimator.believe(limits)


def kept_in_words(kept: Sequence[Mapping[str, float]], now: float) -> list[str]:
    """Return limits of a snapshot as `in_words` says them."""
    return [in_words(limit, now) for limit in _read_all(kept, now)]


def _read_all(kept: Sequence[Mapping[str, float]], now: float) -> list[Limit]:
    limits = []
    for one in kept[:_MOST_KEPT]:
        try:
            limits.append(read(one, now))
        except (ValueError, KeyError, TypeError):
            continue
    return limits
