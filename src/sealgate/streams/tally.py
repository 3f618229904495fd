"""What is counted of streams, for metrics and page."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Traffic:
    """Messages and bytes in one direction."""

    messages: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """One open stream. `since` is epoch seconds; `is_logged_in` is None where no login is known of it."""

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
