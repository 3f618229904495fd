"""Reads whose reply others may have: identical ones that wait, or that come within their `share_s`."""

from collections.abc import Hashable

from sealgate.exchange.answer import Answer
from sealgate.exchange.failure import Failure
from sealgate.limits.scheduler import Shared
from sealgate.request.admission import Ticket
from sealgate.request.recent_reads import RecentReads


class SharedReads:
    """The shared reads of one pipeline: by its rules each of their bots may read the same."""

    def __init__(self) -> None:
        self._recent: RecentReads[Shared] = RecentReads()

    def alike(self, ticket: Ticket, body: bytes) -> Hashable:
        """Return what a read has in common with those that may have its reply: key and bytes."""
        return self, ticket.key, ticket.method, ticket.target.raw, ticket.head.passed, body

    def find(self, ticket: Ticket, body: bytes, now: float) -> Shared | None:
        """Return what was sent a moment ago and is alike, None where that came to nothing."""
        shared = self._recent.find(self.alike(ticket, body), now)
        return None if shared is None or shared.came_to_nothing else shared

    def sent(self, shared: Shared, ticket: Ticket, body: bytes, now: float) -> None:
        """Let others find a read that is sent now, for as long as its route says."""
        self._recent.sent(self.alike(ticket, body), now + (ticket.route.share_s or 0.0), shared, now)

    def hand_round(
        self, shared: Shared, attempt: Answer | Failure, ticket: Ticket, body: bytes, request_id: str
    ) -> None:
        """Let others have what came of an attempt, unless it is too large to be held or time was short."""
        if isinstance(attempt, Answer):
            shared.is_too_large = attempt.remainder is not None
            is_for_others = not shared.is_too_large
        else:
            is_for_others = not attempt.is_own and not (attempt.is_for_time and ticket.deadline_s is not None)
        if ticket.route.share_s:
            alike = self.alike(ticket, body)
            if is_for_others and isinstance(attempt, Answer) and attempt.is_success:
                self._recent.keep(alike, shared, len(attempt.body) + ticket.head.size + len(body))
            else:
                self._recent.drop(alike, shared)
        shared.request_id = request_id
        shared.end(attempt if is_for_others else None)

    def clear(self) -> None:
        """Let go of all."""
        self._recent.clear()
