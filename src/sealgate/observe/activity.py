"""What the last ten seconds were like: who spent what, how fast it was, and whether the exchange answers."""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import NamedTuple

from sealgate.exchange.clock import ClockStatus
from sealgate.orders.outcome import Batch, Conclusion, Outcome
from sealgate.venues.replies import Means, Verdict

SPAN = 20  # ticks that are remembered
_MOST = 100  # durations per tick: sorting thousands would hold the loop up for milliseconds
_IN_A_ROW = 3
_NO_CONNECTION = frozenset({"unreachable", "connect_timeout"})


class Tick:
    """What ended between two looks."""

    def __init__(self) -> None:
        self.sent: Counter[tuple[str, str]] = Counter()  # by key and bot
        self.added_s: deque[float] = deque(maxlen=_MOST)
        self.upstream_s: deque[float] = deque(maxlen=_MOST)
        self.limited: list[tuple[str, float]] = []  # the key, and when
        self.requests = 0


class Latency(NamedTuple):
    """Milliseconds that half and 99 of 100 stay under; None where nothing came."""

    added_p99_ms: float | None
    upstream_p50_ms: float | None
    upstream_p99_ms: float | None


class Activity:
    """A reader of outcomes that remembers the last ticks. It also notes which keys ever worked.

    `unsigned` returns the templates of routes that nobody signs: what they answer says nothing of a key.
    """

    def __init__(self, unsigned: Callable[[], frozenset[str]] = frozenset) -> None:
        self._unsigned = unsigned
        self._ticks: deque[Tick] = deque([Tick()], maxlen=SPAN)
        self.total = 0
        self.has_worked: set[str] = set()

    def __call__(self, batch: Batch) -> None:
        """Take a batch in."""
        tick, outcomes = self._ticks[-1], batch.outcomes
        self.total += len(outcomes)
        tick.requests += len(outcomes)
        for (bot, key, route, _, _, conclusion, _, attempts), alike in batch.kinds.items():
            if not attempts:
                continue
            tick.added_s.extend([one.added_s for one in alike])
            tick.upstream_s.extend([one.upstream_s for one in alike])
            if key is not None:
                tick.sent[key, bot or ""] += attempts * len(alike)
                if conclusion is Conclusion.DONE and route not in self._unsigned():
                    self.has_worked.add(key)
        for one in batch.rare:
            if one.key is not None:
                limited = (error.at for error in one.upstream_errors if error.verdict.is_limited)
                tick.limited.extend(zip(repeat(one.key), limited))

    def turn(self) -> Tick:
        """Begin a new tick and return the one that ended."""
        ended = self._ticks[-1]
        self._ticks.append(Tick())
        return ended

    @property
    def _ended(self) -> Sequence[Tick]:
        return list(self._ticks)[:-1]

    def sent(self, ticks: int = SPAN) -> Counter[tuple[str, str]]:
        """Return how many requests were sent in the latest ticks, by key and bot."""
        total: Counter[tuple[str, str]] = Counter()
        for tick in self._ended[-ticks:]:
            total.update(tick.sent)
        return total

    def requests(self) -> int:
        """Return how many requests ended in the last ticks."""
        return sum(tick.requests for tick in self._ended)

    @property
    def ticks(self) -> int:
        """How many have ended and are remembered."""
        return len(self._ended)

    def latency(self, ticks: int = SPAN) -> Latency:
        """Return how long the latest ticks took."""
        latest = self._ended[-ticks:]
        added = sorted(chain.from_iterable(tick.added_s for tick in latest))
        upstream = sorted(chain.from_iterable(tick.upstream_s for tick in latest))
        return Latency(
            _percentile_ms(added, 0.99), _percentile_ms(upstream, 0.5), _percentile_ms(upstream, 0.99)
        )


def _percentile_ms(durations_s: Sequence[float], part: float) -> float | None:
    """Return what a part of the sorted durations stays under."""
    return round(durations_s[round((len(durations_s) - 1) * part)] * 1000, 3) if durations_s else None


@dataclass(frozen=True, slots=True)
class Failing:
    """What failed since the last answer. Times are by the clock of `now`; `verdict` is the latest one's.

    `cause` has more words where there are any.
    """

    verdict: Verdict
    since: float
    last_at: float
    attempts: int
    cause: str | None


class Answering:
    """A reader of outcomes.

    It tells since when the exchange gives no answer, or only 5xx. One lost reply is no outage; some failures
    in a row, with no answer among them, are.
    """

    def __init__(self) -> None:
        self._failing: Failing | None = None

    def __call__(self, batch: Batch) -> None:
        """Take a batch in."""
        for outcome in batch.outcomes if self._failing is not None or batch.rare else ():
            if outcome.attempts and outcome.broken is None:
                self._failing = self._after(outcome)

    def _after(self, outcome: Outcome) -> Failing | None:
        """Return what fails after an outcome: nothing, where its last attempt was answered."""
        errors = outcome.upstream_errors
        if len(errors) < outcome.attempts or errors[-1].verdict.means is not Means.UNKNOWN:
            return None
        failed = [error for error in errors if error.verdict.means is Means.UNKNOWN]
        last = failed[-1]
        before = self._failing or Failing(last.verdict, failed[0].at, last.at, 0, None)
        cause = outcome.detail if outcome.reason else None
        attempts = before.attempts + len(failed)
        return replace(before, verdict=last.verdict, last_at=last.at, attempts=attempts, cause=cause)

    def failing(self, clock: ClockStatus, now: float) -> Failing | None:
        """Return what fails at `now`, None where it answers, or too little was asked to tell."""
        failing = self._failing
        if failing is None or failing.attempts < _IN_A_ROW or _was_reached_since(failing, clock, now):
            return None
        return failing


def _was_reached_since(failing: Failing, clock: ClockStatus, now: float) -> bool:
    """Whether the exchange's time was read since: then it can be reached, if nobody asks for more."""
    sampled_at = None if clock.age_s is None else now - clock.age_s
    return failing.verdict.kind in _NO_CONNECTION and sampled_at is not None and sampled_at > failing.last_at
