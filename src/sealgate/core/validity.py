"""The timestamps of one key, and X-Gateway-Valid-Ms: until when an order may execute, held by its timestamp.

The order is dated back, so that its timestamp is too old once the time is over. That end is fixed when the
head is read, and by the exchange's clock with the first attempt: no resend, and no sample, extends it.
"""

import math
import re
from dataclasses import dataclass

from sealgate.core.clock import ServerClock
from sealgate.errors import Refusal

FURTHEST_MS = 500  # before now; a flood of equal requests repeats itself rather than grow older than that
_KEPT = 1024  # contents


_NEVER = (0, 0, 0)
_MILLISECONDS = re.compile(r"[0-9]{1,9}")
_ROUNDING_S = 0.003  # of timestamps, by which a window may end before its time
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
    """That of one order: `until` is its end by our clock, `end_ms` by the exchange's, 0 until it is stamped.

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
            detail = f"It is below {shortest_ms} ms, twice what the exchange's clock may be off by."
            raise Refusal("bad_request", f"X-Gateway-Valid-Ms is too short. {detail}")
        end_ms = clock.timestamp_ms(now) + math.floor((self.until - now) * 1000)
        self.end_ms = min(end_ms, self.end_ms or end_ms)
        # Not of one content with the others, as these do not rise as they do.
        return stamps.take(self.end_ms - self.window_ms, ~content, min(FURTHEST_MS, self.valid_ms // _LOST))

    def check(self, now: float) -> None:
        """Raise Refusal `deadline_exceeded` where it is over."""
        if self.until <= now:
            raise Refusal("deadline_exceeded", "X-Gateway-Valid-Ms was over before it could be sent.")

    def explains(self, refused_at: float, error_s: float) -> bool:
        """Ask whether a timestamp was refused for this, and so for no fault of anybody's clock."""
        return refused_at >= self.until - 2 * error_s - _ROUNDING_S


def begin_validity(valid_ms: int, since: float, alias: str, window_ms: int | None) -> Validity:
    """Return the validity of an order whose head was read at `since`. Raises Refusal `bad_request`.

    `window_ms` is None where it is not known to the millisecond.
    """
    if window_ms is None:
        detail = f"how long the exchange takes a timestamp of the key {alias} is not known to the millisecond"
        raise Refusal("bad_request", f"X-Gateway-Valid-Ms cannot be held: {detail}.")
    if valid_ms > window_ms:
        detail = f"It is above keys.{alias}.recv_window_ms, {window_ms} ms."
        raise Refusal("bad_request", f"X-Gateway-Valid-Ms is too long. {detail}")
    return Validity(valid_ms, since + valid_ms / 1000, window_ms)
