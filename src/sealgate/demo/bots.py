"""Four example bots. They share one API key and its rate limit, and know nothing of each other.

Each is a loop over `client`, which has `get`, `post`, `delete` and `rest`: plain HTTP, with the exchange's
own paths and bodies.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import aiohttp

from sealgate.demo.tally import Tally
from sealgate.http.target import parse_target
from sealgate.keys.key import headers_in
from sealgate.machine.system import System
from sealgate.venues.scheme import Sealer

PREFIX = "/v1/trade"

Headers = Callable[[str, str, bytes], dict[str, str]]
# The demo's market never moves from 66000: the first order rests in the book, the second is filled at once.
RESTING = {"symbol": "BTC", "side": "buy", "size": "0.001", "price": "65000"}
MATCHING = {"symbol": "BTC", "side": "buy", "size": "0.001", "price": "66000"}


def with_token(token: str) -> Headers:
    """Through Sealgate: the bot's token, whatever the request."""
    return lambda _method, _target, _body: {"Authorization": f"Bearer {token}"}


def signed_by(sealer: Sealer, system: System) -> Headers:
    """On its own: stamp and sign each request."""

    def headers(method: str, target: str, body: bytes) -> dict[str, str]:
        timestamp_ms = int(system.wall() * 1000)
        return headers_in(sealer.sign(timestamp_ms, b"", method, parse_target(target, PREFIX), body))

    return headers


class Over(Exception):  # noqa: N818 - not an error: the demo ends, and the bot with it
    """There is nothing more to do."""


class Setback(Exception):  # noqa: N818 - an answer that a bot did not hope for
    """The exchange refused a request, or did not answer it."""


class Client:
    """A bot's way to the exchange. `over` ends it: what is in flight is finished, nothing new is sent."""

    def __init__(
        self, session: aiohttp.ClientSession, headers: Headers, system: System, over: asyncio.Event
    ) -> None:
        self.tally = Tally(system.now)
        self._session = session
        self._headers = headers
        self._system = system
        self._over = over
        self._not_before = 0.0

    async def get(self, path: str) -> Any:
        """Read something. Raises Setback."""
        return await self._call("GET", path)

    async def post(self, path: str, order: dict[str, str]) -> Any:
        """Place an order. Raises Setback."""
        return await self._call("POST", path, json.dumps(order).encode())

    async def delete(self, path: str) -> Any:
        """Cancel an order. Raises Setback."""
        return await self._call("DELETE", path)

    async def rest(self, seconds: float) -> None:
        """Do nothing for a while. Raises Over."""
        try:
            async with asyncio.timeout(seconds):
                await self._over.wait()
        except TimeoutError:
            return
        raise Over

    async def _call(self, method: str, path: str, body: bytes = b"") -> Any:
        """Send until it is not a 429; each makes the whole bot wait for as long as Retry-After says."""
        with self.tally.waiting(method):
            while True:
                await self.rest(self._not_before - self._system.now())
                reply = await self._send(method, PREFIX + path, body)
                if reply.status != HTTPStatus.TOO_MANY_REQUESTS:
                    return await self._take(method, reply)
                self._hold_back(float(reply.headers.get("Retry-After", "1")))

    async def _send(self, method: str, target: str, body: bytes) -> aiohttp.ClientResponse:
        """Make one request, and read the whole reply."""
        headers = {"Content-Type": "application/json", **self._headers(method, target, body)}
        try:
            async with self._session.request(method, target, data=body, headers=headers) as reply:
                await reply.read()
                return reply
        except (aiohttp.ClientError, TimeoutError) as error:
            self.tally.unknown_orders += method != "GET"
            raise Setback(type(error).__name__) from error

    async def _take(self, method: str, reply: aiohttp.ClientResponse) -> Any:
        """Return what the exchange says, or raise Setback where it says no."""
        self.tally.accepted += reply.ok
        self.tally.unknown_orders += method != "GET" and _is_unknown(reply)
        if not reply.ok:
            raise Setback(f"{method} was answered {reply.status}")
        return await reply.json()

    def _hold_back(self, seconds: float) -> None:
        self.tally.limited += 1
        self._not_before = max(self._not_before, self._system.now() + seconds)


def _is_unknown(reply: aiohttp.ClientResponse) -> bool:
    """Whether an order may or may not have been executed. Sealgate says so; else a 5xx means it."""
    outcome = reply.headers.get("X-Gateway-Outcome")
    return outcome == "unknown" if outcome else reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR


async def quick(client: Client) -> None:
    """Look at the market five times a second, and buy a little now and then."""
    while True:
        for _ in range(5):
            await client.get("/symbols/list")
            await client.rest(0.2)
        await client.post("/order", MATCHING)


async def slow(client: Client) -> None:
    """Buy a little every second."""
    while True:
        await client.post("/order", MATCHING)
        await client.rest(1.0)


async def flood(client: Client) -> None:
    """Read as fast as the answers come, without a thought for the limit."""
    while True:
        await client.get("/spot/symbols/list")


async def cancel(client: Client) -> None:
    """Place an order and take it back: the one that must not wait while prices move."""
    while True:
        order = await client.post("/order", RESTING)
        await client.rest(0.25)
        await client.delete(f"/order/{order['order_id']}")
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
    "slow": Bot(slow, "1 order/s", weight=2),
    "flood": Bot(flood, "8 reads at once", weight=1, at_once=8),
    "cancel": Bot(cancel, "cancels orders", weight=2),
}
