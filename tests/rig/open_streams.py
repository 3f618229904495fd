"""Streams that are open, as a gateway says it, and what it counted of them."""

from typing import Any

from sealgate.streams.tally import StreamsStatus, StreamStatus, Traffic

PRIVATE = "stream.example.com/v5/private"


def stream(**changes: Any) -> StreamStatus:
    """Return an open stream of the bot grid that differs so."""
    usual: dict[str, Any] = {
        "request_id": "r-1",
        "exchange": "spot",
        "bot": "grid",
        "key": "main",
        "stream": PRIVATE,
        "since": 1_789_999_000.0,
        "is_logged_in": True,
        "to_bot": Traffic(1200, 64_000),
        "to_exchange": Traffic(7, 900),
        "messages_per_s": 12.345,
    }
    return StreamStatus(**usual | changes)


COUNTED = StreamsStatus(
    open=(stream(), stream(), stream(bot="maker", stream="other.example.com/")),
    opened={
        ("spot", "grid", PRIVATE, "opened"): 5,
        ("spot", "grid", "gone.example.com/", "opened"): 1,
        ("spot", "grid", PRIVATE, "refused"): 2,
        ("spot", "grid", "other", "unknown_stream"): 3,
    },
    logins={("spot", "main", "ok"): 4},
    orders={("spot", "grid", "done"): 8, ("spot", "grid", "unknown"): 1},
    traffic={
        ("spot", "grid", "to_bot"): Traffic(1200, 64_000),
        ("spot", "grid", "to_exchange"): Traffic(7, 900),
    },
)
