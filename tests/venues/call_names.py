"""What ccxt calls the requests whose names it signs, by venue, method and path.

`python -m venues.call_names`, in the folder of the tests: a program of its own, as oracle.py is.
"""

import json
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import ccxt  # type: ignore[import-untyped]

from venues.calls import VENUES
from venues.oracle import exchange_with
from venues.unified import coarse

_SYMBOL = "BTC/USDT:USDT"
_CALLS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("create_order", (_SYMBOL, "limit", "buy", 5, 50000)),
    ("create_order", (_SYMBOL, "market", "buy", 5)),
    ("create_order", (_SYMBOL, "limit", "sell", 5, None, {"stopLossPrice": 49000})),
    ("create_order", (_SYMBOL, "limit", "sell", 5, 50000, {"triggerPrice": 49000})),
    ("edit_order", ("77", _SYMBOL, "limit", "buy", 5, 50000)),
    ("cancel_order", ("77", _SYMBOL)),
    ("cancel_order", ("77", _SYMBOL, {"trigger": True})),
    ("cancel_all_orders", (_SYMBOL,)),
    ("set_leverage", (3, _SYMBOL)),
    ("set_margin_mode", ("cross", _SYMBOL)),
    ("withdraw", ("USDC", 5, "there")),
    ("transfer", ("USDC", 5, "here", "there")),
    ("bind_agent_wallet", ("agent",)),
    ("create_api_key", ()),
    ("revoke_api_key", ("key",)),
    ("fetch_api_keys", ()),
    ("approve_builder_code", ("code", "1")),
    ("revoke_builder_code", ("code",)),
)


def of_a_table() -> dict[str, str]:
    """Return those of backpack, which ccxt has in a table."""
    table = ccxt.backpack().options["instructions"]
    return {f"{method} /{path}": name for path, names in table.items() for method, name in names.items()}


def of_methods() -> dict[str, str]:
    """Return those of pacifica: what each of ccxt's methods signs, and where it sends it."""
    exchange = exchange_with(VENUES["pacifica"], is_dummy=False)
    exchange.enableRateLimit = False
    exchange.options["builderFee"] = False
    exchange.set_markets([coarse(_SYMBOL)])
    exchange.currencies = {"USDC": {"id": "USDC", "code": "USDC"}}
    names: dict[str, str] = {}
    signed: list[str] = []
    own = exchange.sign_message

    def sign_message(header: dict[str, Any], *arguments: Any) -> Any:
        signed.append(header["type"])
        return own(header, *arguments)

    def fetch(url: str, method: str, *_: Any) -> Any:
        names[f"{method} {urlsplit(url).path.removeprefix('/api/v1')}"] = signed[-1]
        return {}

    exchange.sign_message, exchange.fetch = sign_message, fetch
    for name, arguments in _CALLS:
        with suppress(ccxt.BaseError, AttributeError, LookupError, TypeError, ValueError):
            getattr(exchange, name)(*arguments)
    return names


if __name__ == "__main__":
    print(json.dumps({"backpack": of_a_table(), "pacifica": of_methods()}))  # noqa: T201
