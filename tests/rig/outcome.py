"""A record of a request, for tests of what reads such records."""

from typing import Any

from sealgate.orders.outcome import Conclusion, Outcome

_NOT_FIELDS = frozenset({"end", "is_plain", "times_limited"})
_FIELDS = [name for name in dir(Outcome("", "", 0.0)) if name[0] != "_" and name not in _NOT_FIELDS]


def changed(outcome: Outcome, **fields: Any) -> Outcome:
    """Return a copy with other fields."""
    copy = Outcome("", "", 0.0)
    for name in _FIELDS:
        setattr(copy, name, getattr(outcome, name))
    for name, value in fields.items():
        assert name in _FIELDS
        setattr(copy, name, value)
    times_s = copy.queue_s + copy.upstream_s + copy.bot_s
    if "total_s" in fields:
        copy.added_s = copy.total_s - times_s
    return copy


ANSWERED = changed(
    Outcome("r-1", "GET", 0.0),
    bot="grid",
    exchange="spot",
    key="main",
    route="/symbols/list",
    status=200,
    conclusion=Conclusion.DONE,
    attempts=1,
)
