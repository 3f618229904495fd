"""Orders in doubt: they were sent, and what became of them is not known.

An order in doubt may have been executed, or may be so until its fence has passed. Only looking it up at the
exchange ends the doubt; nothing here does so by itself.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from sealgate.core.venues.document import pick

_LONGEST = 64  # characters of a term that is shown
# Where the body of an order has them, as JSON pointers.
POINTERS = {"symbol": "/symbol", "side": "/side", "size": "/size", "price": "/price"}


class Terms(NamedTuple):
    """What an order is about, each as it was written; None where its body does not say."""

    symbol: str | None = None
    side: str | None = None
    size: str | None = None
    price: str | None = None


def read_terms(body: bytes | None, pointers: Mapping[str, str] = POINTERS) -> Terms:
    """Read the terms of an order from its body; numbers keep every digit that was sent."""
    try:
        document = json.loads(body or b"", parse_float=str, parse_int=str, parse_constant=str)
    except (ValueError, RecursionError):
        return Terms()
    return Terms(**{name: _text(pick(document, pointer)) for name, pointer in pointers.items()})


def _text(value: object) -> str | None:
    """Return a value that can be shown in a line, None for any other: a bot may have sent anything."""
    if isinstance(value, str) and 0 < len(value) <= _LONGEST and value.isprintable():
        return value
    return None


@dataclass(frozen=True, slots=True)
class Doubt:
    """One of them, as its readers want it; times are epoch ms.

    `id` is the gateway's own, `request_id` the one in log and reply, which a bot may have chosen. `sent_ms`
    is by this host's clock; `timestamp_ms`, which was signed, and `fence_ms`, after which it can no longer be
    admitted, are by the exchange's. The last four are its `Terms`.
    """

    id: str
    request_id: str
    bot: str
    key: str
    method: str
    route: str
    target: str
    idempotency_key: str | None
    timestamp_ms: int
    fence_ms: int
    attempts: int
    sent_ms: int
    symbol: str | None = None
    side: str | None = None
    size: str | None = None
    price: str | None = None

    @property
    def terms_words(self) -> str:
        """The terms as a person says them, "" where none is known."""
        price = f"at {self.price}" if self.price else None
        return " ".join(filter(None, (self.side, self.size, self.symbol, price)))


@dataclass(frozen=True, slots=True)
class JournalStatus:
    """The journal at one moment. `doubts` are the oldest of the `in_doubt` orders, as many as are shown.

    `trouble` is why nothing can be written, in words, None where all is well; `is_refusing` says that orders
    are refused for it.
    """

    in_doubt: int
    doubts: tuple[Doubt, ...]
    trouble: str | None
    is_refusing: bool
