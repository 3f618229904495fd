"""The recipes for streams, in docs/streams.md and examples/: unmodified clients with a made-up key."""

import asyncio
import sys
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from rig.fences import ROOT, fences
from venues.recipes import EXAMPLES, TOKEN, assert_only_the_real_key_arrived, run, several, venue_and_gateway

BOT, POLICY = 'token = "env:TOKEN"', 'policy = { max_size = "0.0001" }'
SEES_LOGINS = """
import logging, sys
import pybit._websocket_trading
logging.basicConfig(stream=sys.stdout)
logins = queue.Queue()
trade_socket = pybit._websocket_trading._V5TradeWebSocketManager
trade_socket._process_auth_message = lambda _, message: logins.put(message["retCode"])
"""
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


async def test_the_bot_of_the_example_repository_trades_until_it_is_ended(tmp_path: Path) -> None:
    token = tmp_path / "ladder.token"
    token.write_text(TOKEN)
    bot = str(EXAMPLES / "ccxt-pro-bot" / "ladder.py")
    async with venue_and_gateway(tmp_path, "okx") as (fake, url):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-u", bot, "okx", url, "BTC/USDT", "0.001"),
            env={"TOKEN_FILE": str(token)},
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        async with asyncio.timeout(60):
            said = await process.stdout.readline()
        process.terminate()
        await process.wait()
    assert said == b"buy 0.001 at 65670.0 is order 812\n"
    assert_only_the_real_key_arrived(fake)


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


async def test_ccxt_pro_raises_an_error_with_the_code_where_a_policy_refuses_its_order(
    tmp_path: Path,
) -> None:
    text = (EXAMPLES / "ccxt_pro_okx.py").read_text()
    text = text.replace("asyncio.run(main())", "try:\n    asyncio.run(main())\n", 1)
    text += "except ccxt.NetworkError as error:\n    print(error)\n"
    async with venue_and_gateway(tmp_path, "okx", bot=f"{BOT}\n{POLICY}") as (fake, url):
        out = await run(at(text, url))
    assert out == "811 closed 0.001\nConnection closed by remote server, closing code 1008\n"
    assert_only_the_real_key_arrived(fake, orders=0)


async def test_pybit_logs_the_reason_of_a_policy_and_logs_in_again(tmp_path: Path) -> None:
    text = PAGE["venue-pybit-streams"].replace("trading = ", f"{SEES_LOGINS}trading = ")
    text = text.replace("trading.place_order", "logins.get(timeout=45)\ntrading.place_order")
    text = text.replace('replies.get(timeout=45)["data"]', '"again", logins.get(timeout=45)')
    bot = f'listen = "127.0.0.1:0"\n{POLICY}'
    async with venue_and_gateway(tmp_path, "bybit", bot=bot) as (fake, url):
        out = await run(text.replace("127.0.0.1:8802", url.removeprefix("http://")))
    assert "(code 1008): policy_refused: policy.max_size" in out
    assert "again 0\n" in out
    assert_only_the_real_key_arrived(fake, orders=0)


async def test_a_refused_upgrade_has_the_gateways_own_reply(tmp_path: Path) -> None:
    async with venue_and_gateway(tmp_path, "bybit", bot=f'{BOT}\nmay = ["read"]') as (fake, url):
        address = f"ws://grid:{TOKEN}@{url.removeprefix('http://')}/stream.bybit.com/v5/trade"
        with pytest.raises(InvalidStatus) as caught:
            async with connect(address):
                pass
    assert caught.value.response.status_code == 403
    assert caught.value.response.headers["X-Gateway-Error"] == "bot_forbidden"
    assert fake.messages == []
