"""A bot for ccxt.pro: it buys below the market, and sells above it what it has bought.

    python ladder.py bybit http://127.0.0.1:8787 BTC/USDT 0.001

It holds no API key: it logs in and signs with made-up credentials, and Sealgate puts in the real ones. The
bot's token is in the file that $TOKEN_FILE names.
"""

import asyncio
import contextlib
import json
import os
import pathlib
import re
import sys

import ccxt.pro

BUY_AT, SELL_AT = 0.995, 1.005  # of the market's price
PAUSE_S, LOOK_S = 5, 60


def connect(name, gateway, token):
    """Return an unmodified class of ccxt.pro that reaches its exchange through the gateway."""
    proof = {"X-Gateway-Token": token}
    exchange = getattr(ccxt.pro, name)(
        {
            "apiKey": "made-up",
            "secret": "bWFkZS11cA==",
            "password": "made-up",
            "headers": proof,
            "timeout": 45000,
            "enableRateLimit": False,
            "options": {"ws": {"options": {"headers": proof}}},
        }
    )
    # https://HOST/PATH becomes http://GATEWAY/PATH, and wss://HOST/PATH ws://GATEWAY/HOST/PATH.
    streams = gateway.replace("http", "ws", 1)
    urls = re.sub(r'"https://[^/"]+', f'"{gateway}', json.dumps(exchange.urls))
    exchange.urls = json.loads(urls.replace('"wss://', f'"{streams}/'))
    return exchange


class Ladder:
    """Keeps one order in the market: a buy, or the sell of what it holds.

    It remembers nothing: what it has to do follows from the open orders and the balance. So an order whose
    reply was lost is not placed twice, and a fill that the stream did not tell is not missed.
    """

    def __init__(self, exchange, symbol, size, pause=asyncio.sleep):
        self.exchange, self.symbol, self.size, self.pause = exchange, symbol, size, pause

    async def run(self):
        """Trade until the task is cancelled."""
        while True:
            news = asyncio.ensure_future(self.news())  # before it looks, so that no change is missed
            try:
                await self.step()
                await news
            except ccxt.OperationFailed as error:  # the network, the exchange, the gateway: look again later
                print("try again:", str(error)[:200])
                await self.pause(PAUSE_S)
            finally:
                news.cancel()

    async def news(self):
        """Wait until the stream tells of a change, but not for long: it may have missed one."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK_S):
                await self.exchange.watch_orders(self.symbol)

    async def step(self):
        """Place the next order, unless there is one."""
        if await self.exchange.fetch_open_orders(self.symbol):
            return
        balance = await self.exchange.fetch_balance()
        coin = self.symbol.partition("/")[0]
        has_bought = balance.get(coin, {}).get("total", 0) >= self.size
        side, at = ("sell", SELL_AT) if has_bought else ("buy", BUY_AT)
        ticker = await self.exchange.fetch_ticker(self.symbol)
        price = float(self.exchange.price_to_precision(self.symbol, ticker["last"] * at))
        order = await self.exchange.create_order(self.symbol, "limit", side, self.size, price)
        print(side, self.size, "at", price, "is order", order["id"])


async def main(name, gateway, token, symbol, size):
    """Trade at the exchange of that name."""
    exchange = connect(name, gateway, token)
    try:
        await Ladder(exchange, symbol, float(size)).run()
    finally:
        await exchange.close()


if __name__ == "__main__":
    name, gateway, *traded = sys.argv[1:]
    token = pathlib.Path(os.environ["TOKEN_FILE"]).read_text().strip()
    asyncio.run(main(name, gateway, token, *traded))
