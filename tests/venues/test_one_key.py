"""One object of ccxt, one key, four hosts of one exchange: what ccxt signs arrives where it belongs."""

import asyncio
import json
import sys
from collections import Counter
from contextlib import AsyncExitStack
from urllib.parse import urlsplit

import pytest

from rig.bot import bot_at
from rig.compiled import needs_sources
from rig.upstream import running_upstream
from sealgate.config import Config
from sealgate.server.gateway import running_gateway
from venues.one_key import HOSTS
from venues.test_through_gateway import SAFE, as_a_bot_sends, as_it_came, freeze, key_of
from venues.through import HERE, Case, signed_by_ccxt

VENUES = {"spot": "binance", "perp": "binanceusdm", "coin": "binancecoinm", "papi": "binance-papi"}


async def asked_at(gateway: str) -> list[Case]:
    command = (sys.executable, "-m", "venues.one_key", gateway)
    process = await asyncio.create_subprocess_exec(*command, cwd=HERE.parent, stdout=asyncio.subprocess.PIPE)
    printed, _ = await process.communicate()
    assert process.returncode == 0
    return [json.loads(line) for line in printed.splitlines()]


@needs_sources
async def test_spot_swap_and_portfolio_calls_go_with_one_key_through_one_gateway(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cases = await asked_at("http://127.0.0.1:8787")
    freeze(monkeypatch, cases[0])
    keys, environ = key_of(cases[0])
    async with AsyncExitStack() as stack:
        upstreams = {name: await stack.enter_async_context(running_upstream()) for name in VENUES}
        config = Config.model_validate(
            {
                **SAFE,
                "listen": {"tcp": "127.0.0.1:0"},
                "admin": {"tcp": "127.0.0.1:0"},
                "exchanges": {
                    name: {"venue": venue, "base_url": upstreams[name].base_url}
                    for name, venue in VENUES.items()
                },
                "keys": {"main": {**keys["main"], "exchanges": list(VENUES)}},
            }
        )
        gateway = await stack.enter_async_context(running_gateway(config, (), environ))
        gateway.services.untried.clear()
        bot = await stack.enter_async_context(bot_at(gateway.address.host, gateway.address.port))
        of_the_clock = {one.clock.path.encode() for one in config.served.values()} | {b"/"}
        wrong, held = [], Counter[str]()
        for case in cases:
            for upstream in upstreams.values():
                upstream.received.clear()
            reply = await bot.ask(as_a_bot_sends(case))
            arrived = {
                name: [as_it_came(one) for one in upstream.received if one.target not in of_the_clock]
                for name, upstream in upstreams.items()
            }
            name = HOSTS[urlsplit(case["signed"]["url"]).netloc]
            held[name] += 1
            if arrived != {**{other: [] for other in VENUES}, name: [signed_by_ccxt(case)]}:
                wrong.append((case["asked"], reply.status, reply.reason, arrived, signed_by_ccxt(case)))
            assert not any(
                b"dummy" in one.raw for upstream in upstreams.values() for one in upstream.received
            )
    assert wrong == []
    assert held.keys() == VENUES.keys()
    assert min(held.values()) >= 8
