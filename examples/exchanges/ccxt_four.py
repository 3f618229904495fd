"""Four exchanges in one process, through one gateway: unmodified classes of ccxt with made-up keys.

sealgate.toml beside this file has the real keys and the bot's token (docs/recipes.md).
"""

import json
import re

import ccxt

GATEWAY = "http://127.0.0.1:8787"


def behind_the_gateway(name):
    exchange = getattr(ccxt, name)(
        {
            "apiKey": "made-up",
            "secret": "bWFkZS11cA==",
            "password": "made-up",
            "headers": {"Authorization": "Bearer TOKEN"},
            "timeout": 45000,
            "enableRateLimit": False,
            "options": {"fetchMarkets": {"types": ["spot"]}},
        }
    )
    api = json.dumps(exchange.urls["api"])
    exchange.urls["api"] = json.loads(re.sub(r'"https://[^/"]+', f'"{GATEWAY}/{name}', api))
    return exchange


for name, symbol in {
    "binance": "BTC/USDT",
    "bybit": "BTC/USDT",
    "okx": "BTC/USDT",
    "kraken": "BTC/USD",
}.items():
    exchange = behind_the_gateway(name)
    print(name, exchange.fetch_balance()[symbol.partition("/")[2]])
    order = exchange.create_order(symbol, "limit", "buy", 0.001, 65000)
    print(order["id"], exchange.last_response_headers["X-Gateway-Outcome"])
