"""The pools of a key as a status has them, and the membership of a key in pools."""

from collections.abc import Iterable
from typing import Any

from sealgate.limits.membership import Membership, Subjects
from sealgate.limits.status import LimitStatus
from sealgate.observe.pools import KeyPool, PoolState
from sealgate.venues.limit_rules import ALL, PoolRule
from sealgate.venues.replies import Scope

KEY, ACCOUNT, ADDRESS = "x key 1", "x account 1", "x"


def pool(*limits: LimitStatus, **changes: Any) -> KeyPool:
    """Return a pool with these limits: the one that all requests pass, if nothing else is said.

    It is closed if it has a pause, or if nothing is left of it.
    """
    pause_s = max(changes.get("pause_s", 0.0), changes.get("spent_s", 0.0))
    usual: dict[str, Any] = {
        "pool": ALL,
        "of": "",
        "passes": "all requests",
        "is_whole": changes.get("pool", ALL) == ALL,
        "lanes": (),
        "is_shared": False,
        "state": PoolState.CLOSED if pause_s else PoolState.OPEN,
        "limits": limits,
    }
    return KeyPool(**usual | changes | {"pause_s": pause_s})


def only(*limits: LimitStatus, **changes: Any) -> tuple[KeyPool, ...]:
    """Return the only pool of a key."""
    return (pool(*limits, **changes),)


def member(*rules: PoolRule, is_open: bool = False) -> Membership:
    """Return the pools that requests of a key pass, or those without one."""
    subjects = Subjects(ADDRESS, ADDRESS, ADDRESS) if is_open else Subjects(KEY, ACCOUNT, ADDRESS)
    return Membership(rules or (PoolRule(ALL, Scope.KEY),), subjects, is_open=is_open)


def place(name: str, subject: str = KEY, of: str = "") -> str:
    """Return where a pool is."""
    return " | ".join(filter(None, (subject, name, of)))


def all_of(pools: Iterable[KeyPool]) -> dict[str, KeyPool]:
    """Return pools by their names for people."""
    return {one.label: one for one in pools}
