"""What is known of a read that was refused, for tests of its causes."""

from typing import Any

from sealgate.diagnose.causes import Facts
from sealgate.keys.wrong_secrets import Shape

NOW_MS = 1_800_000_000_000


def facts(**known: Any) -> Facts:
    """Return facts that speak for nothing, but for those that are given."""
    usual: dict[str, Any] = {
        "alias": "main",
        "timestamp_ms": NOW_MS,
        "round_trip_ms": 30,
        "clock_error_ms": 2,
        "recv_window_ms": 5000,
        "server_now_s": NOW_MS / 1000,
        "shape": Shape(),
        "record": None,
        "is_listed": None,
        "is_to_trade": False,
        "scheme_is_default": True,
        "header_prefix": "X-SERVICE-",
        "path": "/v1/trade/symbols/list",
    }
    return Facts(**usual | known)
