"""What became of a request: the one record that the pipeline ends in.

Log and metrics are readers of `Outcome`; none of them has a line of its own in the pipeline. `Conclusion` is
what the bot may conclude, as the header X-Gateway-Outcome says it.
"""

from enum import StrEnum
from typing import NamedTuple

from sealgate.core.routes import Lane
from sealgate.core.venues.replies import Verdict


class Conclusion(StrEnum):
    """What the bot may conclude."""

    DONE = "done"
    REFUSED = "refused"
    NOT_SENT = "not_sent"
    UNKNOWN = "unknown"


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
        """What it is called in metrics and documents."""
        return self.verdict.kind


class Outcome(NamedTuple):
    """Everything the readers may want to know of one request. Durations are seconds.

    `bot` is None for a stranger; `key` is None where the request was refused before a key was chosen.
    `reason` is the slug of the gateway's own answer, None for the upstream's. `has_hung_up` says that the bot
    did not wait for the reply. `resends` holds one reason for each time it was sent again,
    `upstream_errors` are all errors that its attempts met.
    """

    request_id: str
    bot: str | None
    key: str | None
    method: str
    route: str
    lane: Lane | None
    status: int
    conclusion: Conclusion
    reason: str | None
    detail: str | None
    broken: str | None
    attempts: int
    resends: tuple[str, ...]
    queue_s: float
    upstream_s: float
    bot_s: float
    total_s: float
    has_hung_up: bool
    upstream_errors: tuple[UpstreamError, ...] = ()

    @property
    def times_limited(self) -> int:
        """How often the upstream refused it for its limit."""
        return sum(error.verdict.is_limited for error in self.upstream_errors)

    @property
    def added_s(self) -> float:
        """The gateway's own share of the time: neither waiting by design nor the upstream's nor the bot's."""
        return max(0.0, self.total_s - self.queue_s - self.upstream_s - self.bot_s)
