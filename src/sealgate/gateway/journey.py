"""One request under way: what the pipeline has found out about it so far. It ends as an `Outcome`."""

import asyncio
from dataclasses import dataclass, field

from sealgate.core.admission import Bot, Ticket
from sealgate.core.outcome import Conclusion, Outcome
from sealgate.core.routes import Lane
from sealgate.errors import Refusal


@dataclass(slots=True)
class Journey:
    """Filled in step by step. Times are readings of `Host.now`, durations are seconds.

    `give_up_at` bounds the waiting, `ends_at` everything. `standing` is what the attempts so far let the bot
    conclude; while one is under way nothing is certain. `not_before` holds a resend back. `fence_ms` is
    the server time after which the latest attempt can no longer be admitted.
    """

    request_id: str
    started: float
    method: str
    task: asyncio.Task[None] | None = None
    bot: Bot | None = None
    key: str | None = None
    route: str = "other"
    lane: Lane | None = None
    own_id: str = ""
    give_up_at: float = 0.0
    ends_at: float = 0.0
    not_before: float = 0.0
    sent_at: float = 0.0
    fence_ms: int = 0
    standing: Conclusion = Conclusion.NOT_SENT
    is_under_way: bool = False
    attempts: int = 0
    resends: list[str] = field(default_factory=list)
    upstream_429s: int = 0
    queue_s: float = 0.0
    upstream_s: float = 0.0
    bot_s: float = 0.0
    refusal: Refusal | None = None
    broken: str | None = None
    has_hung_up: bool = False
    may_be_stopped: bool = True

    def hang_up(self) -> None:
        """Note that the bot is gone, and stop where that is allowed."""
        self.has_hung_up = True
        if self.may_be_stopped and self.task is not None:
            self.task.cancel()

    def __post_init__(self) -> None:
        """Keep the gateway's own id, which is unique; the bot's may take its place in log and reply."""
        self.own_id = self.request_id

    def admitted(self, ticket: Ticket, max_wait_s: float, total_timeout_s: float) -> None:
        """Note the ticket and what its deadline bounds."""
        self.key, self.route, self.lane = ticket.key, ticket.route.template, ticket.route.lane
        if ticket.deadline_s is not None:
            self.give_up_at = self.ends_at = self.started + ticket.deadline_s
        else:
            self.give_up_at = self.started + max_wait_s
            self.ends_at = self.give_up_at + total_timeout_s

    def concludes(self, conclusion: Conclusion) -> None:
        """Note what the latest attempt means; one that sent nothing leaves an earlier one's meaning."""
        if conclusion is not Conclusion.NOT_SENT:
            self.standing = conclusion

    @property
    def conclusion(self) -> Conclusion:
        """What the bot may conclude if it ends here."""
        return Conclusion.UNKNOWN if self.is_under_way else self.standing

    def cut(self, detail: str) -> None:
        """Note that the reply broke off while it was passed on."""
        self.standing = Conclusion.UNKNOWN
        self.broken = detail

    def fields(self) -> list[tuple[bytes, bytes]]:
        """Return the headers that every reply of the gateway carries."""
        conclusion = self.conclusion
        fields = [
            (b"X-Gateway-Request-Id", self.request_id.encode("ascii")),
            (b"X-Gateway-Attempts", b"%d" % self.attempts),
            (b"X-Gateway-Queue-Ms", b"%d" % (self.queue_s * 1000)),
            (b"X-Gateway-Outcome", conclusion.value.encode("ascii")),
        ]
        if conclusion is Conclusion.UNKNOWN:
            fields.append((b"X-Gateway-Fence-Ms", b"%d" % self.fence_ms))
        return fields

    def outcome(self, status: int, now: float) -> Outcome:
        """Return the record of it."""
        return Outcome(
            request_id=self.request_id,
            bot=self.bot.name if self.bot else None,
            key=self.key,
            method=self.method,
            route=self.route,
            lane=self.lane,
            status=status,
            conclusion=self.conclusion,
            reason=self.refusal.slug if self.refusal else None,
            detail=self.refusal.detail if self.refusal else None,
            broken=self.broken,
            attempts=self.attempts,
            # The last reason led to no attempt where the time ran out before it.
            resends=tuple(self.resends[: max(0, self.attempts - 1)]),
            upstream_429s=self.upstream_429s,
            queue_s=self.queue_s,
            upstream_s=self.upstream_s,
            bot_s=self.bot_s,
            total_s=now - self.started,
            has_hung_up=self.has_hung_up,
        )
