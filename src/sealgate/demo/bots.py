"""Four example bots. They share one API key and its rate limit, and know nothing of each other.

Each is a loop over `client`, which has `ask`, `rest` and `follow`: plain HTTP and a WebSocket, with the
exchange's own paths and bodies.
"""

import asyncio
import hmac
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import aiohttp

from sealgate.demo.tally import Tally
from sealgate.machine.system import System

PREFIX = "/v1/trade"
STREAM = "/v1/stream"
THROUGH_GATEWAY = "/stream.example.com"  # the host of the stream, by the venue's file
_SIGNED = {
    "X-SERVICE-APIKEY": "api_key",
    "X-SERVICE-TIMESTAMP": "timestamp",
    "X-SERVICE-SIGNATURE": "signature",
}
_FILL_S = 10.0
_FINISH_S = 5.0
_AFTER_SETBACK_S = 0.5

Headers = Callable[[str, str, bytes], dict[str, str]]
# The demo's market never moves from 66000: the first order rests in the book, the second is filled at once.
RESTING = {"symbol": "BTC", "side": "buy", "size": "0.001", "price": "65000"}
MATCHING = {"symbol": "BTC", "side": "buy", "size": "0.001", "price": "66000"}


def with_token(token: str) -> Headers:
    """Through Sealgate: return the bot's token, whatever the request."""
    return lambda _method, _path, _body: {"Authorization": f"Bearer {token}"}


def signed_by(api_key: str, secret: str, system: System) -> Headers:
    """On its own: return the headers that sign a request, by the secret that every bot must know."""

    def headers(method: str, path: str, body: bytes) -> dict[str, str]:
        timestamp = str(int(system.wall() * 1000))
        message = f"{timestamp}{method}{path}".encode() + body
        return {
            "X-SERVICE-APIKEY": api_key,
            "X-SERVICE-TIMESTAMP": timestamp,
            "X-SERVICE-SIGNATURE": hmac.digest(secret.encode(), message, "sha256").hex(),
        }

    return headers


class Over(Exception):  # noqa: N818 - not an error: the demo ends, and the bot with it
    """There is nothing more to do."""


class Setback(Exception):  # noqa: N818 - an answer that a bot did not hope for
    """The exchange refused a request, or did not answer it."""


class Updates:
    """What the exchange tells a bot of its orders."""

    def __init__(self, stream: aiohttp.ClientWebSocketResponse) -> None:
        self._stream = stream

    async def ask(self, message: dict[str, Any]) -> None:
        """Send a message that the exchange must accept. Raises Setback."""
        await self._stream.send_json(message)
        if not (await self._receive()).get("success"):
            raise Setback(f"{message['op']} was refused")

    async def wait_for_fill(self, order_id: int) -> None:
        """Wait until an order is filled. Raises Setback where nothing tells that."""
        while True:
            order = (await self._receive())["data"]
            if (order["order_id"], order["status"]) == (order_id, "filled"):
                return

    async def _receive(self) -> dict[str, Any]:
        try:
            message: dict[str, Any] = await self._stream.receive_json(timeout=_FILL_S)
        except (TypeError, TimeoutError) as error:  # the former where the stream has ended
            raise Setback("the stream has ended, or is silent") from error
        return message


class Client:
    """A bot's way to the exchange. `over` ends it: what is in flight is finished, nothing new is sent."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        headers: Headers,
        system: System,
        over: asyncio.Event,
        stream_path: str = STREAM,
    ) -> None:
        self.tally = Tally(system.now)
        self._stream_path = stream_path
        self._session = session
        self._headers = headers
        self._system = system
        self._over = over
        self._not_before = 0.0

    async def rest(self, seconds: float) -> None:
        """Do nothing for a while. Raises Over."""
        try:
            async with asyncio.timeout(seconds):
                await self._over.wait()
        except TimeoutError:
            return
        raise Over

    @asynccontextmanager
    async def follow(self) -> AsyncIterator[Updates]:
        """Follow the account's orders. Raises Setback."""
        headers = self._headers("GET", STREAM, b"")
        # Through Sealgate a login is empty: key, time and signature are put in there.
        login = {arg: headers[name] for name, arg in _SIGNED.items() if name in headers}
        try:
            stream = await self._session.ws_connect(self._stream_path, headers=headers)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Setback(type(error).__name__) from error
        async with stream:
            updates = Updates(stream)
            await updates.ask({"op": "login", "args": login})
            await updates.ask({"op": "subscribe", "channel": "orders"})
            yield updates

    async def ask(self, method: str, path: str, order: dict[str, str] | None = None) -> Any:
        """Send a request until the reply is not a 429, and return what it says. Raises Setback and Over."""
        is_order, body = method != "GET", b"" if order is None else json.dumps(order).encode()
        with self.tally.waiting(method):
            while True:
                await self.rest(self._not_before - self._system.now())
                headers = {"Content-Type": "application/json", **self._headers(method, path, body)}
                try:
                    async with self._session.request(
                        method, PREFIX + path, data=body, headers=headers
                    ) as reply:
                        text = await reply.text()
                except (aiohttp.ClientError, TimeoutError) as error:
                    self.tally.unknown_orders += is_order
                    raise Setback(type(error).__name__) from error
                if reply.status != HTTPStatus.TOO_MANY_REQUESTS:
                    break
                # Each 429 makes the whole bot wait, for as long as it says.
                self.tally.limited += 1
                retry_after = float(reply.headers.get("Retry-After", "1"))
                self._not_before = max(self._not_before, self._system.now() + retry_after)
        self.tally.accepted += reply.ok
        if not reply.ok:
            # Sealgate says whether an order may have been executed; else a 5xx means that it may.
            outcome = reply.headers.get("X-Gateway-Outcome")
            is_unknown = outcome == "unknown" if outcome else reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR
            self.tally.unknown_orders += is_order and is_unknown
            raise Setback(f"{method} was answered {reply.status}")
        return json.loads(text)


async def quick(client: Client) -> None:
    """Look at the market five times a second, and buy a little now and then."""
    while True:
        for _ in range(5):
            await client.ask("GET", "/symbols/list")
            await client.rest(0.2)
        await client.ask("POST", "/order", MATCHING)


async def slow(client: Client) -> None:
    """Buy a little every second, and learn of each fill on the stream."""
    async with client.follow() as updates:
        while True:
            order = await client.ask("POST", "/order", MATCHING)
            await updates.wait_for_fill(order["order_id"])
            await client.rest(1.0)


async def flood(client: Client) -> None:
    """Read as fast as the answers come, without a thought for the limit."""
    while True:
        await client.ask("GET", "/spot/symbols/list")


async def cancel(client: Client) -> None:
    """Place an order and take it back: the one that must not wait while prices move."""
    while True:
        order = await client.ask("POST", "/order", RESTING)
        await client.rest(0.25)
        await client.ask("DELETE", f"/order/{order['order_id']}")
        await client.rest(0.25)


@dataclass(frozen=True, slots=True)
class Bot:
    """A bot's program, its weight at the gateway, and how many of it run side by side on one client."""

    run: Callable[[Client], Awaitable[None]]
    does: str
    weight: int
    at_once: int = 1


BOTS = {
    "quick": Bot(quick, "5 reads/s, buys", weight=4),
    "slow": Bot(slow, "follows fills", weight=2),
    "flood": Bot(flood, "8 reads at once", weight=1, at_once=8),
    "cancel": Bot(cancel, "cancels orders", weight=2),
}


@asynccontextmanager
async def playing(
    base_url: str, headers_of: Callable[[str], Headers], system: System, stream_path: str = STREAM
) -> AsyncIterator[Mapping[str, Tally]]:
    """Run the four bots until the block ends, each with a client of its own; yield what they count.

    At the end each bot still gets the answers that it waits for.
    """
    over = asyncio.Event()
    async with AsyncExitStack() as sessions:
        clients = {}
        for name in BOTS:
            # The gateway passes the name on, so that the exchange's journal has it.
            session = aiohttp.ClientSession(base_url, headers={"User-Agent": name})
            await sessions.enter_async_context(session)
            clients[name] = Client(session, headers_of(name), system, over, stream_path)
        tasks = [
            asyncio.create_task(_play(bot, clients[name]))
            for name, bot in BOTS.items()
            for _ in range(bot.at_once)
        ]
        try:
            yield {name: client.tally for name, client in clients.items()}
        finally:
            over.set()
            done, late = await asyncio.wait(tasks, timeout=_FINISH_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
            for task in done:
                task.result()  # a bot that failed is a fault of the demo


async def _play(bot: Bot, client: Client) -> None:
    """Run a bot until it is over; after a setback it begins anew."""
    with suppress(Over):
        while True:
            with suppress(Setback):
                await bot.run(client)
            await client.rest(_AFTER_SETBACK_S)
