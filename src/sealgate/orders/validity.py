"""Timestamps and nonces of one key, and X-Gateway-Valid-Ms, which an order's timestamp enforces.

The order is dated back, so that its timestamp is too old once the time is over. That end is fixed when the
head is read, and by the exchange's clock with the first attempt: no resend, and no sample, extends it.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from sealgate.errors import Refusal
from sealgate.exchange.clock import ServerClock
from sealgate.venues.scheme import PER_MS

FURTHEST_MS = 500  # before now; a flood of equal requests repeats itself rather than grow older than that
_KEPT = 1024  # contents


_NEVER = (0, 0, 0)
_MILLISECONDS = re.compile(r"[0-9]{1,9}")
_ROUNDING_S = 0.003  # of timestamps, by which a window may end before its time
_RESERVED_MS = 10_000
_LEAST_AHEAD_MS = 2_000  # of what is reserved: as long as a journal may take for the order
_LOST = 10  # an order loses at most this part of its time to others that are equal


class Stamps:
    """Which milliseconds were taken for which content.

    Of each it knows the latest, and a stretch of free ones before: those between `floor` and `low`, which are
    taken themselves. The stretch is what is left below the first of a run, until that is too old, and then
    the largest gap since.

    Equal requests of one millisecond would be signed alike, and an exchange that looks for replays would
    refuse the second. It takes a free millisecond before: exchanges tolerate old, not future.
    """

    def __init__(self) -> None:
        self._taken: dict[int, tuple[int, int, int]] = {}

    def take(self, now_ms: int, content: int, furthest_ms: int = FURTHEST_MS) -> int:
        """Return a timestamp, at most `now_ms`, and at most `furthest_ms` before it if not yet taken there.

        `content` is a hash of all that is signed besides.
        """
        latest, floor, low = self._taken.pop(content, _NEVER)
        too_old_ms = now_ms - furthest_ms - 1
        if now_ms > latest:
            if low - max(floor, too_old_ms) < now_ms - latest:
                floor, low = latest, now_ms
            latest = timestamp_ms = now_ms
        elif max(floor, too_old_ms) < low - 1 <= now_ms:
            low = timestamp_ms = low - 1
        else:  # too many at once, or the clock was set back
            latest, floor, low = now_ms, 0, now_ms
            timestamp_ms = now_ms
        self._taken[content] = latest, floor, low
        if len(self._taken) > _KEPT:
            del self._taken[next(iter(self._taken))]
        return timestamp_ms


def parse_valid_ms(text: str) -> int:
    """Return what the header asks for. Raises Refusal."""
    if not _MILLISECONDS.fullmatch(text) or not int(text):
        raise Refusal("bad_request", "X-Gateway-Valid-Ms is not a whole number of milliseconds above 0.")
    return int(text)


@dataclass(slots=True)
class Validity:
    """How long one order is valid: `until` by our clock, `end_ms` by the exchange's, 0 until it is stamped.

    `window_ms` is for how long the exchange takes a timestamp of its key.
    """

    valid_ms: int
    until: float
    window_ms: int
    end_ms: int = 0

    def stamp(self, clock: ServerClock, stamps: Stamps, content: int, now: float) -> int:
        """Return the timestamp that is too old at the end, or up to twice the clock's bound before it.

        Raises Refusal where the clock is not known, or not well enough.
        """
        if not clock.is_synced:
            raise Refusal("clock_unsynced", "X-Gateway-Valid-Ms needs the exchange's time, not this host's.")
        if self.valid_ms < (shortest_ms := 2 * math.ceil(clock.error(now) * 1000)):
            detail = f"It is below {shortest_ms} ms, twice the possible error of the clock."
            raise Refusal("bad_request", f"X-Gateway-Valid-Ms is too short. {detail}")
        end_ms = clock.timestamp_ms(now) + math.floor((self.until - now) * 1000)
        self.end_ms = min(end_ms, self.end_ms or end_ms)
        # Not of one content with the others, as these do not rise as they do.
        return stamps.take(self.end_ms - self.window_ms, ~content, min(FURTHEST_MS, self.valid_ms // _LOST))

    def check(self, now: float) -> None:
        """Raise Refusal `deadline_exceeded` where it is over."""
        if self.until <= now:
            raise Refusal(
                "deadline_exceeded", "The time of X-Gateway-Valid-Ms was up before the request could be sent."
            )

    def explains(self, refused_at: float, error_s: float) -> bool:
        """Ask whether a timestamp was refused for this, and so for no fault of anybody's clock."""
        return refused_at >= self.until - 2 * error_s - _ROUNDING_S


def begin_validity(valid_ms: int, since: float, alias: str, window_ms: int | None) -> Validity:
    """Return the validity of an order whose head was read at `since`. Raises Refusal `bad_request`.

    `window_ms` is None where it is not known to the millisecond.
    """
    if window_ms is None:
        detail = (
            f"it is not known to the millisecond how long the exchange accepts a timestamp of the key {alias}"
        )
        raise Refusal("bad_request", f"X-Gateway-Valid-Ms cannot be enforced: {detail}.")
    if valid_ms > window_ms:
        detail = f"It is above keys.{alias}.recv_window_ms, {window_ms} ms."
        raise Refusal("bad_request", f"X-Gateway-Valid-Ms is too long. {detail}")
    return Validity(valid_ms, since + valid_ms / 1000, window_ms)


def next_nonce(kind: str, now_ms: int, last: int) -> int:
    """Return a nonce that is above the last one of its key, by the time where that suffices."""
    return max(now_ms * PER_MS.get(kind, 1), last + 1)


class Nonces:
    """The nonces of one key: each is above those before it. `unique` makes a text that nobody made before.

    They go by the exchange's time, so that they rise over a restart, too, unless that time was set back. For
    that case a journal reserves them: a mark is kept that is ahead of all that are used, and the next start
    begins above it. `place` is what they are kept by.
    """

    def __init__(self, kind: str, unique: Callable[[], str], place: str = "") -> None:
        self.kind = kind
        self.place = place
        self.is_number = kind in PER_MS
        self._per_ms = PER_MS.get(kind, 0)
        self._unique = unique
        self._last = 0
        self._until = 0

    def take(self, now_ms: int) -> bytes:
        """Return the next one, empty where the venue has none."""
        if self.kind == "none":
            return b""
        if self.kind == "uuid":
            return self._unique().encode("ascii")
        self._last = next_nonce(self.kind, now_ms, self._last)
        return b"%d" % self._last

    @property
    def is_new(self) -> bool:
        """Whether none was reserved since the start."""
        return self._until == 0

    def lacks(self, now_ms: int) -> bool:
        """Whether more must be reserved before the next one is taken, or soon after."""
        return next_nonce(self.kind, now_ms, self._last) + _LEAST_AHEAD_MS * self._per_ms > self._until

    def wanted(self, now_ms: int) -> int:
        """Return up to which number to reserve: by the time, and a little where they are ahead of it.

        So restarts in quick succession do not carry them far away from the time.
        """
        least = next_nonce(self.kind, now_ms, self._last) + 2 * _LEAST_AHEAD_MS * self._per_ms
        return max((now_ms + _RESERVED_MS) * self._per_ms, least)

    def reserved(self, kept: int, until: int) -> None:
        """Take in that they are reserved; those up to `kept`, the mark of an earlier run, may be used up."""
        if self.is_new:
            self._last = max(self._last, kept)
        self._until = max(kept, until)

    def ahead_s(self, nonce: int, now_ms: int) -> float:
        """Return by how much a number is ahead of the time."""
        return (nonce / self._per_ms - now_ms) / 1000
