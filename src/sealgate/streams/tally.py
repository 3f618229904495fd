"""What is counted of streams, for metrics and page."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

_RATE_S: Final = 5.0  # over which a rate is taken, at least

# Results of an opening, beside the slugs of refusals by the gateway.
OPENED: Final = "opened"
REFUSED: Final = "refused"  # by the exchange
HUNG_UP: Final = "hung_up"  # the bot did not wait for it
# Results of a login.
OK: Final = "ok"
FAILED: Final = "failed"


@dataclass(slots=True)
class Traffic:
    """Messages and bytes in one direction."""

    messages: int = 0
    bytes: int = 0


class Rate:
    """Messages per second: over the latest five seconds or more, at first since the opening."""

    def __init__(self, now: float) -> None:
        self._since = now
        self._before = 0
        self._per_s: float | None = None

    def take(self, messages: int, now: float) -> float:
        """Return the rate, by how many messages there have been until `now`."""
        seconds = now - self._since
        per_s = (messages - self._before) / max(seconds, 1.0)
        if seconds >= _RATE_S:
            self._since, self._before, self._per_s = now, messages, per_s
        return per_s if self._per_s is None else self._per_s


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """One open stream. `request_id` is that of the request that opened it, `since` is epoch seconds.

    `is_logged_in` is None where no login is known of it.
    """

    request_id: str
    exchange: str
    bot: str
    key: str
    stream: str
    since: float
    is_logged_in: bool | None
    to_bot: Traffic
    to_exchange: Traffic
    messages_per_s: float


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts since the start: of openings, logins and orders, and of what ended streams carried.

    `opened` is by exchange, bot, stream and result; `logins` by exchange, key and result; `orders` by
    exchange, bot and outcome; `messages` and `bytes` by exchange, bot and direction.
    """

    opened: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    logins: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    orders: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    messages: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    bytes: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def carried(self, exchange: str, bot: str, direction: str, traffic: Traffic) -> None:
        """Add what a stream carried."""
        self.messages[exchange, bot, direction] += traffic.messages
        self.bytes[exchange, bot, direction] += traffic.bytes


@dataclass(frozen=True, slots=True)
class StreamsStatus:
    """The open streams, the oldest first, and copies of what was counted since the start, as in `Tally`.

    `traffic` has what the open streams carried, too, by exchange, bot and direction.
    """

    open: tuple[StreamStatus, ...] = ()
    opened: Mapping[tuple[str, str, str, str], int] = field(default_factory=dict)
    logins: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    orders: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    traffic: Mapping[tuple[str, str, str], Traffic] = field(default_factory=dict)
