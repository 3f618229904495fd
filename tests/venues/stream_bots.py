"""ccxt.pro's own classes as bots: they dial a scripted exchange at once, or a gateway.

They are unmodified but for a clock that stands still, what they draw at random, and their addresses.
"""

import asyncio
import base64
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random  # noqa: TID251 - seeded
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import ccxt.pro  # type: ignore[import-untyped]

from venues.private_keys import FORMS, key_of
from venues.stream_calls import MARKETS, Exchange, Login

UUID = "11111111-0000-4000-8000-00000000cafe"  # what a bot draws


class Key(NamedTuple):
    """An API key; two of one row have the same shape."""

    api_key: str
    secret: str
    passphrase: str
    uid: str


def key_for(name: str, login: Login, owner: str) -> Key:
    """Return a key for a row, the same for an owner each time."""
    chance = Random(f"{name} {owner}")
    api_key, secret, passphrase, uid = (chance.randbytes(size).hex() for size in (16, 24, 6, 5))
    if login.kind != "hmac":
        secret = FORMS[login.secret](key_of(login.kind, owner))
    elif login.secret == "base64":
        secret = base64.b64encode(secret.encode()).decode()
    return Key(login.api_key + api_key, secret, passphrase, uid)


def bot_of(login: Login, key: Key, now_ms: Callable[[], int], uuid: str = UUID) -> Exchange:
    """Return one of ccxt.pro's exchanges, which knows its markets and the time."""
    exchange = getattr(ccxt.pro, login.exchange)(
        {
            "apiKey": key.api_key,
            **dict.fromkeys(("secret", "privateKey"), key.secret),
            "password": key.passphrase,
            **dict.fromkeys(("uid", "accountId", "login", "walletAddress"), key.uid),
            "enableRateLimit": False,
            "verify": False,
            "timeout_on_exit": 0,
            "options": dict(login.options),
        }
    )
    exchange.milliseconds = now_ms
    exchange.seconds = lambda: now_ms() // 1000
    exchange.microseconds = lambda: now_ms() * 1000
    exchange.uuid = lambda: uuid
    exchange.random_bytes = lambda _: uuid
    exchange.uuid16 = exchange.uuid22 = lambda *_: "0123456789abcdef"
    exchange.rand_number = lambda size: int("7" * size)
    exchange.set_markets([{**exchange.safe_market_structure(one), **one} for one in MARKETS])
    exchange.open()
    return exchange


def dial_at_once(exchange: Exchange, port: int) -> list[str]:
    """Let a scripted exchange stand behind all its addresses; return the list of the hosts that it will dial.

    It knows nothing of that: some sign host and path.
    """
    dialed: list[str] = []
    own_fetch, own_client = exchange.fetch, exchange.client

    def local(url: str) -> str:
        return re.sub(r"^(ws|http)s?://[^/?]+", rf"\1://127.0.0.1:{port}", url)

    def fetch(url: str, *rest: Any) -> Any:
        return own_fetch(local(url), *rest)

    def client(url: str) -> Any:
        is_new = url not in (exchange.clients or {})
        made = own_client(url)
        if is_new:
            own_connection = made.create_connection
            made.options = {**made.options}  # before two classes take their headers away again

            def create_connection(session: Any) -> Any:
                dialed.append(urlsplit(url).netloc)
                made.url = local(url)
                connection = own_connection(session)
                made.url = url
                return connection

            made.create_connection = create_connection
        return made

    exchange.fetch, exchange.client = fetch, client
    return dialed


def dial_gateway(exchange: Exchange, login: Login, port: int, token: str) -> None:
    """Do what the docs ask of a bot: put the gateway before each host, and say which bot it is."""
    user = f"grid:{token}@" if login.proof == "address" else ""

    def moved(urls: Any) -> Any:
        if isinstance(urls, dict):
            return {name: moved(one) for name, one in urls.items()}
        if not isinstance(urls, str):
            return urls
        urls = re.sub(r"^wss://([^/?]+)", rf"ws://{user}127.0.0.1:{port}/\1", urls)
        return re.sub(r"^https://[^/?]+", f"http://127.0.0.1:{port}", urls)

    exchange.urls = moved(exchange.urls)
    exchange.options = exchange.deep_extend(exchange.options, login.before_gateway)
    if login.proof == "header":
        headers = {"X-Gateway-Token": token}
        exchange.headers = {**exchange.headers, **headers}
        exchange.options = exchange.deep_extend(exchange.options, {"ws": {"options": {"headers": headers}}})


def sign_its_own(exchange: Exchange, real: str, own: str, within: str) -> None:
    """Let a value of its clock be the bot's in what it signs, where it stands as `within` says."""
    hmac, before, after = exchange.hmac, within.format(real).encode(), within.format(own).encode()
    exchange.hmac = lambda text, *rest: hmac(text.replace(before, after, 1), *rest)


async def run(exchange: Exchange, call: Callable[[Exchange], Any], enough: Awaitable[None]) -> None:
    """Let it make a call until the other side has seen enough. Raises what ccxt raises before that."""

    async def make() -> None:
        await call(exchange)

    calling, waiting = asyncio.ensure_future(make()), asyncio.ensure_future(enough)
    try:
        await asyncio.wait((calling, waiting), return_when=asyncio.FIRST_COMPLETED)
        if calling.done() and not waiting.done():
            calling.result()
        await waiting
    finally:
        for task in (calling, waiting):
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task
        await exchange.close()
