"""Let ccxt.pro's own methods say what they send over a stream.

`python -m venues.pro_messages`, in the folder of the tests: a program of its own, as oracle.py is. It prints
JSON lines: the class, the method, the address and the message.
"""

import asyncio
import inspect
import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import ccxt.pro  # type: ignore[import-untyped]
from ccxt.async_support.base.ws.client import Client  # type: ignore[import-untyped]

from venues.stream_calls import LINEAR, MARKETS, SPOT

_KEY = "c2VjcmV0" * 8  # in base64, for those that decode it
# What REST replies before a stream is opened: a token, under each name that some exchange has for it.
_TOKENS = {"token": "T", "expires": 900, "listenKey": "L", "code": "0"}
_REPLY = {
    **_TOKENS,
    "result": _TOKENS,
    "data": {**_TOKENS, "instanceServers": [{"endpoint": "wss://x.example", "pingInterval": 1000}]},
}
_ARGUMENTS: dict[str, Any] = {
    "timeframe": "1m",
    "type": "limit",
    "side": "buy",
    "amount": 1.5,
    "price": 65000.5,
    "id": "77",
    "ids": ["77", "78"],
    "code": "BTC",
}


def methods(exchange: Any) -> Iterator[str]:
    """Yield the names of the methods with which a bot sends something."""
    unified = {name.lower() for name in exchange.has}
    for name in dir(exchange):
        is_sent = name.endswith("_ws") or name.startswith(("watch_", "un_watch_"))
        if name == "ping" or (is_sent and name.replace("_", "") in unified):
            yield name


def arguments(method: Any, symbol: str) -> list[Any]:
    """Return what a method is called with, by the names of its parameters."""
    of_symbol: dict[str, Any] = {
        "params": {},
        "symbol": symbol,
        "symbols": [symbol],
        "symbolsAndTimeframes": [[symbol, "1m"]],
        "orders": [{"symbol": symbol, "type": "limit", "side": "buy", "amount": 1.5, "price": 65000.5}] * 2,
        "client": Client("wss://x.example", None, None, None, None),
    }
    known = {**_ARGUMENTS, **of_symbol}
    return [
        known.get(name, "x" if one.default is inspect.Parameter.empty else one.default)
        for name, one in inspect.signature(method).parameters.items()
    ]


def bot_of(name: str, sent: list[tuple[str, Any]]) -> Any:
    """Return one of ccxt.pro's exchanges that writes down what it would send."""
    texts = ("apiKey", "password", "uid", "accountId", "login", "token")
    exchange = getattr(ccxt.pro, name)(
        {
            **dict.fromkeys(texts, "K"),
            "secret": _KEY,
            "walletAddress": "0x" + "2" * 40,
            "privateKey": "1" * 64,
        }
    )
    exchange.set_markets([*MARKETS])

    async def fetch(*_: Any, **__: Any) -> Any:
        return _REPLY

    async def watch(url: str, _hash: Any, message: Any = None, *_: Any, **__: Any) -> Any:
        if message is not None:
            sent.append((url, message))
        return {}

    exchange.enableRateLimit = False
    exchange.open = lambda: None
    exchange.fetch = fetch
    exchange.watch = exchange.watch_multiple = watch
    return exchange


def driven(call: Any) -> Any:
    """Return what a call returns if it waits for nothing; what it waits for never comes."""
    if not inspect.iscoroutine(call):
        return call
    try:
        call.send(None)
    except StopIteration as done:
        return done.value
    call.close()
    return None


async def main() -> None:
    def ready(_client: Any, _hash: Any) -> Any:
        future = asyncio.get_running_loop().create_future()
        future.set_result({})
        return future

    Client.future = Client.reusable_future = Client.reusableFuture = ready
    for name in ccxt.pro.exchanges:
        sent: list[tuple[str, Any]] = []
        exchange = bot_of(name, sent)
        for called in methods(exchange):
            method = getattr(exchange, called)
            for symbol in (SPOT, LINEAR):
                # Many cannot do it, or want more than they are given: what they have sent until then counts.
                with suppress(Exception):
                    result = driven(method(*arguments(method, symbol)))
                    if called == "ping" and result is not None:
                        sent.append(("", result))
            for url, message in sent:
                print(json.dumps([name, called, url, message], default=str))  # noqa: T201 - read by a test
            sent.clear()


if __name__ == "__main__":
    asyncio.run(main())
