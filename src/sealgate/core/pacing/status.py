"""What there is to see of a key's pacing, and the learned limit in words."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from sealgate.core.pacing.limit import Limit
from sealgate.core.pacing.reading import Kind
from sealgate.core.pacing.sent_log import LimitScope
from sealgate.core.routes import Lane
from sealgate.core.spans import span

_RECENTLY_S = 600.0  # for so long a fall counts as foreign use: by then the search has been there again
_OF = {LimitScope.ALL: "", LimitScope.READS: ", reads only", LimitScope.OTHERS: ", all but reads"}


@dataclass(frozen=True, slots=True)
class LimitStatus:
    """One limit: `n` per `window_s` s, the part in use, how often it was met, and all of that in words."""

    n: float
    window_s: float
    used_ratio: float
    seen: int
    is_foreign_use: bool
    words: str


@dataclass(frozen=True, slots=True)
class SharingStatus:
    """How a key is shared: by so many gateways, this one included; `degraded` says why not, None if it is."""

    replicas: int
    is_lead: bool
    degraded: str | None


@dataclass(frozen=True, slots=True)
class PacerStatus:
    """One key. `waiting` counts by lane and bot; `at_a_time` limits the requests under way, if known.

    `spent_s` is for how long nothing is left of the limit, as a reply's header fields said.
    `sharing` is None where no other gateway is told of.
    """

    pause_s: float
    waiting: Mapping[tuple[Lane, str], int]
    limits: tuple[LimitStatus, ...]
    at_a_time: int | None
    spent_s: float = 0.0
    sharing: SharingStatus | None = None


def limit_status(limit: Limit, used_ratio: float, now: float) -> LimitStatus:
    """Return what there is to see of a limit."""
    return LimitStatus(
        limit.n,
        limit.window,
        used_ratio,
        limit.seen,
        is_foreign_use=now - limit.fell_at < _RECENTLY_S,
        words=in_words(limit, now),
    )


def in_words(limit: Limit, now: float) -> str:
    """Return "about 20 per 1 s, sliding, seen 14 times, last 429 3 min ago"."""
    height = f"{round(limit.n, 1):g} per {span(limit.window)}"
    known = "" if limit.kind is Kind.UNKNOWN else f", {limit.kind}"
    known += _OF[limit.scope]
    first = f"{height}{known}, published" if limit.most < math.inf else f"about {height}{known}"
    if not limit.seen:
        return f"{first}, not met yet"
    times = "once" if limit.seen == 1 else f"{limit.seen} times"
    return f"{first}, seen {times}, last 429 {span(now - limit.last_seen)} ago"
