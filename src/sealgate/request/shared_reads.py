"""Shared reads: one reply for identical reads that wait together, or arrive within their `share_s`."""

from collections.abc import Hashable

from sealgate.exchange.answer import Answer
from sealgate.exchange.failure import Failure
from sealgate.limits.scheduler import Shared
from sealgate.request.admission import Ticket
from sealgate.venues.routes import Auth

MOST_BYTES = 16 * 1024 * 1024
_OWN_BYTES = 3 * 1024  # memory of each besides its reply's body: its objects, measured


class SharedReads:
    """The shared reads of one pipeline, the oldest first: by its rules, all their bots may read the same.

    A read answers identical ones for its route's `share_s` from the time it was sent: while it is in
    progress, and then with its reply, if that is kept.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._reads: dict[Hashable, tuple[float, Shared, int]] = {}  # its end, the read, its bytes
        self._bytes = 0

    def alike(self, ticket: Ticket, body: bytes) -> Hashable:
        """Return the identity of a read: its bytes, and the API key if the read needs one."""
        key = None if ticket.route.auth is Auth.OPEN else ticket.key
        return self, key, ticket.method, ticket.target.raw, ticket.head.passed, body

    def find(self, ticket: Ticket, body: bytes, now: float) -> Shared | None:
        """Return a recent identical read whose reply can be shared, None if there is none."""
        until, shared, _ = self._reads.get(self.alike(ticket, body), (now, None, 0))
        return None if now > until or shared is None or shared.came_to_nothing else shared

    def sent(self, shared: Shared, ticket: Ticket, body: bytes, now: float) -> None:
        """Let others share the reply to a read sent now, for the `share_s` of its route."""
        alike = self.alike(ticket, body)
        self._forget(alike)
        while self._reads and next(iter(self._reads.values()))[0] < now:
            self._forget(next(iter(self._reads)))
        self._reads[alike] = now + (ticket.route.share_s or 0.0), shared, 0

    def hand_round(
        self, shared: Shared, attempt: Answer | Failure, ticket: Ticket, body: bytes, request_id: str
    ) -> None:
        """Pass the result of an attempt to all reads that share it, unless it is too large or too late."""
        if isinstance(attempt, Answer):
            shared.is_too_large = attempt.remainder is not None
            is_for_others = not shared.is_too_large
        else:
            is_for_others = not attempt.is_own and not (attempt.is_for_time and ticket.deadline_s is not None)
        if ticket.route.share_s:
            size = None
            if is_for_others and isinstance(attempt, Answer) and attempt.is_success:
                size = len(attempt.body) + ticket.head.size + len(body)
            self._keep(self.alike(ticket, body), shared, size)
        shared.request_id = request_id
        shared.end(attempt if is_for_others else None)

    def _keep(self, alike: Hashable, shared: Shared, size: int | None) -> None:
        """Keep a read whose reply has `size` bytes, or drop it (None); drop the oldest to make room."""
        until, latest, _ = self._reads.get(alike, (0.0, None, 0))
        if latest is not shared:
            return
        if size is None:
            self._forget(alike)
            return
        self._reads[alike] = until, shared, size + _OWN_BYTES
        self._bytes += size + _OWN_BYTES
        while self._bytes > self._most_bytes:
            self._forget(next(iter(self._reads)))

    def _forget(self, alike: Hashable) -> None:
        _, _, size = self._reads.pop(alike, (0.0, None, 0))
        self._bytes -= size

    def clear(self) -> None:
        """Drop all reads."""
        self._reads.clear()
        self._bytes = 0
