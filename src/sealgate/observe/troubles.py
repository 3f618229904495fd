"""What went wrong lately, one record for each kind however often it came, and when it is over."""

from dataclasses import dataclass

from sealgate.config.names import STRANGER
from sealgate.observe.evidence import Circumstances
from sealgate.orders.outcome import Outcome
from sealgate.venues.replies import Verdict, Whose
from sealgate.venues.routes import Lane

QUIET_S = 60.0
_RECENT_S = 300.0  # as in the alert SealgateBotRefused
_MANY = 3  # fewer say nothing about a bot


@dataclass(slots=True)
class Trouble:
    """One kind of error of an exchange, met with one key. Times are readings of `System.now`.

    `bot`, `lane` and `verdict` are those of the latest error. `had_worked`: the exchange had accepted the key
    before it. `clock_error_s` and `step_s` are as in its `UpstreamError`: by the time that somebody looks,
    the clock is fine again. `worked_at` is when a request was accepted since that this would have stopped,
    None without one. `unlogged` counts the errors since the latest log line, of `logged_at`.
    """

    exchange: str
    key: str
    verdict: Verdict
    bot: str
    count: int
    last_at: float
    unlogged: int
    logged_at: float
    had_worked: bool = False
    lane: Lane | None = None
    worked_at: float | None = None
    clock_error_s: float | None = None
    step_s: float | None = None

    @property
    def kind(self) -> str:
        """The name of the kind, as in metrics and docs/errors.md."""
        return self.verdict.kind

    @property
    def is_due(self) -> bool:
        """Whether the log should have a line: at once, then at most one a minute.

        An exchange that is down must not fill a disk.
        """
        return self.last_at - self.logged_at >= QUIET_S

    def at_the_time(self, now_known: Circumstances) -> Circumstances:
        """Return the circumstances of the latest error: those of now, except what was recorded with it."""
        return now_known._replace(
            clock_error_s=self.clock_error_s, has_worked=self.had_worked, step_s=self.step_s
        )

    def over_since(self, now: float) -> float | None:
        """Return since when it is over, None while it may go on.

        One accepted request proves key, secret and settings good. Of anything else it proves nothing: that
        comes and goes, and is over only after a quiet minute.
        """
        is_proof = self.verdict.whose is Whose.SETUP
        return self.worked_at if is_proof or now - self.last_at >= QUIET_S else None

    def is_settled_by(self, outcome: Outcome) -> bool:
        """Return whether an accepted request shows that this no longer stops what is like it.

        It must be of the same exchange, key and lane and, where the cause was what a bot asked for, of the
        same bot.
        """
        is_alike = (outcome.exchange, outcome.key or "", outcome.lane) == (self.exchange, self.key, self.lane)
        return is_alike and (self.verdict.whose is not Whose.BOT or outcome.bot == self.bot)


@dataclass(slots=True)
class RefusalCount:
    """Requests of one bot and lane to one exchange that the gateway itself refused for one reason.

    It counts from the first refusal until it is over: until a minute passed without another one, and a
    request of the same bot and lane was not refused since. `lane` is None if requests were refused before
    their route was known, `exchange` is "" if before their exchange was. `asked` counts the requests of that
    bot, exchange and lane since `first_at`, refused ones too. Times are readings of `System.now`; `passed_at`
    is when the first request since `last_at` was not refused, None without one. `client` and `user_agent` are
    those of the latest request, if a stranger's.
    """

    bot: str
    exchange: str
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
        """How much of what the bot asked for was refused, and why."""
        what = self.lane.value if self.lane else "request"
        is_stranger = self.bot == STRANGER
        count = f"{self.refused}" if is_stranger else f"{self.refused} of {self.asked}"
        is_one = (self.refused if is_stranger else self.asked) == 1
        client = client_words(self.client, self.user_agent)
        who = f"; {'' if is_one else 'the last: '}{client}" if client else ""
        return (
            f"{self.bot}: {count} {what}{'' if is_one else 's'} refused by the gateway ({self.reason}{who})"
        )


def client_words(client: str | None, user_agent: str | None) -> str:
    """Return a stranger as people read it: its program, as it calls itself, and its address."""
    return ", ".join(filter(None, (user_agent, client)))
