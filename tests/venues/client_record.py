"""What client libraries raised for the gateway's own replies, as docs/client-errors.md shows it."""

import json
from pathlib import Path
from typing import NamedTuple

RECORD = Path(__file__).parent / "client_errors.jsonl"  # client_errors.py writes it
CCXT = "ccxt"
# Libraries, and the venue that each one is for.
LIBRARIES = {
    "python-binance": "binance",
    "binance-sdk-spot": "binance",
    "pybit": "bybit",
    "python-okx": "okx",
    "krakenex": "kraken",
    "kucoin-universal-sdk": "kucoin",
    "gate-api": "gate",
    "coinbase-advanced-py": "coinbase",
}
BY_HTTPS = ("coinbase-advanced-py",)  # which knows no other way
AT_VENUES = (
    *("binance", "binanceusdm", "binancecoinm", "bybit", "okx", "coinbase", "kraken", "krakenfutures"),
    *("kucoin", "kucoinfutures", "gate", "bitget", "mexc", "mexc-contract", "htx", "bitfinex", "deribit"),
    *("cryptocom", "bitstamp", "bingx", "phemex", "whitebit", "upbit", "gemini"),
)
# A kind of refusal: its reason, the gateway that has it, and the bot that asks.
KINDS = {
    "authentication": ("bot_unauthenticated", "fine", ""),
    "permission": ("bot_forbidden", "fine", "eyes"),
    "halt": ("halted", "halted", "grid"),
    "rate limit": ("rate_limited", "limited", "grid"),
    "unknown": ("upstream_broken", "silent", "grid"),
    "deadline": ("deadline_exceeded", "slow", "grid"),
    "unavailable": ("upstream_unreachable", "away", "grid"),
}


class Raised(NamedTuple):
    """What one library raised for one kind of refusal: its class, None for a reply that was returned."""

    library: str
    venue: str
    kind: str
    raised: str | None
    text: str  # up to the reason, or its beginning where it has none


def recorded() -> list[Raised]:
    """Return what was raised when it was last written down."""
    return [Raised(**json.loads(line)) for line in RECORD.read_text("utf-8").splitlines()]


def libraries_block() -> str:
    """Return the table of what each library raises."""
    head = ["library", "refusal", "raises", "its text"]
    return _table(head, [_row(one) for one in recorded() if one.library != CCXT])


def _row(one: Raised) -> list[str]:
    raised = f"`{one.raised}`" if one.raised else "returns it"
    return [one.library, f"`{KINDS[one.kind][0]}`", raised, f"`{' '.join(one.text.split())}`"]


def ccxt_block() -> str:
    """Return the table of what ccxt's classes raise, a row for each exchange."""
    found = {(one.venue, one.kind): one.raised for one in recorded() if one.library == CCXT}
    head = ["exchange", *(f"`{reason}`" for reason, _, _ in KINDS.values())]
    rows = [
        [f"`{venue}`", *(str(found[venue, kind]).partition(".")[2] for kind in KINDS)] for venue in AT_VENUES
    ]
    return _table(head, rows)


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
