"""Timestamps and nonces of one key."""

from collections.abc import Callable

from sealgate.venues.encodings import PER_S, write_nonce

FURTHEST_MS = 500  # before now; in a flood of equal requests timestamps repeat rather than get older
_KEPT = 1024  # contents
_NEVER = (0, 0, 0)
_RESERVED_MS = 10_000
_LEAST_AHEAD_MS = 2_000  # of what is reserved: as long as a journal may take for the order


class Stamps:
    """Which milliseconds were used for which content.

    Equal requests of one millisecond would get the same signature, and an exchange that looks for replays
    would refuse the second. So the second gets an unused millisecond before: exchanges tolerate old
    timestamps, not future ones.

    For each content it remembers the latest millisecond used, and one gap of unused ones before that: those
    between `floor` and `low`, which are used themselves. At first it is the gap below the first request of a
    run; once that is too old, the largest gap since.
    """

    def __init__(self) -> None:
        self._used: dict[int, tuple[int, int, int]] = {}

    def take(self, now_ms: int, content: int, furthest_ms: int = FURTHEST_MS) -> int:
        """Return a timestamp between `now_ms` and `furthest_ms` before it, unused if there is one.

        `content` is a hash of everything else that is signed.
        """
        latest, floor, low = self._used.pop(content, _NEVER)
        too_old_ms = now_ms - furthest_ms - 1
        # There are three cases:
        if now_ms > latest:
            # 1. This millisecond is unused. The gap before it replaces a smaller one.
            if low - max(floor, too_old_ms) < now_ms - latest:
                floor, low = latest, now_ms
            latest = timestamp_ms = now_ms
        elif max(floor, too_old_ms) < low - 1 <= now_ms:
            # 2. It is used, and the gap has room: take its last millisecond.
            low = timestamp_ms = low - 1
        else:
            # 3. The gap is used up or too old, or the clock was set back: repeat a timestamp, and begin anew.
            latest, floor, low = now_ms, 0, now_ms
            timestamp_ms = now_ms
        self._used[content] = latest, floor, low
        if len(self._used) > _KEPT:
            del self._used[next(iter(self._used))]
        return timestamp_ms


def next_nonce(kind: str, now_ms: int, last: int) -> int:
    """Return a nonce above the last one of its key: the time, unless the last one is ahead of it."""
    return max(now_ms * PER_S[kind] // 1000, last + 1)


class Nonces:
    """The nonces of one key: each is above those before it. `unique` makes a text that was never made before.

    They follow the exchange's time, so that they also rise over a restart, unless that time was set back. For
    that case the journal reserves them: it keeps a mark ahead of all used nonces, and the next start begins
    above the mark. `place` is the name under which the mark is kept.
    """

    def __init__(self, kind: str, unique: Callable[[], str], place: str = "") -> None:
        self.kind = kind
        self.place = place
        self.is_number = kind in PER_S
        self._per_s = PER_S.get(kind, 0)
        self._unique = unique
        self._last = 0
        self._until = 0

    def take(self, now_ms: int) -> bytes:
        """Return the next nonce, empty if the venue has none."""
        if self.kind == "none":
            return b""
        if not self.is_number:
            text = self._unique().encode("ascii")
            return text.replace(b"-", b"") if self.kind == "hex" else text
        self._last = next_nonce(self.kind, now_ms, self._last)
        return write_nonce(self.kind, self._last)

    @property
    def is_new(self) -> bool:
        """Whether no nonce was reserved since the start."""
        return self._until == 0

    def lacks(self, now_ms: int) -> bool:
        """Whether more must be reserved, because those left are used up within two seconds."""
        return next_nonce(self.kind, now_ms, self._last) + _LEAST_AHEAD_MS * self._per_s // 1000 > self._until

    def wanted(self, now_ms: int) -> int:
        """Return up to which number to reserve: some seconds ahead of the time.

        If the nonces are ahead of it already, only little more: so restarts in quick succession do not carry
        them far away from the time.
        """
        least = next_nonce(self.kind, now_ms, self._last) + 2 * _LEAST_AHEAD_MS * self._per_s // 1000
        return max((now_ms + _RESERVED_MS) * self._per_s // 1000, least)

    def reserved(self, kept: int, until: int) -> None:
        """Note that those up to `until` are reserved. `kept` is the mark before.

        At first it is the mark of an earlier run, which may have used all up to it.
        """
        if self.is_new:
            self._last = max(self._last, kept)
        self._until = max(kept, until)

    def ahead_s(self, nonce: int, now_ms: int) -> float:
        """Return by how many seconds a number is ahead of the time."""
        return nonce / self._per_s - now_ms / 1000
