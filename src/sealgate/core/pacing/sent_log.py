"""What was sent and not refused, as running totals, so that any window is two bisections."""

from bisect import bisect_left, bisect_right

_PRUNE_EVERY = 10_000  # entries; forgetting moves the whole list, so it is done rarely


class SentLog:
    """Whole costs by the time they were sent. Nothing older than `horizon_s` is kept for long."""

    def __init__(self, horizon_s: float) -> None:
        self._horizon_s = horizon_s
        self._times: list[float] = []
        self._prune_at = _PRUNE_EVERY
        self._totals: list[float] = [0.0]  # _totals[i] is the cost of all before entry i

    def add(self, at: float, cost: float) -> None:
        """Take in what was sent at `at`, which is not before the last entry."""
        if len(self._times) >= self._prune_at:
            self._prune(at)
        self._times.append(at)
        self._totals.append(self._totals[-1] + cost)

    def remove(self, at: float, cost: float) -> None:
        """Take back what did not count; it is near the end, so this is cheap. Unknown entries are ignored."""
        index = bisect_left(self._times, at)
        while index < len(self._times) and self._times[index] == at:
            if self._totals[index + 1] - self._totals[index] == cost:
                del self._times[index]
                self._totals[index + 1 :] = [total - cost for total in self._totals[index + 2 :]]
                return
            index += 1

    def count(self, since: float, until: float | None = None) -> float:
        """Return the cost sent in (since, until]."""
        end = len(self._times) if until is None else bisect_right(self._times, until)
        return self._totals[end] - self._totals[min(bisect_right(self._times, since), end)]

    def room_since(self, room: float) -> float:
        """Return the earliest `since` for which count(since) is at most `room`."""
        index = bisect_left(self._totals, self._totals[-1] - room)
        return self._times[index - 1] if index else float("-inf")

    def _prune(self, now: float) -> None:
        index = bisect_right(self._times, now - self._horizon_s)
        del self._times[:index]
        del self._totals[:index]
        self._prune_at = len(self._times) + _PRUNE_EVERY
