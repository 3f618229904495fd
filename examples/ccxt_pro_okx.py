"""An unmodified class of ccxt.pro behind the gateway: it logs in with a made-up key, at another address.

sealgate.toml has `venue = "okx"`, the real key and a bot's token (docs/streams.md).
"""

import asyncio
import json
import re

import ccxt.pro

GATEWAY = "127.0.0.1:8787"  # with several exchanges "127.0.0.1:8787/okx"
PROOF = {"X-Gateway-Token": "TOKEN"}


async def main():
    exchange = ccxt.pro.okx(
        {
            "apiKey": "made-up",
            "secret": "bWFkZS11cA==",
            "password": "made-up",
            "headers": PROOF,
            "timeout": 45000,
            "enableRateLimit": False,
            "options": {"fetchMarkets": {"types": ["spot"]}, "ws": {"options": {"headers": PROOF}}},
        }
    )
    # wss://HOST/PATH is ws://GATEWAY/HOST/PATH here, and https://HOST/PATH is http://GATEWAY/PATH.
    urls = re.sub(r'"https://[^/"]+', f'"http://{GATEWAY}', json.dumps(exchange.urls))
    exchange.urls = json.loads(urls.replace('"wss://', f'"ws://{GATEWAY}/'))
    try:
        for order in await exchange.watch_orders():
            print(order["id"], order["status"], order["filled"])
        place = exchange.create_order_ws if exchange.has["createOrderWs"] else exchange.create_order
        order = await place("BTC/USDT", "limit", "buy", 0.001, 65000)
        print("placed", order["id"])
    finally:
        await exchange.close()


asyncio.run(main())
