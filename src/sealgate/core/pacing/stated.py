"""Limits that are stated: in the configuration, or by the upstream in a reply's header fields.

Known fields: `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers), the older
`RateLimit-Limit`, `-Remaining` and `-Reset`, and the same with `X-`, whose reset may be epoch seconds. What
does not parse is left out: a limit that is misread is worse than one that is learned.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

_PARAMETER = re.compile(r";\s*([a-z]+)\s*=\s*(\d+)")
_EPOCH = 1e8  # a reset beyond this is a date, not seconds from now
_OLD = ("ratelimit-", "x-ratelimit-")


@dataclass(frozen=True, slots=True)
class Quota:
    """`n` per `window_s`; of it `left` until `reset_s` from now. What is not said is infinite or None."""

    n: float
    window_s: float = math.inf
    left: float | None = None
    reset_s: float | None = None


def parse_quota_fields(fields: Mapping[str, str], server_now: float) -> tuple[Quota, ...]:
    """Return what the fields (lower-case names) of a reply state; `server_now` is epoch seconds."""
    policies = [_parameters(item) for item in _items(fields.get("ratelimit-policy"))]
    quotas = [Quota(float(one["q"]), float(one["w"])) for one in policies if one.get("q") and one.get("w")]
    states = [_parameters(item) for item in _items(fields.get("ratelimit"))]
    quotas += [_left(float(one["r"]), float(one["t"])) for one in states if "r" in one and "t" in one]
    for prefix in _OLD:
        quotas += _old(fields, prefix, server_now)
    return tuple(quotas)


def _old(fields: Mapping[str, str], prefix: str, server_now: float) -> list[Quota]:
    left, reset = _number(fields.get(f"{prefix}remaining")), _number(fields.get(f"{prefix}reset"))
    if left is None or reset is None:
        return []
    return [_left(left, reset - server_now if reset > _EPOCH else reset)]


def _left(left: float, reset_s: float) -> Quota:
    return Quota(math.inf, left=left, reset_s=max(0.0, reset_s))


def _items(value: str | None) -> list[str]:
    return value.split(",") if value else []


def _parameters(item: str) -> dict[str, int]:
    return {name: int(number) for name, number in _PARAMETER.findall(item)}


def _number(text: str | None) -> float | None:
    try:
        number = float(text) if text is not None else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
