"""What there is to see of the pacing: each belief, the evidence for it, and what would be tried next."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from sealgate.limits import OTHERS, READS, Limit, LimitEstimator, Step
from sealgate.machine.findings import span
from sealgate.venues.routes import Lane

_RECENTLY_S = 600.0  # for so long a fall counts as foreign use: by then the search has been there again


@dataclass(frozen=True, slots=True)
class LimitStatus:
    """One limit: `n` at once in `window_s` seconds, of which `used_ratio` is in use.

    In the long run it allows `low` to `high` per window; `high` is None where nothing is known above. `seen`
    counts the refusals while it was believed. `words` say all of that and the evidence for it, `next_step`
    what would be tried next, and why not yet.
    """

    n: float
    window_s: float
    used_ratio: float
    seen: int
    is_foreign_use: bool
    words: str
    low: float
    high: float | None
    next_step: str


@dataclass(frozen=True, slots=True)
class SharingStatus:
    """How many gateways share the limits, this one included; `degraded` says why not, None if they do."""

    replicas: int
    is_leader: bool
    degraded: str | None


@dataclass(frozen=True, slots=True)
class PoolStatus:
    """One pool. `at_a_time` limits the requests under way, if known.

    `spent_s` is for how long nothing is left of the limit, as a reply's header fields said. `is_banned`: its
    pause is a ban. `cost_per_s` is what was sent in the last ten seconds, as the limit counts it.
    """

    pause_s: float = 0.0
    limits: tuple[LimitStatus, ...] = ()
    at_a_time: int | None = None
    spent_s: float = 0.0
    is_banned: bool = False
    cost_per_s: float = 0.0


@dataclass(frozen=True, slots=True)
class PacerStatus:
    """All requests to one exchange: how many wait, by key, lane and bot, and the pools by place.

    Of a pool that is one for each route or parameter, those that are closed or were used last are there.
    `sharing` is None where the limits are not shared between gateways.
    """

    waiting: Mapping[tuple[str, Lane, str], int]
    pools: Mapping[str, PoolStatus]
    sharing: SharingStatus | None = None


def limit_statuses(estimator: LimitEstimator, now: float) -> tuple[LimitStatus, ...]:
    """Return what there is to see of each limit."""
    return tuple(
        LimitStatus(
            limit.n,
            limit.window,
            estimator.used(limit, now),
            limit.seen,
            is_foreign_use=now - limit.fell_at < _RECENTLY_S,
            words=in_words(limit, now, estimator.accepted_in_a_row),
            low=limit.low * limit.window,
            high=None if limit.high == math.inf else limit.high * limit.window,
            next_step=_next_in_words(limit, estimator.next_step(limit, now), now),
        )
        for limit in estimator.limits
    )


def in_words(limit: Limit, now: float, accepted_in_a_row: int = 0) -> str:
    """Return "60 to 61 per 3 s, from 7 refusals; last 2 min ago; refused at most one in 1,200".

    `accepted_in_a_row` counts the requests since the last refusal.
    """
    height = _height(limit.low, limit.high, limit)
    if limit.weights == READS:
        height += ", reads only"
    elif limit.weights == OTHERS:
        height += ", all but reads"
    elif limit.weights[0] != limit.weights[1]:
        height += f", an order costs as much as {limit.weights[1] / limit.weights[0]:g} reads"
    if limit.is_bucket:
        height += f", a token bucket of {_number(limit.n)}"
    refuted = f", which refutes the published {limit.refutes}" if limit.refutes else ""
    if limit.most < math.inf:
        height += f", stated by the exchange{refuted}" if refuted else ", published"
    if not limit.seen:
        return f"{height}, never refused yet"
    times = "1 refusal" if limit.seen == 1 else f"{limit.seen:,} refusals"
    if refuted and limit.most == math.inf:
        times += refuted.replace("refutes", "refute")
    evidence = f"{height}, from {times}; last {span(now - limit.last_seen)} ago"
    evidence += "; too old to hold requests back" if now >= limit.given_up_at else ""
    return f"{evidence}; refused at most one in {accepted_in_a_row:,}" if accepted_in_a_row else evidence


def _next_in_words(limit: Limit, step: Step | None, now: float) -> str:
    """Return the rate that is being tried, or the next one and its condition; "" if the search is over."""
    if limit.tried is not None:
        return f"trying {_height(limit.tried, limit.tried, limit)}, for {span(limit.next_at - now)} more"
    if step is None:
        return ""
    height = f"next: {_height(step.rate, step.rate, limit)}"
    if step.accepted:
        requests = "request" if step.accepted == 1 else "requests"
        return f"{height}, after {step.accepted:,} more accepted {requests}, to keep refusals rare"
    return (
        f"{height}, in {span(step.in_s)}, if requests wait"
        if step.in_s
        else f"{height}, as soon as requests wait"
    )


def _height(low: float, high: float, limit: Limit) -> str:
    """Return rates per second as requests per window."""
    height = _number(low * limit.window)
    if high == math.inf:
        height = f"at least {height}"
    elif (most := _number(high * limit.window)) != height:
        height += f" to {most}"
    return f"{height} per {_number(limit.window)} s"


def _number(value: float) -> str:
    """Return it to three digits at the least, with thousands parted."""
    digits = max(0, 2 - math.floor(math.log10(value)))
    return f"{value:,.{digits}f}".rstrip("0").rstrip(".") if digits else f"{value:,.0f}"
