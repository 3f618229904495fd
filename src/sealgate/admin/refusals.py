"""The gateway's own refusals, by bot, lane and reason: "watcher: 42 of 42 reads refused: deadline_exceeded".

A record counts from its first refusal until it is over: until a minute passed without another one, and a
request of the same bot and lane was not refused since. Errors of the exchange are in troubles.py.
"""

from dataclasses import dataclass

from sealgate.core.outcome import Batch, Outcome
from sealgate.core.routes import Lane

QUIET_S = 60.0
STRANGER = "unknown"  # a client that is no known bot, as in the metrics
_MANY = 3  # fewer say nothing about a bot
_OF_THE_EXCHANGE = frozenset({"upstream_unreachable", "upstream_broken", "upstream_timeout"})


@dataclass(slots=True)
class Refused:
    """Requests of one bot and lane that were refused for one reason.

    `lane` is None where a request was refused before its route was known. `asked` counts the requests of that
    bot and lane since `first_at`, refused ones too. Times are by the clock of `now`; `passed_at` is when the
    first request since `last_at` was not refused, None without one.
    """

    bot: str
    lane: Lane | None
    reason: str
    first_at: float
    last_at: float
    refused: int = 0
    asked: int = 0
    passed_at: float | None = None

    def over_since(self, now: float) -> float | None:
        """Return since when it is over, None while it goes on. No request of a stranger ever passes."""
        if now - self.last_at < QUIET_S:
            return None
        return self.last_at if self.bot == STRANGER else self.passed_at

    def is_grave(self, now: float) -> bool:
        """Return whether most requests of a known bot are refused, so that people should be told."""
        is_most = self.refused >= _MANY and 2 * self.refused >= self.asked
        return is_most and self.bot != STRANGER and self.over_since(now) is None

    @property
    def words(self) -> str:
        """Return how much of what the bot asked for was refused, and why."""
        what = self.lane.value if self.lane else "request"
        is_stranger = self.bot == STRANGER
        count = f"{self.refused}" if is_stranger else f"{self.refused} of {self.asked}"
        is_one = (self.refused if is_stranger else self.asked) == 1
        return f"{self.bot}: {count} {what}{'' if is_one else 's'} refused: {self.reason}"


class Refusals:
    """A reader of outcomes. Its records are bounded by the bots, lanes and reasons that there are."""

    def __init__(self) -> None:
        self._by_bot: dict[str, dict[tuple[Lane | None, str], Refused]] = {}

    def __call__(self, batch: Batch, now: float) -> None:
        """Take in a batch that ended at `now`."""
        for outcome in batch.outcomes if self._by_bot or batch.rare else ():
            bot = outcome.bot or STRANGER
            reason = _reason(outcome)
            if reason is not None:
                self._refuse(bot, outcome.lane, reason, now)
            if bot in self._by_bot:
                self._count(bot, outcome.lane, now, is_refused=reason is not None)

    def latest(self) -> list[Refused]:
        """Return the records, the latest first."""
        records = [record for by_reason in self._by_bot.values() for record in by_reason.values()]
        return sorted(records, key=lambda record: -record.last_at)

    def _refuse(self, bot: str, lane: Lane | None, reason: str, now: float) -> None:
        records = self._by_bot.setdefault(bot, {})
        record = records.get((lane, reason))
        if record is None or record.over_since(now) is not None:
            record = records[lane, reason] = Refused(bot, lane, reason, now, now)
        record.refused += 1
        record.last_at, record.passed_at = now, None

    def _count(self, bot: str, lane: Lane | None, now: float, *, is_refused: bool) -> None:
        for record in self._by_bot[bot].values():
            if record.lane in (None, lane):
                record.asked += 1
                if not is_refused and record.passed_at is None:
                    record.passed_at = now


def _reason(outcome: Outcome) -> str | None:
    """Return why the gateway refused it, None where it did not, or where the exchange failed."""
    is_passed_on = outcome.reason in _OF_THE_EXCHANGE and outcome.upstream_errors
    return None if is_passed_on else outcome.reason
