"""The outcome of a request: the one record that the pipeline ends in.

Log and metrics are readers of `Outcome`; none of them has a line of its own in the pipeline. `Conclusion` is
what the bot may conclude, as the header X-Gateway-Outcome says it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import TYPE_CHECKING, Final, NamedTuple

from sealgate.venues.replies import Verdict

if TYPE_CHECKING:
    from sealgate.venues.routes import Lane

LARGEST_BODY = 256 * 1024  # of a reply that is kept


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
    """One error that an attempt met, at `at` by the clock of `now`; `retry_after_s` is what a limit stated.

    `clock_error_s` is how far off the exchange's clock could be known when the reply came, None without a
    synced clock; `step_s` is by how much that clock was found to have moved since the request was sent.
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
    """Everything the readers may want to know of one request. Times are `now`, durations are seconds.

    The pipeline fills it in, `end` completes it, and then nobody changes it.
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
        self.bot: str | None = None  # None for a stranger, of whom `client` and `user_agent` tell something
        self.client: str | None = None  # its address, or the user of a Unix socket
        self.user_agent: str | None = None  # its program, as it says
        self.trace_id: str | None = None  # of the bot's traceparent
        self.exchange = ""  # "" where it was refused before one was chosen
        self.key: str | None = None  # None where it was refused before a key was chosen
        self.route = "other"
        self.lane: Lane | None = None
        self.status = 0
        self.conclusion = _NOT_SENT
        self.reason: str | None = None  # the slug of the gateway's own answer, None for the exchange's
        self.detail: str | None = None  # of the reason, or why an observing policy would have refused it
        self.shared: str | None = None  # the id of the request whose reply also answers this one
        self.broken: str | None = None  # why the reply broke off
        self.attempts = 0
        self.resends: tuple[str, ...] = ()  # a reason for each time it was sent again
        self.upstream_errors: tuple[UpstreamError, ...] = ()  # all that its attempts met
        self.queue_s = 0.0
        self.upstream_s = 0.0
        self.bot_s = 0.0
        self.total_s = 0.0
        self.added_s = 0.0  # the rest, the gateway's own share
        self.has_hung_up = False  # the bot did not wait for the reply

    def end(self, status: int, now: float) -> None:
        """Complete the record: the request ends with that status of its reply."""
        self.status = status
        self.total_s = now - self.started
        self.added_s = max(0.0, self.total_s - self.queue_s - self.upstream_s - self.bot_s)
        if self.resends:  # the last reason led to no attempt where the time ran out before it
            self.resends = self.resends[: max(0, self.attempts - 1)]

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing to tell but who sent what, how it ended and how long it took."""
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
        """How often the exchange refused the request because of the limit."""
        return sum(error.verdict.is_limited for error in self.upstream_errors)


@dataclass(slots=True)
class BotReply:
    """A reply as a bot gets it; `fields` do not include the gateway's own X-Gateway lines."""

    status: int
    phrase: str
    fields: Sequence[tuple[bytes, bytes]]
    body: bytes

    @property
    def size(self) -> int:
        """The bytes of memory that the reply takes, roughly."""
        return len(self.body) + sum(map(len, chain.from_iterable(self.fields)))


@dataclass(frozen=True, slots=True)
class Ending:
    """How a request ended: what its bot may conclude, and the reply, None where that was not kept.

    `fence_ms` is the server time after which it can no longer be admitted; 0 where nothing was signed.
    `is_own` says that it ended without a reply of the exchange to pass on: the gateway answered, or nobody.
    `is_limited` says that the reply refuses it for the limit.
    """

    conclusion: Conclusion
    fence_ms: int = 0
    reply: BotReply | None = None
    is_own: bool = False
    is_limited: bool = False


def is_remembered(ending: Ending) -> bool:
    """Return whether an ending uses up its Idempotency-Key, so that the reply is kept for it.

    There are two cases in which the key stays free, because a bot that comes back with it wants the order
    sent: nothing was sent, or the exchange refused only for the moment (because of its limit, or time ran out
    after such a refusal). A stored refusal would be repeated for as long as keys are kept.
    """
    if ending.conclusion is _REFUSED:
        return not (ending.is_own or ending.is_limited)
    return ending.conclusion is not _NOT_SENT
