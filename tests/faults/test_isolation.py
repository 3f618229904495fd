"""Whatever befalls one exchange: orders to the other go at once, once, and nothing is held against it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rig.bot import bot_at
from rig.troubles import CALM, TROUBLED, TROUBLES, Pair, order_to, running_pair
from rig.wire import CutError, until

ORDERS = 20


@contextlib.asynccontextmanager
async def load_at_troubled(pair: Pair) -> AsyncIterator[None]:
    """Keep bots at the troubled exchange as long as the block lasts."""
    address = pair.gateway.address

    async def trade(first: int) -> None:
        for number in range(first, first + 1_000_000):
            with contextlib.suppress(ConnectionError, CutError):
                async with bot_at(address.host, address.port) as bot:
                    await bot.ask(order_to(TROUBLED, number, b"X-Gateway-Deadline-Ms: 300"))

    bots = [asyncio.create_task(trade(1_000_000 * index)) for index in range(4)]
    try:
        yield
    finally:
        for one in bots:
            one.cancel()
        await asyncio.wait(bots)


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_what_befalls_one_exchange_is_not_seen_at_the_other(trouble: str, tmp_path: Path) -> None:
    async with running_pair(tmp_path) as pair, load_at_troubled(pair):
        await until(lambda: len(pair.troubled.received) >= 4)
        pair.befall(trouble)
        await trade_at_calm(pair)


@pytest.mark.parametrize("trouble", TROUBLES)
async def test_nor_is_what_befell_it_before_the_start(trouble: str, tmp_path: Path) -> None:
    async with running_pair(tmp_path, trouble) as pair, load_at_troubled(pair):
        await trade_at_calm(pair)


async def trade_at_calm(pair: Pair) -> None:
    """Send orders to the calm exchange, until the troubled one has met its trouble."""
    ended, address = len(pair.outcomes.all), pair.gateway.address
    async with bot_at(address.host, address.port) as bot:
        for number in range(ORDERS):
            told = await bot.ask(order_to(CALM, number))
            assert (told.status, told.outcome, told.attempts) == (200, "done", 1)
            assert told.text("X-Gateway-Queue-Ms") == "0"
    await until(lambda: any(one.exchange == TROUBLED for one in pair.outcomes.all[ended:]))
    assert pair.seen_at_calm() == []
    assert pair.strays() == []
    assert len(pair.calm.received) == ORDERS
