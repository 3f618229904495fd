"""The sandbox exchange as a class of ccxt.pro, so that a bot for any exchange can be rehearsed there.

The sandbox has an API of its own, so this file takes the place of an exchange that ccxt knows. Signing is not
its business: the gateway signs.
"""

import json

import ccxt.pro
from ccxt.async_support import Exchange

STATES = {"open": "open", "filled": "closed", "canceled": "canceled"}


class Rehearsal(Exchange):
    """As much of ccxt's unified methods as a bot for one symbol needs."""

    def __init__(self, gateway_url, stream_url, account):
        super().__init__({"timeout": 45000, "enableRateLimit": False})
        self.urls = {"api": {"trade": f"{gateway_url}/v1/trade"}, "ws": stream_url}
        self.account = account

    def describe(self):
        """Say what it is called, and how ccxt's errors follow from a status."""
        return self.deep_extend(super().describe(), {"id": "rehearsal", "name": "Rehearsal", "pro": True})

    def sign(self, path, api="trade", method="GET", params=None, headers=None, body=None):
        """Assemble a request; the gateway signs it."""
        body = json.dumps(params) if method != "GET" else None
        headers = {"Content-Type": "application/json"} if body else {}
        return {"url": f"{self.urls['api'][api]}/{path}", "method": method, "body": body, "headers": headers}

    async def fetch_markets(self, params=None):
        """Return the symbols as swaps that are settled in USDC."""
        reply = await self.request("symbols/list", "trade")
        return [
            self.safe_market_structure(
                {
                    "id": one["symbol"],
                    "symbol": f"{one['symbol']}/USDC:USDC",
                    "base": one["symbol"],
                    "quote": "USDC",
                    "settle": "USDC",
                    "type": "swap",
                    "swap": True,
                    "precision": {"price": float(one["tick_size"]), "amount": 10.0 ** -one["size_decimals"]},
                }
            )
            for one in reply["symbols"]
        ]

    async def fetch_ticker(self, symbol, params=None):
        """Return the price of a symbol."""
        await self.load_markets()
        reply = await self.request("symbols/list", "trade")
        prices = {one["symbol"]: float(one["mark_price"]) for one in reply["symbols"]}
        return self.safe_ticker({"symbol": symbol, "last": prices[self.market_id(symbol)]})

    async def create_order(self, symbol, type, side, amount, price=None, params=None):  # noqa: A002 - as in ccxt
        """Place a limit order."""
        await self.load_markets()
        order = {"symbol": self.market_id(symbol), "side": side, "size": str(amount), "price": str(price)}
        reply = await self.request("order", "trade", "POST", order)
        return self.parse_order({**order, **reply})

    async def fetch_open_orders(self, symbol=None, since=None, limit=None, params=None):
        """Return the open orders of the account."""
        await self.load_markets()
        reply = await self.request(f"user/{self.account}/openOrders", "trade")
        return [self.parse_order({**one, "status": "open"}) for one in reply["orders"]]

    async def fetch_balance(self, params=None):
        """Return the positions, as if they were coins."""
        reply = await self.request(f"user/{self.account}/positions", "trade")
        return self.safe_balance({one["symbol"]: {"total": one["size"]} for one in reply["positions"]})

    def parse_order(self, order, market=None):
        """Return an order in ccxt's words."""
        found = {
            "id": str(order["order_id"]),
            "side": order["side"],
            "price": float(order["price"]),
            "status": STATES[order["status"]],
        }
        return self.safe_order(found, market)

    async def watch_orders(self, symbol=None, since=None, limit=None, params=None):
        """Return the next updates of the account's orders."""
        url = self.urls["ws"]
        if "login" not in self.client(url).subscriptions:
            await self.watch(url, "login", {"op": "login", "args": {}}, "login")
        return await self.watch(url, "orders", {"op": "subscribe", "channel": "orders"}, "orders")

    def handle_message(self, client, message):
        """Take in a message of the stream."""
        if message.get("op") == "login":
            client.resolve(message, "login")
        elif message.get("channel") == "orders":
            client.resolve([self.parse_order(message["data"])], "orders")


assert issubclass(Rehearsal, ccxt.pro.Exchange)
