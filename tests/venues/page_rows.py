"""What all pages about venues share: rows of tables, and which venue is like which, and on which page."""

from collections.abc import Iterable

from sealgate.config.venues import built_in_venue
from sealgate.venues.venue import Venue

DEFAULT = "service"  # the sandbox's own
# The pages, each with the venues that it is about.
PAGES = {
    "binance": (
        *("binance", "binanceusdm", "binancecoinm", "binance-papi", "binance-options"),
        "binanceus",
    ),
    "bybit": ("bybit", "bybiteu", "bybitid"),
    "okx": ("okx", "myokx", "okxus"),
    "kraken": ("kraken", "krakenfutures"),
    "coinbase": ("coinbase", "coinbaseexchange", "coinbaseinternational"),
    "kucoin": ("kucoin", "kucoinfutures"),
    "gate": ("gate", "gateeu"),
    "bitget": ("bitget",),
}


def parent_of(venue: Venue) -> Venue | None:
    """Return the venue that a file is like."""
    return built_in_venue(venue.like) if venue.like else None


def code(names: Iterable[str]) -> str:
    """Return names in code font."""
    return ", ".join(f"`{name}`" for name in names)


def table_row(*cells: str) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(cells)} |\n"
