"""X-Gateway-Valid-Ms: the validity of an order, enforced through its timestamp.

The order gets an earlier timestamp, so that the exchange refuses it as too old once the time is over. The end
is fixed when the head is read, and in the exchange's time at the first attempt: neither a resend nor a new
clock sample extends it.
"""

import math
import re
from dataclasses import dataclass

from sealgate.errors import Refusal
from sealgate.exchange.clock import ServerClock
from sealgate.exchange.stamps import FURTHEST_MS, Stamps

_MILLISECONDS = re.compile(r"[0-9]{1,9}")
_ROUNDING_S = 0.003  # of timestamps, which may end a window early
_LOST = 10  # an order loses at most this part of its time to equal orders


def parse_valid_ms(text: str) -> int:
    """Return the milliseconds of X-Gateway-Valid-Ms. Raises Refusal `bad_request`."""
    if not _MILLISECONDS.fullmatch(text) or not int(text):
        raise Refusal("bad_request", "X-Gateway-Valid-Ms is not a whole number of milliseconds above 0.")
    return int(text)


@dataclass(slots=True)
class Validity:
    """The validity of one order: `until` in our time, `end_ms` in the exchange's, 0 until it is stamped.

    `window_ms` is the receive window of its key.
    """

    valid_ms: int
    until: float
    window_ms: int
    end_ms: int = 0

    def stamp(self, clock: ServerClock, stamps: Stamps, content: int, now: float) -> int:
        """Return a timestamp that becomes too old at the end, or earlier by up to twice the clock error.

        Raises Refusal if the exchange's time is unknown, or too uncertain for so short a time.
        """
        if not clock.is_synced:
            raise Refusal(
                "clock_unsynced", ("X-Gateway-Valid-Ms needs the exchange's time, not this machine's.")
            )
        if self.valid_ms < (shortest_ms := 2 * math.ceil(clock.error(now) * 1000)):
            detail = f"It is below {shortest_ms} ms, twice the possible error of the clock."
            raise Refusal("bad_request", f"X-Gateway-Valid-Ms is too short. {detail}")
        end_ms = clock.timestamp_ms(now) + math.floor((self.until - now) * 1000)
        self.end_ms = min(end_ms, self.end_ms or end_ms)
        # As a content of its own (`~content`): these timestamps are separate from those of other orders.
        return stamps.take(self.end_ms - self.window_ms, ~content, min(FURTHEST_MS, self.valid_ms // _LOST))

    def check(self, now: float) -> None:
        """Raise Refusal `deadline_exceeded` if the time is over."""
        if self.until <= now:
            raise Refusal(
                "deadline_exceeded", "The time of X-Gateway-Valid-Ms was up before the request could be sent."
            )

    def explains(self, refused_at: float, error_s: float) -> bool:
        """Return whether a timestamp was refused because the time was over, not because of a wrong clock."""
        return refused_at >= self.until - 2 * error_s - _ROUNDING_S


def begin_validity(valid_ms: int, since: float, alias: str, window_ms: int | None) -> Validity:
    """Return the validity of an order whose head was read at `since`. Raises Refusal `bad_request`.

    `window_ms` is None if it is not known to the millisecond.
    """
    if window_ms is None:
        detail = f"the receive window of the key {alias} is not known to the millisecond"
        raise Refusal("bad_request", f"X-Gateway-Valid-Ms cannot be enforced: {detail}.")
    if valid_ms > window_ms:
        detail = f"It is above keys.{alias}.recv_window_ms, {window_ms} ms."
        raise Refusal("bad_request", f"X-Gateway-Valid-Ms is too long. {detail}")
    return Validity(valid_ms, since + valid_ms / 1000, window_ms)
