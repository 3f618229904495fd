"""What was sent and not refused, as running totals, so that any window is two bisections."""

from array import array
from bisect import bisect_left, bisect_right

_PRUNE_EVERY = 10_000  # entries; forgetting moves all of them, so it is done rarely
_MOST = 250_000  # entries, 8 MB: if more is sent within the horizon, the oldest is forgotten
_MOST_PUBLISHED = 1_000_000  # entries, 32 MB, which a published limit may take


class Tally:
    """The costs of some of the requests, by the time that they were sent; `totals[i]` is before entry i."""

    __slots__ = ("times", "totals")

    def __init__(self, times: "array[float]") -> None:
        self.times = times
        self.totals = array("d", (0.0,))

    def count(self, since: float, until: float | None = None) -> float:
        """Return the cost sent in (since, until]."""
        end = len(self.times) if until is None else bisect_right(self.times, until)
        return self.totals[end] - self.totals[min(bisect_right(self.times, since), end)]

    def room_since(self, room: float) -> float:
        """Return the earliest `since` for which count(since) is at most `room`."""
        index = bisect_left(self.totals, self.totals[-1] - room)
        return self.times[index - 1] if index else float("-inf")


class SentLog:
    """Costs by the time they were sent: of `all`, of reads and of `others`.

    Nothing older than `horizon_s` is kept for long, and never more than a bound; `reach` moves both.
    """

    def __init__(self, horizon_s: float) -> None:
        self._horizon_s = horizon_s
        self._times = array("d")
        self._most = _MOST
        self._prune_at = _PRUNE_EVERY
        self.all, self.reads, self.others = (Tally(self._times) for _ in range(3))
        self._reads = (self.all.totals, self.reads.totals)
        self._others = (self.all.totals, self.others.totals)

    def reach(self, window_s: float, n: float) -> None:
        """Keep as much as it takes to count up to `n` in a window that long."""
        self._horizon_s = max(self._horizon_s, window_s)
        self._most = max(self._most, min(int(n) + 1, _MOST_PUBLISHED))

    def add(self, at: float, cost: float, *, is_read: bool = False) -> None:
        """Add what was sent at `at`: now, or a moment ago, which is cheap because it is near the end."""
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
        """Remove what did not count; it is near the end, so this is cheap. Return whether it was there."""
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
        index = max(bisect_right(self._times, now - self._horizon_s), len(self._times) - self._most)
        for values in (self._times, self.all.totals, self.reads.totals, self.others.totals):
            del values[:index]
        self._prune_at = len(self._times) + _PRUNE_EVERY
