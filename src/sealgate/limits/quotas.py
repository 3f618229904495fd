"""Limits that are stated: in the configuration, or by the upstream in a reply's header fields.

Known fields: `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers), the older
`RateLimit-Limit`, `-Remaining` and `-Reset`, and the same with `X-`, whose reset may be a time of
the epoch. What does not parse or cannot be meant is left out: a limit that is misread is worse than one that
is learned.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from sealgate.venues.server_time import epoch_seconds

_PARAMETER = re.compile(r";\s*([a-z]+)\s*=\s*(\d+)")
_UNIT = re.compile(r";\s*qu\s*=\s*\"?([^;\"\s]*)")
_ITEM = re.compile(r'(?:[^,"]|"[^"]*"?)+')
_DIGITS = 9  # of a count or a number of seconds; more cannot be meant
_LONGEST_S = 3600.0  # a longer one may be of another thing, withdrawals say, and would stop all for as long
_LONGEST_NAME = 64
_MOST_ITEMS = 20  # of a field: an exchange that states more of them means none of them
_OLD = ("ratelimit-", "x-ratelimit-")


@dataclass(frozen=True, slots=True)
class Quota:
    """`n` per `window_s`; of it `left` until `reset_s` from now. What is not said is infinite or None.

    `name` tells apart what the upstream counts: of each count what was said last holds. If `is_least`, more
    than `n` may be granted: so many were. `pool` is the name of the pool that it speaks of, "" where that is
    not said.
    """

    n: float
    window_s: float = math.inf
    left: float | None = None
    reset_s: float | None = None
    name: str = ""
    pool: str = ""
    is_least: bool = False

    def __str__(self) -> str:
        """Return a published limit as the configuration writes it: "1200/60s"."""
        return f"{self.n}/{self.window_s:.12g}s"


def parse_quota_fields(fields: Mapping[str, str], server_now: float) -> tuple[Quota, ...]:
    """Return what the fields (lower-case names) of a reply state; `server_now` is epoch seconds."""
    policies = [(_name(item), item, _parameters(item)) for item in _items(fields.get("ratelimit-policy"))]
    # A policy may count bytes, or what is under way at a time: that is no number of requests.
    others = {name for name, item, _ in policies if (unit := _UNIT.search(item)) and unit[1] != "requests"}
    quotas = [
        Quota(float(one["q"]), float(one["w"]), name=name)
        for name, _, one in policies
        if one.get("q") and 0 < one.get("w", 0) <= _LONGEST_S and name not in others
    ]
    states = [(_name(item), _parameters(item)) for item in _items(fields.get("ratelimit"))]
    quotas += [
        _left(float(one["r"]), float(one["t"]), name)
        for name, one in states
        if "r" in one and one.get("t", math.inf) <= _LONGEST_S and name not in others
    ]
    for prefix in _OLD:
        quotas += _old(fields, prefix, server_now)
    return tuple(quotas)


def _old(fields: Mapping[str, str], prefix: str, server_now: float) -> list[Quota]:
    left, reset = _number(fields.get(f"{prefix}remaining")), _number(fields.get(f"{prefix}reset"))
    if left is None or reset is None:
        return []
    ends = epoch_seconds(reset)
    reset_s = reset if ends is None else ends - server_now
    return [_left(left, reset_s, prefix)] if reset_s <= _LONGEST_S else []


def _left(left: float, reset_s: float, name: str) -> Quota:
    return Quota(math.inf, left=left, reset_s=max(0.0, reset_s), name=name)


def _items(value: str | None) -> list[str]:
    found = _ITEM.finditer(value.replace("\n", ",")) if value else ()
    return [item[0] for item in islice(found, _MOST_ITEMS)]


def _name(item: str) -> str:
    return item.partition(";")[0].strip()[:_LONGEST_NAME]


def _parameters(item: str) -> dict[str, int]:
    return {name: int(number) for name, number in _PARAMETER.findall(item) if len(number) <= _DIGITS}


def _number(text: str | None) -> float | None:
    try:
        number = float(text.partition("\n")[0]) if text is not None else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
