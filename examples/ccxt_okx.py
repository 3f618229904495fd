"""An unmodified class of ccxt behind the gateway: a made-up key, another address.

sealgate.toml has `venue = "okx"`, the real key and a bot's token (docs/recipes.md).
"""

import json
import re

import ccxt

GATEWAY = "http://127.0.0.1:8787"

exchange = ccxt.okx(
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
exchange.urls["api"] = json.loads(re.sub(r'"https://[^/"]+', f'"{GATEWAY}', api))

print(exchange.fetch_balance()["USDT"])
order = exchange.create_order("BTC/USDT", "limit", "buy", 0.001, 65000)
print(order["info"], exchange.last_response_headers["X-Gateway-Outcome"])
