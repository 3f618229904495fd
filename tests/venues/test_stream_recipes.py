"""The recipes for streams, in docs/streams.md and examples/: unmodified clients with a made-up key."""

import sys
from pathlib import Path

import pytest

from rig.fences import ROOT, fences
from venues.recipes import EXAMPLES, TOKEN, assert_only_the_real_key_arrived, run, several, venue_and_gateway

PAGE = {block.label: block.text for block in fences(ROOT / "docs" / "streams.md")}


def at(text: str, url: str) -> str:
    """Return a recipe at a gateway's address."""
    return text.replace("127.0.0.1:8787", url.removeprefix("http://")).replace("TOKEN", TOKEN)


@pytest.mark.parametrize("name", ["okx", "bybit", "binance", "kucoin"])
async def test_ccxt_pro_follows_orders_and_places_one(tmp_path: Path, name: str) -> None:
    text = (EXAMPLES / "ccxt_pro_okx.py").read_text().replace("ccxt.pro.okx", f"ccxt.pro.{name}")
    async with venue_and_gateway(tmp_path, name) as (fake, url):
        out = await run(at(text, url))
    assert "811 closed 0.001\nplaced 812\n" in out
    assert_only_the_real_key_arrived(fake)


@pytest.mark.parametrize("name", ["okx", "bybit", "binance"])
async def test_ccxt_pro_names_one_of_several_exchanges(tmp_path: Path, name: str) -> None:
    text = (EXAMPLES / "ccxt_pro_okx.py").read_text().replace("ccxt.pro.okx", f"ccxt.pro.{name}")
    [hint] = [line.partition('"')[2] for line in text.splitlines() if line.startswith("GATEWAY = ")]
    assert '"127.0.0.1:8787/okx"' in hint
    text = text.replace('GATEWAY = "127.0.0.1:8787"', f'GATEWAY = "127.0.0.1:8787/{name}"')
    async with several(tmp_path) as (fakes, gateway):
        out = await run(at(text, f"http://{gateway.address}"))
    assert "811 closed 0.001\nplaced 812\n" in out
    assert_only_the_real_key_arrived(fakes[name])


async def test_websockets_follows_orders(tmp_path: Path) -> None:
    async with venue_and_gateway(tmp_path, "bybit") as (fake, url):
        out = await run(at(PAGE["venue-websockets"], url))
    assert out == "[('811', 'Filled')]\n"
    assert_only_the_real_key_arrived(fake, orders=0)


async def test_websockets_without_asyncio_places_an_order(tmp_path: Path) -> None:
    async with venue_and_gateway(tmp_path, "bybit") as (fake, url):
        out = await run(at(PAGE["venue-websockets-sync"], url))
    assert out == "0\n{'orderId': '812', 'orderLinkId': ''}\n"
    assert_only_the_real_key_arrived(fake)


async def test_pybit_at_a_bots_own_address_follows_orders_and_places_one(tmp_path: Path) -> None:
    assert 'listen = "127.0.0.1:8802"' in (ROOT / "docs" / "streams.md").read_text()
    async with venue_and_gateway(tmp_path, "bybit", bot='listen = "127.0.0.1:0"') as (fake, url):
        out = await run(PAGE["venue-pybit-streams"].replace("127.0.0.1:8802", url.removeprefix("http://")))
    assert "'orderId': '811'" in out
    assert "'orderId': '812'" in out
    assert_only_the_real_key_arrived(fake)


async def test_python_binance_follows_orders_and_places_one(tmp_path: Path) -> None:
    async with venue_and_gateway(tmp_path, "binance") as (fake, url):
        # Its imports are deprecated ones.
        out = await run(at(PAGE["venue-python-binance-streams"], url), sys.executable, "-")
    assert out.startswith("executionReport 811 FILLED\n")
    assert "'orderId': 812" in out
    assert_only_the_real_key_arrived(fake)


async def test_the_readme_follows_orders(tmp_path: Path) -> None:
    [text] = [block.text for block in fences(ROOT / "README.md") if block.label == "venue-stream"]
    async with venue_and_gateway(tmp_path, "bybit") as (fake, url):
        out = await run(at(text, url))
    assert '"orderId": "811"' in out
    assert_only_the_real_key_arrived(fake, orders=0)
