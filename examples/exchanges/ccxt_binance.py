"""An unmodified ccxt.binance that trades spot and futures: each of its hosts is an exchange of the gateway.

binance.toml beside this file has the real key and the bot's token (docs/recipes.md).
"""

import json

import ccxt

GATEWAY = "http://127.0.0.1:8787"
HOSTS = {
    "api.binance.com": "binance",
    "fapi.binance.com": "binanceusdm",
    "dapi.binance.com": "binancecoinm",
}

exchange = ccxt.binance(
    {
        "apiKey": "made-up",
        "secret": "made-up",
        "headers": {"Authorization": "Bearer TOKEN"},
        "timeout": 45000,
        "enableRateLimit": False,
    }
)
api = json.dumps(exchange.urls["api"])
for host, name in HOSTS.items():
    api = api.replace(f"https://{host}/", f"{GATEWAY}/{name}/")
exchange.urls["api"] = json.loads(api)

for symbol, account in {"BTC/USDT": "spot", "BTC/USDT:USDT": "swap"}.items():
    print(exchange.fetch_balance({"type": account})["USDT"])
    order = exchange.create_order(symbol, "limit", "buy", 0.001, 65000)
    print(order["id"], exchange.last_response_headers["X-Gateway-Outcome"])
