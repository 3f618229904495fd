"""What was sent and not refused, as running totals, so that any window is two bisections."""

from array import array
from bisect import bisect_left, bisect_right
from enum import IntEnum

_PRUNE_EVERY = 10_000  # entries; forgetting moves all of them, so it is done rarely
_MOST = 250_000  # entries, 8 MB: where more is sent within the horizon, that is known to be no limit


class LimitScope(IntEnum):
    """What is counted: everything, or one class alone. The values are kept over restarts."""

    ALL = 0
    READS = 1
    OTHERS = 2

    def covers(self, *, is_read: bool) -> bool:
        """Whether a request of that class is counted."""
        return self is LimitScope.ALL or (self is LimitScope.READS) == is_read


class Tally:
    """The costs of some of the requests, by the time that they were sent; `totals[i]` is before entry i."""

    __slots__ = ("times", "totals")

    def __init__(self, times: "array[float]") -> None:
        self.times = times
        self.totals = array("d", (0.0,))

    def first(self) -> float:
        """Return the time of the oldest entry, infinity where there is none."""
        return self.times[0] if self.times else float("inf")

    def count(self, since: float, until: float | None = None) -> float:
        """Return the cost sent in (since, until]."""
        end = len(self.times) if until is None else bisect_right(self.times, until)
        return self.totals[end] - self.totals[min(bisect_right(self.times, since), end)]

    def room_since(self, room: float) -> float:
        """Return the earliest `since` for which count(since) is at most `room`."""
        index = bisect_left(self.totals, self.totals[-1] - room)
        return self.times[index - 1] if index else float("-inf")

    def most(self, window: float, since: float, until: float) -> float:
        """Return the most that was ever sent within `window` seconds, in (since, until]."""
        times, totals, found = self.times, self.totals, 0.0
        start = bisect_right(times, since)
        for index in range(start, bisect_right(times, until)):
            while start < index and times[start] <= times[index] - window:
                start += 1
            found = max(found, totals[index + 1] - totals[start])
        return found

    def most_beyond(self, rate: float, until: float, since: float) -> float:
        """Return the most that was sent up to `until` beyond `rate`, from any moment after `since` on."""
        times, totals = self.times, self.totals
        last = bisect_right(times, until)
        beyond = (
            totals[last] - totals[index] - rate * (until - times[index])
            for index in range(bisect_right(times, since), last)
        )
        return max(beyond, default=0.0)


class SentLog:
    """Costs by the time they were sent: of `all`, of reads and of `others`.

    Nothing older than `horizon_s` is kept for long, and never more than a bound.
    """

    def __init__(self, horizon_s: float) -> None:
        self._horizon_s = horizon_s
        self._times = array("d")
        self._prune_at = _PRUNE_EVERY
        self.all, self.reads, self.others = (Tally(self._times) for _ in range(3))
        self._tallies = (self.all, self.reads, self.others)  # by scope
        self._reads = (self.all.totals, self.reads.totals)
        self._others = (self.all.totals, self.others.totals)

    def of(self, scope: LimitScope) -> Tally:
        """Return the costs that are counted."""
        return self._tallies[scope]

    def add(self, at: float, cost: float, *, is_read: bool = False) -> None:
        """Take in what was sent at `at`: now, or a moment ago, which is cheap as it is near the end."""
        times = self._times
        if len(times) >= self._prune_at:
            self._prune(at)
        if times and at < times[-1]:
            self._insert(at, cost, is_read=is_read)
            return
        times.append(at)
        for totals in self._reads if is_read else self._others:
            totals.append(totals[-1] + cost)
        unchanged = (self.others if is_read else self.reads).totals
        unchanged.append(unchanged[-1])

    def _insert(self, at: float, cost: float, *, is_read: bool) -> None:
        index = bisect_right(self._times, at)
        self._times.insert(index, at)
        for totals in self._reads if is_read else self._others:
            totals[index + 1 :] = array("d", [total + cost for total in totals[index:]])
        unchanged = (self.others if is_read else self.reads).totals
        unchanged.insert(index, unchanged[index])

    def remove(self, at: float, cost: float, *, is_read: bool = False) -> bool:
        """Take back what did not count; it is near the end, so this is cheap. Say whether it was there."""
        own = (self.reads if is_read else self.others).totals
        index = bisect_left(self._times, at)
        while index < len(self._times) and self._times[index] == at:
            if own[index + 1] - own[index] == cost:
                del self._times[index]
                for totals in (self.all.totals, own):
                    totals[index + 1 :] = array("d", [total - cost for total in totals[index + 2 :]])
                other = (self.others if is_read else self.reads).totals
                del other[index + 1]
                return True
            index += 1
        return False

    def _prune(self, now: float) -> None:
        index = max(bisect_right(self._times, now - self._horizon_s), len(self._times) - _MOST)
        for values in (self._times, self.all.totals, self.reads.totals, self.others.totals):
            del values[:index]
        self._prune_at = len(self._times) + _PRUNE_EVERY
