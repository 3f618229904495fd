"""What happened lately: the one reader of outcomes that page, stream, `/status.json` and `sealgate top` have.

It remembers the last ten seconds (who sent what, how fast), the latest requests, what went wrong, and whether
the exchange answers.
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final, NamedTuple

from sealgate.config.names import STRANGER
from sealgate.exchange.clock import ClockStatus
from sealgate.observe.redaction import redacted
from sealgate.observe.troubles import QUIET_S, RefusalCount, Trouble
from sealgate.orders.outcome import Conclusion, Outcome, UpstreamError
from sealgate.venues.replies import Means, Verdict
from sealgate.venues.routes import Lane

SPAN = 20  # ticks that are remembered
LATEST = 200  # requests that are kept as they are
_DURATIONS = 100  # per tick: sorting thousands would hold the loop up for milliseconds
_TROUBLES = 50
_IN_A_ROW = 3  # failures that make an outage: one lost reply is none
_NO_CONNECTION = frozenset({"unreachable", "proxy", "connect_timeout"})
_OF_THE_EXCHANGE = frozenset({"upstream_unreachable", "upstream_broken", "upstream_timeout"})
_DONE: Final = Conclusion.DONE
_ORDER: Final = Lane.ORDER


class Tick:
    """The requests that ended between two looks. `limited` has the key and time of each 429.

    `shared` counts those that were answered with the reply to an identical read.
    """

    def __init__(self) -> None:
        self.requests = self.shared = 0
        self.sent: Counter[tuple[str, str]] = Counter()  # by key and bot
        self.added_s: deque[float] = deque(maxlen=_DURATIONS)
        self.upstream_s: deque[float] = deque(maxlen=_DURATIONS)
        self.limited: list[tuple[str, float]] = []


class Latency(NamedTuple):
    """Milliseconds below which half, or 99 of 100, requests stay; None without requests."""

    added_p99_ms: float | None
    upstream_p50_ms: float | None
    upstream_p99_ms: float | None


@dataclass(frozen=True, slots=True)
class Failing:
    """The failures since the exchange's last answer. Times are readings of `System.now`.

    `verdict` is that of the latest failure; `cause` says more about it, None where nothing is known.
    """

    verdict: Verdict
    since: float
    last_at: float
    attempts: int
    cause: str | None


class Activity:
    """What went to one exchange lately: each tick of the last ten seconds, and whether it answers.

    `has_worked` are the keys that the exchange has accepted since the start. `limited` counts its 429s since
    then, the latest at `limited_at`, `limited_today` those of each key on this day, which begins at 0:00 UTC.
    `orders` has the latest order of each bot. `ticks` is how many there are at first, the running one
    included.
    """

    def __init__(self, ticks: int = 1) -> None:
        self.has_worked: set[str] = set()
        self.limited = 0
        self.limited_at: float | None = None
        self.limited_today: Counter[str] = Counter()
        self.orders: dict[str, Outcome] = {}
        self.latest = Tick()
        self.errors: Failing | None = None  # failures in a row, few or many
        self._before = 0  # requests before the latest tick
        self._ticks: deque[Tick] = deque((Tick() for _ in range(ticks - 1)), maxlen=SPAN)
        self._ticks.append(self.latest)

    @property
    def requests(self) -> int:
        """How many requests have ended since the start."""
        return self._before + self.latest.requests

    def turn(self) -> Tick:
        """Begin a new tick and return the one that ended."""
        ended, self.latest = self.latest, Tick()
        self._before += ended.requests
        self._ticks.append(self.latest)
        return ended

    def ended(self, ticks: int = SPAN) -> list[Tick]:
        """Return the latest ticks that have ended."""
        return list(self._ticks)[:-1][-ticks:]

    def sent(self, ticks: int = SPAN) -> Counter[tuple[str, str]]:
        """Return how many requests were sent in the latest ticks, by key and bot."""
        total: Counter[tuple[str, str]] = Counter()
        for tick in self.ended(ticks):
            total.update(tick.sent)
        return total

    def failed(self, outcome: Outcome) -> None:
        """Add the failures of a request to those before it, unless its last attempt was answered."""
        errors = outcome.upstream_errors
        if len(errors) < outcome.attempts or errors[-1].verdict.means is not Means.UNKNOWN:
            self.errors = None
            return
        failed = [error for error in errors if error.verdict.means is Means.UNKNOWN]
        last = failed[-1]
        before = self.errors or Failing(last.verdict, failed[0].at, last.at, 0, None)
        cause = outcome.detail if outcome.reason else None
        attempts = before.attempts + len(failed)
        self.errors = replace(before, verdict=last.verdict, last_at=last.at, attempts=attempts, cause=cause)

    def failing(self, clock: ClockStatus, now: float) -> Failing | None:
        """Return the failures of an exchange that gives no answer, None if it answers.

        It takes three in a row. If no connection could be made, but the exchange's time was read since, the
        exchange can be reached again, although no bot has asked for more.
        """
        failing = self.errors
        if failing is None or failing.attempts < _IN_A_ROW:
            return None
        was_reached = clock.age_s is not None and now - clock.age_s > failing.last_at
        return None if was_reached and failing.verdict.kind in _NO_CONNECTION else failing


class Recent:
    """A reader of outcomes. `unsigned` returns the templates of an exchange's routes that are not signed.

    The records of refusals are bounded by the bots, exchanges, lanes and reasons that there are.
    """

    def __init__(self, unsigned: Callable[[str], frozenset[str]] = lambda _: frozenset()) -> None:
        self.total = 0
        self.requests: deque[Outcome] = deque(maxlen=LATEST)  # nothing is made of one until somebody asks
        self._unsigned = unsigned
        self._ticks = 1
        self._day: int | None = None
        self._activities: dict[str, Activity] = {}
        self._troubles: OrderedDict[tuple[str, str, str], Trouble] = OrderedDict()
        self._refusals: dict[str, dict[tuple[str, Lane | None, str], RefusalCount]] = {}

    def at(self, exchange: str) -> Activity:
        """Return what went to an exchange, "" for requests that named none."""
        activity = self._activities.get(exchange)
        if activity is None:
            activity = self._activities[exchange] = Activity(self._ticks)
        return activity

    def take(self, outcomes: Sequence[Outcome], now: float) -> list[Trouble]:  # noqa: C901 - one loop over all requests
        """Take in requests that ended by `now`; return copies of the troubles that are due in the log."""
        self.total += len(outcomes)
        self.requests.extend(outcomes)
        due: list[Trouble] = []
        exchange, activity = None, None
        for one in outcomes:
            if activity is None or one.exchange is not exchange:  # mostly, all are of one
                exchange, activity = one.exchange, self.at(one.exchange)
            tick = activity.latest
            tick.requests += 1
            # 1. Its errors come before what it proves: the records say what was known when an error came.
            for error in one.upstream_errors:
                trouble = self._met(error, one, activity)
                if trouble.is_due:
                    due.append(replace(trouble))
                    trouble.unlogged, trouble.logged_at = 0, trouble.last_at
            # 2. What was sent shows how fast the exchange is, whether it answers, and which keys it accepts.
            if one.attempts:
                tick.added_s.append(one.added_s)
                tick.upstream_s.append(one.upstream_s)
                if one.key is not None:
                    tick.sent[one.key, one.bot or ""] += one.attempts
                if one.conclusion is _DONE and (self._troubles or one.key not in activity.has_worked):
                    self._accepted(one, activity, now)
                if one.broken is None and (activity.errors is not None or one.upstream_errors):
                    activity.failed(one)
            elif one.shared is not None:
                tick.shared += 1
            if one.lane is _ORDER and one.bot is not None:
                activity.orders[one.bot] = one
            # 3. What the gateway refused is counted against what the bot asked for meanwhile.
            if one.reason is not None or self._refusals:
                self._count_refusals(one, now)
        return due

    def _met(self, error: UpstreamError, outcome: Outcome, activity: Activity) -> Trouble:
        """Return the record of an error, now the latest one."""
        if error.verdict.is_limited and outcome.key is not None:
            activity.latest.limited.append((outcome.key, error.at))
            activity.limited, activity.limited_at = activity.limited + 1, error.at
            activity.limited_today[outcome.key] += 1
        exchange, key = outcome.exchange, outcome.key or ""
        trouble = self._troubles.pop((exchange, key, error.kind), None)
        if trouble is None:
            trouble = Trouble(exchange, key, error.verdict, "", 0, error.at, 0, error.at - QUIET_S)
        self._troubles[exchange, key, error.kind] = trouble
        if len(self._troubles) > _TROUBLES:
            self._troubles.popitem(last=False)
        trouble.verdict, trouble.last_at = error.verdict, error.at
        trouble.bot, trouble.lane, trouble.worked_at = outcome.bot or "", outcome.lane, None
        # A request that was sent again and then accepted also shows that the exchange accepts the key.
        was_mended = bool(outcome.resends) and outcome.conclusion is _DONE
        trouble.had_worked = was_mended or key in activity.has_worked
        trouble.clock_error_s, trouble.step_s = error.clock_error_s, error.step_s
        trouble.count += 1
        trouble.unlogged += 1
        return trouble

    def _accepted(self, outcome: Outcome, activity: Activity, now: float) -> None:
        key = outcome.key
        is_new = key is not None and key not in activity.has_worked
        if key is not None and is_new and outcome.route not in self._unsigned(outcome.exchange):
            activity.has_worked.add(key)
        for trouble in self._troubles.values():
            if trouble.worked_at is None and trouble.is_settled_by(outcome):
                trouble.worked_at = now

    def _count_refusals(self, outcome: Outcome, now: float) -> None:
        # If the exchange failed, the order may have executed, also if only its Idempotency-Key came again.
        reason = None if outcome.reason in _OF_THE_EXCHANGE else outcome.reason
        bot, exchange, lane = outcome.bot or STRANGER, outcome.exchange, outcome.lane
        if reason is not None:
            records = self._refusals.setdefault(bot, {})
            record = records.get((exchange, lane, reason))
            if record is None or record.over_since(now) is not None:
                record = RefusalCount(bot, exchange, lane, reason, now, now)
                records[exchange, lane, reason] = record
            record.refused += 1
            record.client = outcome.client
            record.user_agent = outcome.user_agent and redacted(outcome.user_agent)
            record.last_at, record.passed_at = now, None
        for record in self._refusals.get(bot, {}).values():
            if record.exchange in ("", exchange) and record.lane in (None, lane):
                record.asked += 1
                if reason is None and record.passed_at is None:
                    record.passed_at = now

    def turn(self, day: int = 0) -> dict[str, Tick]:
        """Begin a new tick and return those that ended, by exchange. `day` counts days of UTC."""
        if self._day not in (None, day):
            for activity in self._activities.values():
                activity.limited_today.clear()
        self._day = day
        self._ticks = min(self._ticks + 1, SPAN)
        return {exchange: activity.turn() for exchange, activity in self._activities.items()}

    @property
    def ticks(self) -> int:
        """How many ticks have ended, as many as are remembered."""
        return self._ticks - 1

    def ended(self, exchange: str | None = None, ticks: int = SPAN) -> list[Tick]:
        """Return the latest ticks of an exchange, or of all, that have ended."""
        activities = self._activities.values() if exchange is None else (self.at(exchange),)
        return [tick for activity in activities for tick in activity.ended(ticks)]

    def latency(self, exchange: str | None = None, ticks: int = SPAN) -> Latency:
        """Return how long the requests of the latest ticks took, to an exchange or to all."""
        latest = self.ended(exchange, ticks)
        added = sorted(chain.from_iterable(tick.added_s for tick in latest))
        upstream = sorted(chain.from_iterable(tick.upstream_s for tick in latest))
        return Latency(
            _percentile_ms(added, 0.99), _percentile_ms(upstream, 0.5), _percentile_ms(upstream, 0.99)
        )

    def troubles(self) -> list[Trouble]:
        """Return what went wrong at the exchange, the latest first."""
        return list(reversed(self._troubles.values()))

    def refusals(self) -> list[RefusalCount]:
        """Return what the gateway refused, the latest first."""
        records = [record for by_reason in self._refusals.values() for record in by_reason.values()]
        return sorted(records, key=lambda record: -record.last_at)


def _percentile_ms(durations_s: Sequence[float], part: float) -> float | None:
    """Return what a part of the sorted durations stays below."""
    return round(durations_s[round((len(durations_s) - 1) * part)] * 1000, 3) if durations_s else None
