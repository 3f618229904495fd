"""What is known of a limit that several gateways share, and the part of it that one of them may use alone."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sealgate.core.limits import Limit, memory
from sealgate.core.limits.status import LimitStatus
from sealgate.core.sharing.plain import flag, number, positive, reading, text, whole

_CAREFUL = 0.8  # of a share, while nobody knows what the others do


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
        "limits": memory.write(shared.limits, now),
        "statuses": [asdict(status) for status in shared.statuses],
        "at_a_time": shared.at_a_time,
    }


def read_shared(content: Any, now: float) -> SharedLimit:
    """Return what the lead told of the limit, believed as it was a moment ago. Raises MessageError."""
    with reading():
        at_a_time = content["at_a_time"]
        return SharedLimit(
            tuple(memory.read(one, now) for one in content["limits"]),
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
        low=positive(one["low"]),
        high=None if one["high"] is None else positive(one["high"]),
        next_step=text(one["next_step"]),
    )


def shares(limits: Iterable[Limit], replicas: int, *, is_alone: bool) -> list[Limit]:
    """Return what one of so many gateways may use: a fair part, and less where it is alone with its guess.

    They are not probed beyond, as what is beyond belongs to the others.
    """
    part = (_CAREFUL if is_alone else 1.0) / replicas
    return [_share(limit, part) for limit in limits]


def _share(limit: Limit, part: float) -> Limit:
    n, window, rate = limit.n * part, limit.window, limit.low * part
    if n < 1.0:  # less than one request per window: one in a longer one
        n, window = 1.0, window / n
    return Limit(
        n,
        window,
        rate,
        rate,
        limit.weights,
        most=rate,
        is_bucket=limit.is_bucket,
        seen=limit.seen,
        last_seen=limit.last_seen,
    )
