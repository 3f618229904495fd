"""Limits as plain values, for the next lead, and the part of them that one gateway may use alone.

Unlike what the journal keeps over a restart (`pacing.memory`) these were believed a moment ago, so nothing is
taken off them.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from sealgate.core.pacing.limit import Limit
from sealgate.core.pacing.reading import Kind
from sealgate.core.pacing.sent_log import LimitScope
from sealgate.core.pacing.status import LimitStatus
from sealgate.core.sharing.plain import flag, number, positive, reading, text, whole

_CAREFUL = 0.8  # of a share, while nobody knows what the others do
_TRY_AFTER_S = 10.0  # a new lead looks for a while before it probes


def write_limits(limits: Iterable[Limit], now: float) -> list[dict[str, Any]]:
    """Return limits as plain values; a published height is None where there is none."""
    return [
        {
            "n": limit.n,
            "window": limit.window,
            "scope": int(limit.scope),
            "most": None if limit.most == math.inf else limit.most,
            "kind": limit.kind.value,
            "seen": limit.seen,
            "age": now - limit.last_seen if limit.seen else 0.0,
            "failed": None if limit.failed == math.inf else limit.failed,
            "next_step": limit.next_step,
            "rest": limit.rest_s,
            "is_proven": limit.is_proven,
            "is_soft": limit.is_soft,
        }
        for limit in limits
    ]


@dataclass(frozen=True, slots=True)
class SharedLimit:
    """What is known of the limit of all: as believed, as shown, requests at a time, and how many share it."""

    limits: tuple[Limit, ...] = ()
    statuses: tuple[LimitStatus, ...] = ()
    at_a_time: int | None = None
    replicas: int = 1


def write_shared(shared: SharedLimit, now: float) -> dict[str, Any]:
    """Return what the lead tells all of the limit, as plain values; how many share it, Redis counts."""
    return {
        "limits": write_limits(shared.limits, now),
        "statuses": [asdict(status) for status in shared.statuses],
        "at_a_time": shared.at_a_time,
    }


def read_shared(content: Any, now: float) -> SharedLimit:
    """Return what the lead told of the limit. Raises MessageError."""
    with reading():
        at_a_time = content["at_a_time"]
        return SharedLimit(
            tuple(read_limits(content["limits"], now)),
            tuple(_read_status(one) for one in content["statuses"]),
            None if at_a_time is None else whole(at_a_time),
        )


def _read_status(one: Mapping[str, Any]) -> LimitStatus:
    return LimitStatus(
        positive(one["n"]),
        positive(one["window_s"]),
        number(one["used_ratio"], 0),
        whole(one["seen"]),
        is_foreign_use=flag(one["is_foreign_use"]),
        words=text(one["words"]),
    )


def read_limits(plain: Sequence[Mapping[str, Any]], now: float) -> list[Limit]:
    """Return the limits, to be probed further after a while. Raises MessageError where one is none."""
    with reading():
        return [
            Limit(
                positive(one["n"]),
                positive(one["window"]),
                most=_height(one["most"]),
                scope=LimitScope(one["scope"]),
                kind=Kind(one["kind"]),
                seen=whole(one["seen"]),
                last_seen=now - number(one["age"]),
                failed=_height(one["failed"]),
                next_step=number(one["next_step"], 0),
                probe_at=now + _TRY_AFTER_S,
                rest_s=number(one["rest"], 0),
                is_proven=flag(one["is_proven"]),
                is_soft=flag(one["is_soft"]),
            )
            for one in plain
        ]


def shares(limits: Iterable[Limit], replicas: int, *, is_alone: bool) -> list[Limit]:
    """Return what one of so many gateways may use: a fair part, and less where it is alone with its guess.

    They are not probed beyond, as what is beyond belongs to the others.
    """
    part = (_CAREFUL if is_alone else 1.0) / replicas
    return [_share(limit, part) for limit in limits]


def _share(limit: Limit, part: float) -> Limit:
    n, window = limit.n * part, limit.window
    if n < 1.0:  # less than one request per window: one in a longer one
        n, window = 1.0, window / n
    share = Limit(n, window, most=n, scope=limit.scope, kind=limit.kind)
    return replace(share, seen=limit.seen, last_seen=limit.last_seen)


def _height(value: float | None) -> float:
    return math.inf if value is None else positive(value)
