"""The bot against an exchange that fails as each test says. `pip install -e .[test]`, then `pytest`."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from ladder import Ladder
from rehearsal import Rehearsal

SYMBOL, SIZE = "BTC/USDC:USDC", 0.01


@pytest.fixture
async def exchange(sealgate_gateway, sealgate_sandbox):
    """Return the sandbox exchange behind a gateway, as ccxt.pro sees it."""
    account = sealgate_sandbox.user_address
    one = Rehearsal(sealgate_gateway.url, sealgate_gateway.stream_url, account)
    yield one
    await one.close()


@asynccontextmanager
async def at_work(exchange):
    """Let a bot trade meanwhile. It does not pause: a test has no time. Its own faults fail the test."""
    bot = Ladder(exchange, SYMBOL, SIZE, pause=lambda _: asyncio.sleep(0))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(bot.run())
        yield
        task.cancel()


async def until_placed(sandbox, orders):
    """Wait until the exchange has accepted so many orders."""
    async with asyncio.timeout(20):
        while accepted(sandbox) < orders:
            await asyncio.sleep(0.01)


def accepted(sandbox):
    """Count the orders that the exchange has accepted."""
    return sum(line["method"] == "POST" and line["order_id"] is not None for line in sandbox.journal())


async def test_it_sells_what_it_bought_and_begins_anew(exchange, sealgate_sandbox):
    async with at_work(exchange):
        await until_placed(sealgate_sandbox, 1)
        sealgate_sandbox.market(symbol="BTC", price="60000")
        await until_placed(sealgate_sandbox, 2)
        assert (await exchange.fetch_open_orders(SYMBOL))[0]["side"] == "sell"
        sealgate_sandbox.market(symbol="BTC", price="70000")
        await until_placed(sealgate_sandbox, 3)
        assert (await exchange.fetch_open_orders(SYMBOL))[0]["side"] == "buy"


async def test_an_order_whose_reply_is_lost_is_not_placed_twice(exchange, sealgate_sandbox):
    sealgate_sandbox.faults({"kind": "reset_after", "next": 1, "match": "POST *"})
    async with at_work(exchange):
        await until_placed(sealgate_sandbox, 1)
        sealgate_sandbox.market(symbol="BTC", price="60000")  # which fills it: the bot goes on
        await until_placed(sealgate_sandbox, 2)
    assert (await exchange.fetch_open_orders(SYMBOL))[0]["side"] == "sell"


async def test_what_was_filled_while_the_stream_was_down_is_sold(exchange, sealgate_sandbox):
    async with at_work(exchange):
        await until_placed(sealgate_sandbox, 1)
        async with asyncio.timeout(20):
            while not sealgate_sandbox.end_streams():  # until the bot has opened one
                await asyncio.sleep(0.01)
        sealgate_sandbox.market(symbol="BTC", price="60000")
        await until_placed(sealgate_sandbox, 2)
    assert (await exchange.fetch_open_orders(SYMBOL))[0]["side"] == "sell"


async def test_a_limit_that_is_met_costs_time_alone(exchange, sealgate_sandbox):
    sealgate_sandbox.limit(kind="fixed", requests=2, window_s=1)
    async with at_work(exchange):
        await until_placed(sealgate_sandbox, 1)
    assert 429 in {line["status"] for line in sealgate_sandbox.journal()}
    assert accepted(sealgate_sandbox) == 1
