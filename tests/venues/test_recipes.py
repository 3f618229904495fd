"""Libraries that sign by themselves, in docs/recipes.md and examples/: a made-up key and a changed address.

The exchange at the other end checks each signature, and knows the real key alone.
"""

import asyncio
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import ccxt  # type: ignore[import-untyped]
import httpx
import pytest

from rig.fences import ROOT, Fence, fences
from venues.recipes import (
    ADDRESS,
    EXAMPLES,
    TOKEN,
    assert_only_the_real_key_arrived,
    run,
    several,
    venue_and_gateway,
)

SEVERAL = ROOT / "docs" / "several-exchanges.md"
BLOCKS = {block.label: block.text for block in fences(ROOT / "docs" / "recipes.md")}
OWN_CLIENTS = ("venue-curl", "venue-requests", "venue-httpx", "venue-aiohttp", "venue-node")
PROGRAMS = {
    "python": (sys.executable, "-W", "error", "-"),
    "sh": ("sh", "-e"),
    "js": ("node", "--input-type=module", "-"),
}
NEEDS = {"sh": "curl", "js": "node"}


def own_clients() -> Iterator[object]:
    """Yield the blocks that sign nothing: those of the recipes, and curl's on other pages."""
    for page in (ROOT / "README.md", ROOT / "docs" / "recipes.md", ROOT / "docs" / "replies.md"):
        for block in fences(page):
            if block.label in OWN_CLIENTS:
                marks = [pytest.mark.needs(NEEDS[block.language])] if block.language in NEEDS else []
                yield pytest.param(block, id=f"{block.name}-{block.label}", marks=marks)


@pytest.mark.parametrize("name", ["okx", "binance"])
async def test_an_unmodified_class_of_ccxt_trades_with_a_made_up_key(tmp_path: Path, name: str) -> None:
    text = (EXAMPLES / "ccxt_okx.py").read_text().replace("ccxt.okx", f"ccxt.{name}").replace("TOKEN", TOKEN)
    async with venue_and_gateway(tmp_path, name) as (fake, url):
        out = await run(text.replace(ADDRESS, url))
    assert "1000.0" in out
    assert "812" in out
    assert out.endswith(" done\n")
    assert_only_the_real_key_arrived(fake)


async def test_ccxt_trades_with_a_made_up_key(tmp_path: Path) -> None:
    async with venue_and_gateway(tmp_path, "bybit") as (fake, url):
        out = await run(BLOCKS["venue-ccxt"].replace(ADDRESS, url).replace("TOKEN", TOKEN))
    assert "1000.0" in out
    assert out.endswith("812 done\n")
    assert_only_the_real_key_arrived(fake)


async def test_four_classes_of_ccxt_in_one_process_trade_through_one_gateway(tmp_path: Path) -> None:
    text = (EXAMPLES / "exchanges" / "ccxt_four.py").read_text().replace("TOKEN", TOKEN)
    async with several(tmp_path) as (fakes, gateway):
        out = await run(text.replace(ADDRESS, f"http://{gateway.address}"))
    assert out.count("1000.0") >= len(fakes)
    assert out.count("812 done\n") == len(fakes)
    for fake in fakes.values():
        assert_only_the_real_key_arrived(fake)


@pytest.mark.parametrize("file", ["sealgate.toml", "binance.toml"])
async def test_check_has_nothing_against_the_files(tmp_path: Path, file: str) -> None:
    async with several(tmp_path, file):
        pass  # it leaves the file, the secrets and a journal
    places = {"SEALGATE_LISTEN__TCP": "127.0.0.1:0", "SEALGATE_ADMIN__TCP": "127.0.0.1:0"}
    command = (sys.executable, "-m", "sealgate", "check", "--offline", "--json")
    out = await run("", *command, "--config", str(tmp_path / "sealgate.toml"), **places)
    assert json.loads(out)["result"] == "ok"


@pytest.mark.needs("curl")
async def test_curl_names_the_exchange_in_the_path_or_uses_its_own_address(tmp_path: Path) -> None:
    [text] = [block.text for block in fences(SEVERAL) if block.text.startswith("curl")]
    [own] = re.findall(r"# (http://\S+);", SEVERAL.read_text())
    text = text.replace("TOKEN", TOKEN).replace("curl ", "curl -fsS ")
    async with several(tmp_path, SEALGATE_EXCHANGES__BYBIT__LISTEN="127.0.0.1:0") as (fakes, gateway):
        lines = text.replace(ADDRESS, f"http://{gateway.address}")
        lines += f"curl -fsS {own} -H 'Authorization: Bearer {TOKEN}'"
        bybit = gateway.listeners.exchange_urls["bybit"]
        out = await run(lines.replace("http://127.0.0.1:8801", bybit), "sh", "-e")
    assert out.count("1000.0") >= 1
    assert out.count("unifiedMarginStatus") == 2
    assert [fake.refused for fake in fakes.values()] == [[]] * 4


async def test_httpx_keeps_the_exchange_s_name_and_aiohttp_where_the_path_has_no_slash_before_it(
    tmp_path: Path,
) -> None:
    assert 'ClientSession("http://127.0.0.1:8787/bybit/")' in SEVERAL.read_text()
    token = {"Authorization": f"Bearer {TOKEN}"}
    async with several(tmp_path) as (fakes, gateway):
        address = f"http://{gateway.address}/bybit"
        async with httpx.AsyncClient(base_url=address, headers=token) as client:
            assert (await client.get("/v5/account/info")).status_code == 200
        async with aiohttp.ClientSession(f"{address}/", headers=token) as session:
            async with session.get("v5/account/info") as reply:
                assert reply.status == 200
            async with session.get("/v5/account/info") as reply:
                assert (reply.status, (await reply.json())["reason"]) == (404, "unknown_exchange")
        accounts = [target for _, target, _ in fakes["bybit"].seen if target == "/v5/account/info"]
    assert len(accounts) >= 2
    assert fakes["bybit"].refused == []


async def test_one_ccxt_binance_trades_at_the_hosts_of_spot_and_of_futures(tmp_path: Path) -> None:
    text = (EXAMPLES / "exchanges" / "ccxt_binance.py").read_text().replace("TOKEN", TOKEN)
    async with several(tmp_path, "binance.toml") as (fakes, gateway):
        out = await run(text.replace(ADDRESS, f"http://{gateway.address}"))
    assert out.count("812 done\n") == 2
    for name, orders in {"binance": 1, "binanceusdm": 1, "binancecoinm": 0}.items():
        assert_only_the_real_key_arrived(fakes[name], orders)
    assert "/dapi/v1/exchangeInfo" in [target for _, target, _ in fakes["binancecoinm"].seen]


@pytest.mark.parametrize(("pair", "mode"), [("BTC/USDT", "spot"), ("BTC/USDT:USDT", "swap")])
async def test_freqtrades_table_of_urls_leads_each_host_of_binance_through_the_gateway(
    tmp_path: Path, pair: str, mode: str
) -> None:
    text = (EXAMPLES / "exchanges" / "freqtrade.json").read_text().replace("TOKEN", TOKEN)
    async with several(tmp_path, "binance.toml") as (fakes, gateway):
        part = json.loads(text.replace(ADDRESS, f"http://{gateway.address}"))
        own = {"apiKey": part["key"], "secret": part["secret"], "options": {"defaultType": mode}}

        def trade() -> None:
            exchange = getattr(ccxt, part["name"])({**own, **part["ccxt_config"]})
            left_out = {url.split("/")[2] for url in exchange.urls["api"].values() if "https:" in url}
            assert left_out == {"eapi.binance.com", "papi.binance.com"}
            assert exchange.fetch_balance()["USDT"]["free"] == 1000
            exchange.create_order(pair, "limit", "buy", 0.001, 65000)

        await asyncio.to_thread(trade)
    assert_only_the_real_key_arrived(fakes["binance"], orders=int(mode == "spot"))
    assert_only_the_real_key_arrived(fakes["binanceusdm"], orders=int(mode == "swap"))


@pytest.mark.parametrize("block", list(own_clients()))
async def test_a_client_of_ones_own_places_one_order_however_often_it_runs(
    tmp_path: Path, block: Fence
) -> None:
    async with venue_and_gateway(tmp_path, "bybit") as (fake, url):
        text = block.text.replace(ADDRESS, url).replace("TOKEN", TOKEN).replace("curl ", "curl -fsS ")
        told = [await run(text, *PROGRAMS[block.language]) for _ in range(2)]
    assert told[0].replace("'", '"').count("retCode") == text.count("/v5/")
    assert_only_the_real_key_arrived(fake, orders=text.count("/v5/order/create"))


def test_there_is_a_recipe_for_each_client() -> None:
    assert BLOCKS.keys() >= set(OWN_CLIENTS)


async def test_pybit_with_another_endpoint_trades_with_a_made_up_key(tmp_path: Path) -> None:
    async with several(tmp_path) as (fakes, gateway):
        text = BLOCKS["venue-pybit"].replace(ADDRESS, f"http://{gateway.address}").replace("TOKEN", TOKEN)
        out = await run(text)
    assert "1000.0" in out
    assert "'orderId': '812'" in out
    assert_only_the_real_key_arrived(fakes["bybit"])


async def test_python_binance_with_other_addresses_trades_with_a_made_up_key(tmp_path: Path) -> None:
    async with several(tmp_path, "binance.toml") as (fakes, gateway):
        text = BLOCKS["venue-python-binance"].replace(ADDRESS, f"http://{gateway.address}")
        out = await run(text.replace("TOKEN", TOKEN), sys.executable, "-")  # its imports are deprecated ones
    assert out.count("1000.0") >= 2
    assert out.count("'orderId': 812") == 2
    for name, orders in {"binance": 1, "binanceusdm": 1, "binancecoinm": 0}.items():
        assert_only_the_real_key_arrived(fakes[name], orders)


async def test_what_freqtrade_hands_to_ccxt_leads_through_the_gateway(tmp_path: Path) -> None:
    async with venue_and_gateway(tmp_path, "okx") as (fake, url):
        part = json.loads(
            (EXAMPLES / "freqtrade.json").read_text().replace(ADDRESS, url).replace("TOKEN", TOKEN)
        )
        own = {"apiKey": part["key"], "secret": part["secret"], "password": part["password"]}

        def trade() -> None:
            exchange = getattr(ccxt, part["name"])({**own, **part["ccxt_config"]})
            assert exchange.fetch_balance()["USDT"]["free"] == 1000
            exchange.create_order(part["pair_whitelist"][0], "limit", "buy", 0.001, 65000)

        await asyncio.to_thread(trade)
    assert_only_the_real_key_arrived(fake)


async def test_the_requests_of_the_nautilus_adapter_are_signed_anew(tmp_path: Path) -> None:
    """They are as version 1.221.0 sent them: an order's parameters stand in the query, its body is empty."""
    assert '"http://127.0.0.1:8802"' in BLOCKS["venue-nautilus"]
    order = "symbol=BTCUSDT&side=BUY&type=LIMIT&timeInForce=GTC&quantity=0.001&price=65000&recvWindow=5000"
    stamp = "&timestamp=1790000000000&signature=6465"
    headers = {"X-MBX-APIKEY": "made-up", "User-Agent": "nautilus-trader/1.221.0"}
    async with (
        venue_and_gateway(tmp_path, "binance", bot='listen = "127.0.0.1:0"') as (fake, url),
        httpx.AsyncClient(base_url=url, headers=headers, timeout=45) as client,
    ):
        account = await client.get(f"/api/v3/account?recvWindow=5000{stamp}")
        placed = await client.post(f"/api/v3/order?{order}{stamp}")
    assert account.json()["balances"][0]["free"] == "1000.0"
    assert placed.json()["orderId"] == 812
    assert fake.orders[0]["price"] == "65000"
    assert_only_the_real_key_arrived(fake)
