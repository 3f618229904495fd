"""Timestamps and nonces of one key, and X-Gateway-Valid-Ms, which an order's timestamp enforces.

The order is dated back, so that the exchange refuses its timestamp as too old once the time is over. The end
is fixed when the head is read, and in the exchange's time at the first attempt: neither a resend nor a new
clock sample extends it.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from sealgate.errors import Refusal
from sealgate.exchange.clock import ServerClock
from sealgate.venues.scheme import PER_MS

FURTHEST_MS = 500  # before now; in a flood of equal requests timestamps repeat rather than get older
_KEPT = 1024  # contents
_NEVER = (0, 0, 0)
_MILLISECONDS = re.compile(r"[0-9]{1,9}")
_ROUNDING_S = 0.003  # of timestamps, by which a window may end before its time
_RESERVED_MS = 10_000
_LEAST_AHEAD_MS = 2_000  # of what is reserved: as long as a journal may take for the order
_LOST = 10  # an order loses at most this part of its time to others that are equal


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


def parse_valid_ms(text: str) -> int:
    """Return the milliseconds of X-Gateway-Valid-Ms. Raises Refusal `bad_request`."""
    if not _MILLISECONDS.fullmatch(text) or not int(text):
        raise Refusal("bad_request", "X-Gateway-Valid-Ms is not a whole number of milliseconds above 0.")
    return int(text)


@dataclass(slots=True)
class Validity:
    """How long one order is valid: `until` in our time, `end_ms` in the exchange's, 0 until it is stamped.

    `window_ms` is how long the exchange accepts a timestamp of its key.
    """

    valid_ms: int
    until: float
    window_ms: int
    end_ms: int = 0

    def stamp(self, clock: ServerClock, stamps: Stamps, content: int, now: float) -> int:
        """Return the timestamp that is too old at the end, or up to twice the clock's bound before it.

        Raises Refusal if the exchange's time is unknown, or too uncertain for so short a time.
        """
        if not clock.is_synced:
            raise Refusal("clock_unsynced", "X-Gateway-Valid-Ms needs the exchange's time, not this host's.")
        if self.valid_ms < (shortest_ms := 2 * math.ceil(clock.error(now) * 1000)):
            detail = f"It is below {shortest_ms} ms, twice the possible error of the clock."
            raise Refusal("bad_request", f"X-Gateway-Valid-Ms is too short. {detail}")
        end_ms = clock.timestamp_ms(now) + math.floor((self.until - now) * 1000)
        self.end_ms = min(end_ms, self.end_ms or end_ms)
        # As a content of its own (`~content`): these timestamps lie apart from those of other orders.
        return stamps.take(self.end_ms - self.window_ms, ~content, min(FURTHEST_MS, self.valid_ms // _LOST))

    def check(self, now: float) -> None:
        """Raise Refusal `deadline_exceeded` if the time is over."""
        if self.until <= now:
            raise Refusal(
                "deadline_exceeded", "The time of X-Gateway-Valid-Ms was up before the request could be sent."
            )

    def explains(self, refused_at: float, error_s: float) -> bool:
        """Ask whether a timestamp was refused because the time was over, and not for a wrong clock."""
        return refused_at >= self.until - 2 * error_s - _ROUNDING_S


def begin_validity(valid_ms: int, since: float, alias: str, window_ms: int | None) -> Validity:
    """Return the validity of an order whose head was read at `since`. Raises Refusal `bad_request`.

    `window_ms` is None if it is not known to the millisecond.
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
    """Return a nonce above the last one of its key: the time, unless the last one is ahead of it."""
    return max(now_ms * PER_MS.get(kind, 1), last + 1)


class Nonces:
    """The nonces of one key: each is above those before it. `unique` makes a text that was never made before.

    They follow the exchange's time, so that they also rise over a restart, unless that time was set back. For
    that case the journal reserves them: it keeps a mark ahead of all used nonces, and the next start begins
    above the mark. `place` is the name under which the mark is kept.
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
        """Return the next nonce, empty if the venue has none."""
        if self.kind == "none":
            return b""
        if self.kind == "uuid":
            return self._unique().encode("ascii")
        self._last = next_nonce(self.kind, now_ms, self._last)
        return b"%d" % self._last

    @property
    def is_new(self) -> bool:
        """Whether no nonce was reserved since the start."""
        return self._until == 0

    def lacks(self, now_ms: int) -> bool:
        """Whether more must be reserved, because those left are used up within two seconds."""
        return next_nonce(self.kind, now_ms, self._last) + _LEAST_AHEAD_MS * self._per_ms > self._until

    def wanted(self, now_ms: int) -> int:
        """Return up to which number to reserve: some seconds ahead of the time.

        If the nonces are ahead of it already, only little more: so restarts in quick succession do not carry
        them far away from the time.
        """
        least = next_nonce(self.kind, now_ms, self._last) + 2 * _LEAST_AHEAD_MS * self._per_ms
        return max((now_ms + _RESERVED_MS) * self._per_ms, least)

    def reserved(self, kept: int, until: int) -> None:
        """Note that those up to `until` are reserved. `kept` is the mark before.

        At first it is the mark of an earlier run, which may have used all up to it.
        """
        if self.is_new:
            self._last = max(self._last, kept)
        self._until = max(kept, until)

    def ahead_s(self, nonce: int, now_ms: int) -> float:
        """Return by how many seconds a number is ahead of the time."""
        return (nonce / self._per_ms - now_ms) / 1000
