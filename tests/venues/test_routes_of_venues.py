"""Which requests go unsigned, against ccxt.

Where the query is signed, an exchange refuses parameters that it did not ask for: market data must go as it
came, and nothing else may.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from sealgate.core.routes import Auth, RouteRow
from sealgate.core.venues.venue import Venue
from venues.through import FOLDER, venue_of

HERE = Path(__file__).parent
BY_QUERY = ("binance", "mexc", "bingx", "htx", "coinsph", "kraken", "hashkey", "toobit", "bitrue", "btcbox")

# What ccxt has as public, and as private, too: the exchange's documents call it public.
_TWICE = {
    "/openApi/swap/v2/quote/bookTicker",
    "/v2/etp/reference",
    "/v2/etp/rebalance",
    "/v2/reference/currencies",
}


class Call(NamedTuple):
    method: str
    path: str
    is_signed: bool


@pytest.fixture(scope="session")
def calls() -> dict[str, list[Call]]:
    oracle = [sys.executable, "-m", "venues.oracle", "calls", *BY_QUERY]
    printed = subprocess.run(oracle, cwd=HERE.parent, check=True, capture_output=True, text=True).stdout
    found: dict[str, list[Call]] = {}
    for row in map(json.loads, printed.splitlines()):
        found.setdefault(row["venue"], []).append(Call(row["method"], row["path"], row["is_signed"]))
    return found


def auth_of(venue: Venue, call: Call) -> Auth:
    """Return how a request proves itself: a literal goes before a placeholder, both before a subtree."""
    ranked = [
        (rank, route)
        for route in venue.routes
        if route.method in (call.method, "*") and (rank := _rank(route, call.path))
    ]
    return max(ranked, key=lambda pair: pair[0])[1].auth if ranked else Auth.SIGNED


def _rank(route: RouteRow, path: str) -> list[int]:
    wanted, segments = route.template.strip("/").split("/"), path.strip("/").split("/")
    if wanted[-1] == "**":
        wanted, segments = wanted[:-1], segments[: len(wanted) - 1]
    if len(wanted) != len(segments) or any(
        own != other and not own.startswith("{") for own, other in zip(wanted, segments, strict=True)
    ):
        return []
    return [1 + (own == other) for own, other in zip(wanted, segments, strict=True)] or [0]


@pytest.mark.parametrize("name", BY_QUERY)
def test_what_ccxt_signs_is_signed(name: str, calls: dict[str, list[Call]]) -> None:
    venue = venue_of(FOLDER / f"{name}.toml")
    signed = [call for call in calls[name] if call.is_signed and call.path not in _TWICE]
    assert len(signed) > 3
    assert [call for call in signed if auth_of(venue, call) is not Auth.SIGNED] == []


@pytest.mark.parametrize("name", BY_QUERY)
def test_market_data_goes_as_it_came(name: str, calls: dict[str, list[Call]]) -> None:
    venue = venue_of(FOLDER / f"{name}.toml")
    assert [
        call
        for call in calls[name]
        if not call.is_signed and auth_of(venue, call) is Auth.SIGNED and not is_elsewhere(name, call)
    ] == []


def is_elsewhere(name: str, call: Call) -> bool:
    """Ask whether it is another venue's file, another host's, or nothing that ccxt could have right."""
    others = {
        "mexc": ("/api/v1/", "/open/"),
        "bitrue": ("/fapi/", "/dapi/", "/api/kline/"),
        "kraken": ("/api/v2/help_center/",),
        "btcbox": ("//ajax/",),
        "htx": ("/swap-api/v1/linear-swap-api/",),
        "binance": ("/fapi/v1/apiTradingStatus",),
    }
    return call.path.startswith(others.get(name, ("\0",)))
