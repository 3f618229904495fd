"""Four example bots. They share one API key and its rate limit, and know nothing of each other.

Each is a loop over `client`, which has `get`, `post`, `delete` and `rest`: plain HTTP, with the exchange's
own paths and bodies.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from sealgate.cli.demo.client import Client

# The demo's market never moves from 66000: the first order rests in the book, the second is filled at once.
RESTING = {"symbol": "BTC", "side": "buy", "size": "0.001", "price": "65000"}
MATCHING = {"symbol": "BTC", "side": "buy", "size": "0.001", "price": "66000"}


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
