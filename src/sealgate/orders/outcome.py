"""The outcome of a request: the one record in which the pipeline ends.

Log and metrics are readers of `Outcome`; the pipeline has no lines for them. `Conclusion` is the header
X-Gateway-Outcome: what the bot may conclude.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from sealgate.venues.replies import Verdict

if TYPE_CHECKING:
    from sealgate.venues.routes import Lane

LARGEST_BODY = 256 * 1024  # of a stored reply


class Conclusion(StrEnum):
    """What the bot may conclude."""

    DONE = "done"
    REFUSED = "refused"
    NOT_SENT = "not_sent"
    UNKNOWN = "unknown"


# Looked up once, as in request/context.py.
_NOT_SENT: Final = Conclusion.NOT_SENT
_REFUSED: Final = Conclusion.REFUSED


class UpstreamError(NamedTuple):
    """One error of an attempt, at `at` on the clock of `now`; `retry_after_s` is stated by a rate limit.

    `clock_error_s` is the clock error when the reply arrived, None without a synchronized clock; `step_s` is
    the step of the exchange's clock found after the request was sent.
    """

    verdict: Verdict
    at: float
    retry_after_s: float | None = None
    clock_error_s: float | None = None
    step_s: float | None = None

    @property
    def kind(self) -> str:
        """The name of the kind, as in metrics and docs/errors.md."""
        return self.verdict.kind


class Outcome:
    """Everything that readers may need to know about one request. Times are `now`, durations are seconds.

    The pipeline fills it in, `end` completes it, and then it never changes.
    """

    __slots__ = (
        "added_s",
        "attempts",
        "bot",
        "bot_s",
        "broken",
        "client",
        "conclusion",
        "detail",
        "exchange",
        "has_hung_up",
        "key",
        "lane",
        "method",
        "queue_s",
        "reason",
        "request_id",
        "resends",
        "route",
        "shared",
        "started",
        "status",
        "total_s",
        "trace_id",
        "upstream_errors",
        "upstream_s",
        "user_agent",
    )

    def __init__(self, request_id: str, method: str, started: float) -> None:
        self.request_id = request_id
        self.method = method
        self.started = started
        self.bot: str | None = None  # None for an unauthenticated client; see the next two
        self.client: str | None = None  # its IP address, or the user of a Unix socket
        self.user_agent: str | None = None  # its program, as claimed
        self.trace_id: str | None = None  # of the bot's traceparent
        self.exchange = ""  # "" if it was refused before an exchange was chosen
        self.key: str | None = None  # None if it was refused before a key was chosen
        self.route = "other"
        self.lane: Lane | None = None
        self.status = 0
        self.conclusion = _NOT_SENT
        self.reason: str | None = None  # the slug of the gateway's own reply, None for the exchange's
        self.detail: str | None = None  # of the reason, or why a policy in dry run would have refused it
        self.shared: str | None = None  # the id of the request whose reply this one shares
        self.broken: str | None = None  # why the reply was cut off
        self.attempts = 0
        self.resends: tuple[str, ...] = ()  # the reason of each resend
        self.upstream_errors: tuple[UpstreamError, ...] = ()  # all errors of its attempts
        self.queue_s = 0.0
        self.upstream_s = 0.0
        self.bot_s = 0.0
        self.total_s = 0.0
        self.added_s = 0.0  # the remaining time, spent in the gateway itself
        self.has_hung_up = False  # the bot disconnected before the reply

    def end(self, status: int, now: float) -> None:
        """Complete the record; `status` is that of the reply."""
        self.status = status
        self.total_s = now - self.started
        self.added_s = max(0.0, self.total_s - self.queue_s - self.upstream_s - self.bot_s)
        if self.resends:  # the last resend never began if its time ran out first
            self.resends = self.resends[: max(0, self.attempts - 1)]

    @property
    def is_plain(self) -> bool:
        """Whether nothing unusual happened: sender, request, ending and durations say it all."""
        return not (
            self.reason
            or self.detail
            or self.upstream_errors
            or self.resends
            or self.broken
            or self.has_hung_up
            or self.shared
        )

    @property
    def times_limited(self) -> int:
        """How often the exchange refused the request because of a rate limit."""
        return sum(error.verdict.is_limited for error in self.upstream_errors)


@dataclass(slots=True)
class BotReply:
    """A reply to a bot; `fields` do not include the gateway's X-Gateway headers."""

    status: int
    phrase: str
    fields: Sequence[tuple[bytes, bytes]]
    body: bytes

    @property
    def size(self) -> int:
        """The approximate size of the reply in memory, in bytes."""
        return len(self.body) + sum(map(len, chain.from_iterable(self.fields)))


@dataclass(frozen=True, slots=True)
class Ending:
    """How a request ended: what its bot may conclude, and the reply, None if it was not kept.

    `fence_ms` is the exchange's time after which it can no longer be accepted; 0 if nothing was signed.
    `is_own`: there is no reply of the exchange to pass on; the gateway replied itself, or not at all.
    `is_limited`: the reply refuses it because of a rate limit.
    """

    conclusion: Conclusion
    fence_ms: int = 0
    reply: BotReply | None = None
    is_own: bool = False
    is_limited: bool = False


def is_remembered(ending: Ending) -> bool:
    """Return whether an ending spends its Idempotency-Key, so that the reply is kept for replays.

    In two cases the key stays free, because a bot that repeats the request wants the order sent: nothing was
    sent, or the exchange refused only for the moment (because of its rate limit, or the time ran out after
    such a refusal). A stored refusal would be replayed for as long as keys are kept.
    """
    if ending.conclusion is _REFUSED:
        return not (ending.is_own or ending.is_limited)
    return ending.conclusion is not _NOT_SENT
