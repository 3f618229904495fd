"""What went wrong lately, for the page and the log: one record for each kind, however often it came.

A record is over once the same worked: a request with the same key in the same lane was accepted since, of the
same bot where the cause was what that one asked for. What comes and goes is over only after a quiet minute.

The log gets a line when a kind comes up, and from then on at most one a minute with the number since the last
one: an exchange that is down must not fill a disk.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass

import structlog

from sealgate.config.names import STRANGER
from sealgate.observe.evidence import Known, advice, evidence
from sealgate.observe.log import redacted
from sealgate.orders.outcome import Batch, Conclusion, Outcome, UpstreamError
from sealgate.venues.replies import Verdict, Whose, doc_link
from sealgate.venues.routes import Lane

_MOST = 50  # records

log = structlog.get_logger("sealgate.upstream")
QUIET_S = 60.0
_RECENT_S = 300.0  # as in the alert SealgateBotRefused
_MANY = 3  # fewer say nothing about a bot
_OF_THE_EXCHANGE = frozenset({"upstream_unreachable", "upstream_broken", "upstream_timeout"})


@dataclass(slots=True)
class Trouble:
    """One kind of error of one key. Times are by the clock of `now`; `bot` and `lane` are of the latest one.

    `had_worked`: the key had been accepted before that one. `clock_error_s` and `step_s` are of that one, as
    in `UpstreamError`: by the time that somebody looks, the clock is fine again. `worked_at` is when a
    request was accepted since for which this stood in the way, None without one.
    """

    key: str
    verdict: Verdict
    bot: str
    count: int
    last_at: float
    unsaid: int
    said_at: float
    had_worked: bool = False
    lane: Lane | None = None
    worked_at: float | None = None
    clock_error_s: float | None = None
    step_s: float | None = None

    @property
    def kind(self) -> str:
        """What it is called."""
        return self.verdict.kind

    def explained_by(self, known: Known) -> Known:
        """Return what explains it: what was known then, where that says more than what is known now."""
        return known._replace(
            clock_error_s=self.clock_error_s, has_worked=self.had_worked, step_s=self.step_s
        )

    def over_since(self, now: float) -> float | None:
        """Return since when it is over, None while it may go on.

        One accepted request proves key, secret and settings good; of the rest it proves nothing.
        """
        is_proof = self.verdict.whose is Whose.SETUP
        return self.worked_at if is_proof or now - self.last_at >= QUIET_S else None

    def is_settled_by(self, outcome: Outcome) -> bool:
        """Return whether an accepted request shows that this stands in the way no more."""
        is_alike = outcome.lane is self.lane and (outcome.key or "") == self.key
        return is_alike and (self.verdict.whose is not Whose.BOT or outcome.bot == self.bot)


class Troubles:
    """A reader of outcomes. `known` says what is known of a key at this moment; it is asked rarely.

    `has_worked` holds the keys that were accepted since the start.
    """

    def __init__(self, known: Callable[[str], Known], has_worked: Collection[str] = ()) -> None:
        self._known = known
        self._has_worked = has_worked
        self._records: OrderedDict[tuple[str, str], Trouble] = OrderedDict()

    def __call__(self, batch: Batch, now: float) -> None:
        """Take in a batch that ended at `now`."""
        for outcome in batch.outcomes if self._records or batch.rare else ():
            for error in outcome.upstream_errors:
                self._take(error, outcome)
            if self._records and outcome.attempts and outcome.conclusion is Conclusion.DONE:
                self._settle(outcome, now)

    def latest(self) -> list[Trouble]:
        """Return the records, the latest first."""
        return list(reversed(self._records.values()))

    def _settle(self, outcome: Outcome, now: float) -> None:
        for record in self._records.values():
            if record.worked_at is None and record.is_settled_by(outcome):
                record.worked_at = now

    def _take(self, error: UpstreamError, outcome: Outcome) -> None:
        key = outcome.key or ""
        record = self._records.pop((key, error.kind), None)
        if record is None:
            record = Trouble(key, error.verdict, "", 0, error.at, 0, error.at - QUIET_S)
        self._records[key, error.kind] = record
        if len(self._records) > _MOST:
            self._records.popitem(last=False)
        record.verdict = error.verdict
        record.bot, record.last_at = outcome.bot or "", error.at
        # A request that was sent again and then accepted also shows that the exchange accepts the key.
        was_mended = bool(outcome.resends) and outcome.conclusion is Conclusion.DONE
        record.had_worked = was_mended or key in self._has_worked
        record.lane, record.worked_at = outcome.lane, None
        record.clock_error_s, record.step_s = error.clock_error_s, error.step_s
        record.count += 1
        record.unsaid += 1
        if error.at - record.said_at >= QUIET_S:
            self._log(record)

    def _log(self, record: Trouble) -> None:
        known = record.explained_by(self._known(record.key))
        (log.info if record.verdict.whose is Whose.BOT else log.warning)(
            "upstream_error",
            kind=record.kind,
            key=record.key,
            bot=record.bot,
            count=record.unsaid,
            evidence=evidence(record.verdict, known) or None,
            advice=advice(record.verdict, known),
            see=doc_link(record.verdict),
        )
        record.unsaid, record.said_at = 0, record.last_at


@dataclass(slots=True)
class RefusalCount:
    """Requests of one bot and lane that the gateway refused for one reason.

    `lane` is None where a request was refused before its route was known. `asked` counts the requests of that
    bot and lane since `first_at`, refused ones too. Times are by the clock of `now`; `passed_at` is when the
    first request since `last_at` was not refused, None without one. `client` and `user_agent` are of the
    latest one, if it was a stranger's.
    """

    bot: str
    lane: Lane | None
    reason: str
    first_at: float
    last_at: float
    refused: int = 0
    asked: int = 0
    passed_at: float | None = None
    client: str | None = None
    user_agent: str | None = None

    def over_since(self, now: float) -> float | None:
        """Return since when it is over, None while it goes on. No request of a stranger ever passes."""
        if now - self.last_at < QUIET_S:
            return None
        return self.last_at if self.bot == STRANGER else self.passed_at

    def is_grave(self, now: float) -> bool:
        """Return whether most requests of a known bot are refused, so that people should know.

        A bot that has stopped asking keeps its line, but the notice ends after a while.
        """
        is_most = self.refused >= _MANY and 2 * self.refused >= self.asked
        is_recent = now - self.last_at < _RECENT_S
        return is_most and is_recent and self.bot != STRANGER and self.over_since(now) is None

    @property
    def words(self) -> str:
        """Return how much of what the bot asked for was refused, and why."""
        what = self.lane.value if self.lane else "request"
        is_stranger = self.bot == STRANGER
        count = f"{self.refused}" if is_stranger else f"{self.refused} of {self.asked}"
        is_one = (self.refused if is_stranger else self.asked) == 1
        client = ", ".join(filter(None, (self.user_agent, self.client)))
        who = f" ({'' if is_one else 'the last: '}{client})" if client else ""
        return f"{self.bot}: {count} {what}{'' if is_one else 's'} refused: {self.reason}{who}"


class RefusalCounts:
    """A reader of outcomes. Its records are bounded by the bots, lanes and reasons that there are.

    A record counts from its first refusal until it is over: until a minute passed without another one, and a
    request of the same bot and lane was not refused since.
    """

    def __init__(self) -> None:
        self._by_bot: dict[str, dict[tuple[Lane | None, str], RefusalCount]] = {}

    def __call__(self, batch: Batch, now: float) -> None:
        """Take in a batch that ended at `now`."""
        for outcome in batch.outcomes if self._by_bot or batch.rare else ():
            bot = outcome.bot or STRANGER
            reason = _reason(outcome)
            if reason is not None:
                self._refuse(bot, outcome, reason, now)
            if bot in self._by_bot:
                self._count(bot, outcome.lane, now, is_refused=reason is not None)

    def latest(self) -> list[RefusalCount]:
        """Return the records, the latest first."""
        records = [record for by_reason in self._by_bot.values() for record in by_reason.values()]
        return sorted(records, key=lambda record: -record.last_at)

    def _refuse(self, bot: str, outcome: Outcome, reason: str, now: float) -> None:
        lane = outcome.lane
        records = self._by_bot.setdefault(bot, {})
        record = records.get((lane, reason))
        if record is None or record.over_since(now) is not None:
            record = records[lane, reason] = RefusalCount(bot, lane, reason, now, now)
        record.refused += 1
        record.client = outcome.client
        record.user_agent = outcome.user_agent and redacted(outcome.user_agent)
        record.last_at, record.passed_at = now, None

    def _count(self, bot: str, lane: Lane | None, now: float, *, is_refused: bool) -> None:
        for record in self._by_bot[bot].values():
            if record.lane in (None, lane):
                record.asked += 1
                if not is_refused and record.passed_at is None:
                    record.passed_at = now


def _reason(outcome: Outcome) -> str | None:
    """Return why the gateway refused it, None where it did not.

    Where the exchange failed, the order may have executed, also where only its Idempotency-Key comes again.
    """
    return None if outcome.reason in _OF_THE_EXCHANGE else outcome.reason
