"""The places of a listener, and who gives one up when all are taken.

Silent clients must not keep others out. A guest is a stranger until it has sent a request. When all places
are taken, the stranger that has had its place the longest loses it to the next client.
"""

from typing import Protocol

from sealgate.errors import Refusal


class Guest(Protocol):
    """What has a place: a connection, or a handshake that is to become one."""

    def turn_out(self) -> None:
        """End it at once."""


class Places:
    """At most `most` places. `refusal` is for a client that finds all of them taken by known guests."""

    def __init__(self, most: int, refusal: Refusal) -> None:
        self.most = most
        self._refusal = refusal
        self._taken: set[Guest] = set()
        self._strangers: dict[Guest, None] = {}  # in the order of their arrival

    def __len__(self) -> int:
        """Return how many places are taken."""
        return len(self._taken)

    def enter(self, guest: Guest) -> Refusal | None:
        """Give a place to a guest, for now a stranger; return the refusal if there is none."""
        if len(self._taken) >= self.most:
            oldest = next(iter(self._strangers), None)
            if oldest is None:
                return self._refusal
            self.leave(oldest)
            oldest.turn_out()
        self._taken.add(guest)
        self._strangers[guest] = None
        return None

    def keep(self, guest: Guest) -> None:
        """Let a guest that is known keep its place."""
        self._strangers.pop(guest, None)

    def doubt(self, guest: Guest) -> None:
        """Treat a guest as a stranger again."""
        if guest in self._taken:
            self._strangers[guest] = None

    def leave(self, guest: Guest) -> None:
        """Free the place of a guest, if the guest has one."""
        self._taken.discard(guest)
        self._strangers.pop(guest, None)
