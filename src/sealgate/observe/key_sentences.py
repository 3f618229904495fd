"""Keys and their pools in words: a part of the sentences of a picture."""

import math
from collections.abc import Mapping, Sequence
from heapq import nlargest
from typing import Any

from sealgate.machine.findings import span
from sealgate.observe.evidence import FOREIGN_USE
from sealgate.observe.pools import PoolState
from sealgate.observe.units import BAD, WARN, counted, number, percent, rate

Figures = Mapping[str, Any]

_MOST_POOLS = 8  # of a key that are shown one by one


def key_words(name: str, key: Figures) -> dict[str, Any]:
    """Return what holds a key now, its limit in a sentence, and what that is known from.

    `uses` are the limits of its only pool, with height and use; of a key with several, `pools` are those of
    which there is most to tell, and `more` says how many more there are.
    """
    has_pools, about = key["has_pools"], ["" if key["pause_s"] else key["closed"]]
    evidence = []
    for limit in () if has_pools else key["limits"]:
        evidence += [limit["words"], limit["is_foreign_use"] and FOREIGN_USE, limit["next_step"]]
    if key["at_a_time"] is not None and not has_pools:
        about.append(f"at most {key['at_a_time']} at a time")
    if (sharing := key["sharing"]) and not sharing["degraded"]:
        others = sharing["replicas"] > 1
        about.append(
            f"shared by {sharing['replicas']} gateways" if others else "sharing on, no other gateway yet"
        )
    pools = most_urgent(key["pools"], key["more_pools"]) if has_pools else []
    return {
        "name": name,
        "state": _state(key),
        "limit": _limit(key),
        "about": "; ".join(filter(None, about)),
        "evidence": "; ".join(filter(None, evidence)),
        "uses": [] if has_pools else [_use(limit) for limit in key["limits"]],
        "pools": list(map(pool_words, pools)),
        "more": _more(key, pools) if has_pools else "",
    }


def _limit(key: Figures) -> str:
    """Return "about 20/s · 3 refusals today"."""
    today = key["limited_today"]
    refusals = counted(today, "refusal") if today else "no refusal"
    fullest = fullest_of(key)
    if fullest is None:
        return f"limit not known yet, learned from 429s · {refusals} today"
    if key["has_pools"]:
        rates = f"{label_of(fullest)}: {rate(fullest)}"
    else:
        rates = " and ".join(map(rate, key["limits"]))
    return f"{rates} · {refusals} today"


def _state(key: Figures) -> str:
    """Return what holds a key now, "" if nothing does."""
    if key["pause_s"] > 0:
        if is_banned(key):
            return f"banned, {span(math.ceil(key['pause_s']))} left"
        return f"paused, {number(key['pause_s'], 1)} s left"
    if key["closed"]:
        return f"{counted(closed_pools(key), 'pool')} closed"
    if key["spent_s"] > 0:
        return f"limit used up (exchange), {number(key['spent_s'], 1)} s left"
    return ""


def is_banned(key: Figures) -> bool:
    """Whether the exchange has banned a key, or the address that it is used from."""
    return key["pause_s"] > 0 and any(pool["state"] == PoolState.BANNED for pool in key["pools"])


def closed_pools(key: Figures) -> int:
    """Count the pools of a key that are closed; an only one is not told apart from its key."""
    return sum(bool(pool["closed"]) for pool in key["pools"]) if key["has_pools"] else 0


def most_urgent(pools: Sequence[Figures], more: int = 0) -> list[Figures]:
    """Return pools in their order; of many, those that are closed, nearly full, or at least known."""
    if len(pools) + more <= _MOST_POOLS:
        return list(pools)
    told = [at for at, pool in enumerate(pools) if pool["closed"] or pool["limits"]]
    urgent = nlargest(_MOST_POOLS, told, lambda at: (bool(pools[at]["closed"]), _ratio(pools[at])))
    return [pools[at] for at in sorted(urgent)]


def _ratio(pool: Figures) -> float:
    return max((float(limit["used_ratio"]) for limit in pool["limits"]), default=-1.0)


def _more(key: Figures, shown: Sequence[Figures]) -> str:
    """Say how many pools of a key are not shown, "" where all are."""
    count = key["more_pools"] + len(key["pools"]) - len(shown)
    closed = closed_pools(key) - sum(bool(pool["closed"]) for pool in shown)
    are = f"{number(closed)} of them closed" if closed else "open" if count == 1 else "all open"
    if not shown:
        return f"{counted(count, 'pool')}, {are}"
    return f"and {counted(count, 'more pool')}, {are}" if count else ""


def pool_words(pool: Figures, *, is_of_key: bool = True) -> dict[str, Any]:
    """Return a pool: its fullest limit with height and use, and what else is known of it."""
    fullest = fullest_of(pool)
    use: dict[str, Any] = {"ratio": None, "text": "limit not known yet"}
    if fullest is not None:
        use = _use(fullest)
    about = [pool["passes"], is_of_key and pool["is_shared"] and "all keys share it"]
    for limit in pool["limits"]:
        about += [limit["words"], limit["is_foreign_use"] and FOREIGN_USE, limit["next_step"]]
    if pool["at_a_time"] is not None:
        about.append(f"at most {pool['at_a_time']} at a time")
    mood = BAD if pool["state"] == PoolState.BANNED else WARN if pool["closed"] else ""
    about_it = "; ".join(filter(None, about))
    return {"name": label_of(pool), "state": pool["closed"], "mood": mood, "about": about_it} | use


def _use(limit: Figures) -> dict[str, Any]:
    """Return how much of a limit is used, in words too."""
    return {"ratio": limit["used_ratio"], "text": f"{percent(limit['used_ratio'])} of {rate(limit)}"}


def label_of(pool: Figures) -> str:
    """Return a pool's name for people, with what it is for."""
    return f"{pool['pool']} {pool['of']}" if pool["of"] else str(pool["pool"])


def fullest_of(one: Figures) -> Figures | None:
    """Return the fullest limit of a key or a pool, None where none is known."""
    limit: Figures | None = max(one["limits"], key=lambda limit: limit["used_ratio"], default=None)
    return limit
