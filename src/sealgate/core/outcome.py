"""What became of a request: the one record that the pipeline ends in.

Log and metrics are readers of `Outcome`; none of them has a line of its own in the pipeline. `Conclusion` is
what the bot may conclude, as the header X-Gateway-Outcome says it.
"""

from enum import StrEnum
from typing import NamedTuple

from sealgate.core.catalogue import UpstreamError
from sealgate.core.routes import Lane


class Conclusion(StrEnum):
    """What the bot may conclude."""

    DONE = "done"
    REFUSED = "refused"
    NOT_SENT = "not_sent"
    UNKNOWN = "unknown"


class Outcome(NamedTuple):
    """Everything the readers may want to know of one request. Durations are seconds.

    `bot` is None for a stranger; `key` is None where the request was refused before a key was chosen.
    `reason` is the slug of the gateway's own answer, None for the upstream's. `has_hung_up` says that the bot
    did not wait for the reply. `resends` holds one reason for each time it was sent again, `upstream_429s`
    counts the upstream's 429 replies to it, `upstream_errors` are all errors that its attempts met.
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
    upstream_429s: int
    queue_s: float
    upstream_s: float
    bot_s: float
    total_s: float
    has_hung_up: bool
    upstream_errors: tuple[UpstreamError, ...] = ()

    @property
    def added_s(self) -> float:
        """The gateway's own share of the time: neither waiting by design nor the upstream's nor the bot's."""
        return max(0.0, self.total_s - self.queue_s - self.upstream_s - self.bot_s)
