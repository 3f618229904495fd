"""The places of a listener, and who gives one up when all are taken.

A client that sends a request is served, so silent ones must not cost the others their places: when all are
taken, the stranger that has had its place the longest gives it up to the next client.
"""

from typing import Protocol

from sealgate.errors import Refusal


class Guest(Protocol):
    """What has a place: a connection, or one that is still shaking hands."""

    def turn_out(self) -> None:
        """End it at once."""


class Places:
    """So many places; `refusal` is for whoever comes when all are taken by guests that are known."""

    def __init__(self, most: int, refusal: Refusal) -> None:
        self._most = most
        self._refusal = refusal
        self._taken: set[Guest] = set()
        self._strangers: dict[Guest, None] = {}  # in the order in which they came

    def __len__(self) -> int:
        """Return how many are taken."""
        return len(self._taken)

    def enter(self, guest: Guest) -> Refusal | None:
        """Give a place to a stranger, or return why there is none."""
        if len(self._taken) >= self._most:
            oldest = next(iter(self._strangers), None)
            if oldest is None:
                return self._refusal
            self.leave(oldest)
            oldest.turn_out()
        self._taken.add(guest)
        self._strangers[guest] = None
        return None

    def keep(self, guest: Guest) -> None:
        """Let a guest stay as long as it wants."""
        self._strangers.pop(guest, None)

    def doubt(self, guest: Guest) -> None:
        """Take one that stays for a stranger after all."""
        if guest in self._taken:
            self._strangers[guest] = None

    def leave(self, guest: Guest) -> None:
        """Free the place of a guest, if it has one."""
        self._taken.discard(guest)
        self._strangers.pop(guest, None)
