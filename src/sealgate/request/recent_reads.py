"""Reads that were sent of late: their replies answer identical ones for a while."""

from typing import Generic, TypeVar

_MOST_BYTES = 16 * 1024 * 1024
_OWN_BYTES = 3 * 1024  # that each takes beside its reply's body: the objects that it consists of, measured

Read = TypeVar("Read")


class RecentReads(Generic[Read]):
    """Reads by what makes them alike, the oldest first. Times are readings of one clock, in seconds.

    One answers identical ones for as long as its route's `share_s` allows, from the moment it was sent: while
    it is under way, and then by its reply, if that is kept.
    """

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._reads: dict[object, tuple[float, Read, int]] = {}  # until when, what, its bytes
        self._bytes = 0

    def sent(self, alike: object, until: float, read: Read, now: float) -> None:
        """Let a read that is sent now answer others until then; it takes the place of the one before."""
        self.forget(alike)
        while self._reads and next(iter(self._reads.values()))[0] < now:
            self.forget(next(iter(self._reads)))
        self._reads[alike] = until, read, 0

    def find(self, alike: object, now: float) -> Read | None:
        """Return the read that answers one that comes now, None if it has to be sent."""
        until, read, _ = self._reads.get(alike, (now, None, 0))
        return read if now <= until else None

    def keep(self, alike: object, read: Read, size: int) -> None:
        """Go on with a read whose answer has `size` bytes; the oldest make room."""
        until, kept, _ = self._reads.get(alike, (0.0, None, 0))
        if kept is not read:
            return
        size += _OWN_BYTES
        self._reads[alike] = until, read, size
        self._bytes += size
        while self._bytes > self._most_bytes:
            self.forget(next(iter(self._reads)))

    def drop(self, alike: object, read: Read) -> None:
        """Let a read answer nobody any more."""
        if self._reads.get(alike, (0.0, None, 0))[1] is read:
            self.forget(alike)

    def forget(self, alike: object) -> None:
        """Let no read of that kind answer others."""
        self._bytes -= self._reads.pop(alike, (0.0, None, 0))[2]

    def clear(self) -> None:
        """Forget all."""
        self._reads.clear()
        self._bytes = 0
