"""What replies state to be left of the exchange's own counts, until each begins anew."""

from collections.abc import Iterable
from typing import NamedTuple

from sealgate.limits.quotas import Quota

_MOST_COUNTS = 8  # that are kept: those with the least left


class _Count(NamedTuple):
    """What is left of one count until then, by the latest reply and what was sent since."""

    left: float
    until: float


class StatedCounts:
    """The exchange's counts by their names."""

    def __init__(self) -> None:
        self._counts: dict[str, _Count] = {}

    def take_in(self, quotas: Iterable[Quota], in_flight: int, now: float) -> None:
        """Take in what a reply states. Nobody knows whether it counts what is in flight: it does not."""
        counts = {name: count for name, count in self._counts.items() if count.until > now}
        stated = [
            (one.left, one.reset_s, one.name)
            for one in quotas
            if one.left is not None and one.reset_s is not None
        ]
        # Of several with one name the smallest remainder counts.
        for left, reset_s, name in sorted(stated, key=lambda one: one[0], reverse=True):
            counts[name] = _Count(left - in_flight, now + reset_s)
        self._counts = dict(sorted(counts.items(), key=lambda item: item[1].left)[:_MOST_COUNTS])

    def send(self, cost: float) -> None:
        """Take what is sent off every count."""
        for name, count in self._counts.items():
            self._counts[name] = count._replace(left=count.left - cost)

    def room_at(self, cost: float, now: float) -> float:
        """Return when every count has room for that cost: `now`, or later."""
        at = now
        for one in self._counts.values():
            if one.left < cost and one.until > at:
                at = one.until
        return at

    def spent_s(self, now: float) -> float:
        """Return for how many seconds nothing is left of a count, 0 if something is left of each."""
        if not self._counts:
            return 0.0
        return max(
            (one.until - now for one in self._counts.values() if one.left < 1.0 and one.until > now),
            default=0.0,
        )

    def forget(self) -> None:
        """Forget all counts."""
        self._counts = {}
