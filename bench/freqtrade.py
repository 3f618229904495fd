"""Six freqtrade bots at one gateway: how many reads they ask for, and how many of them are sent.

freqtrade is a program of its own, and is named by --program. The bots are alike: the same pairs, candles of
one minute, dry run. The exchange is scripted after OKX's public interface and counts what arrives. With
`limits.share_open_s` at 0 only reads that wait are shared; each further value is a run of its own.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.test_utils import RawTestServer

from bench.pages import table
from rig.fake_symbols import OKX_SYMBOL
from sealgate.config import Config
from sealgate.orders.outcome import Outcome
from sealgate.server.gateway import running_gateway

ROOT = Path(__file__).parents[1]
_HEAD = ("share_open_s", "asked", "sent", "%", "failed", "longest wait ms")
COINS = ("BTC", "ETH", "SOL", "XRP", "ADA", "DOGE", "LTC", "LINK", "DOT", "AVAX")
_MINUTE_MS = 60_000
_STRATEGY = """
from freqtrade.strategy import IStrategy


class Always(IStrategy):
    timeframe, minimal_roi, stoploss, startup_candle_count = "1m", {"0": 0.02}, -0.1, 30

    def populate_indicators(self, dataframe, metadata):
        return dataframe

    def populate_entry_trend(self, dataframe, metadata):
        dataframe["enter_long"] = 1
        return dataframe

    def populate_exit_trend(self, dataframe, metadata):
        dataframe["exit_long"] = 0
        return dataframe
"""


class Exchange:
    """OKX's public reads; `arrived` counts them by path."""

    def __init__(self) -> None:
        self.arrived: Counter[str] = Counter()

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """Answer a request."""
        path = request.path.removeprefix("/api/v5/")
        self.arrived[path] += 1
        now = time.time_ns() // 1_000_000
        price = f"{65_000 + now // 1000 % 100}"
        data: list[Any] = []
        if path == "public/time":
            data = [{"ts": str(now)}]
        elif path == "public/instruments" and request.query.get("instType") == "SPOT":
            data = [{**OKX_SYMBOL, "instId": f"{coin}-USDT", "baseCcy": coin} for coin in COINS]
        elif path in ("market/candles", "market/history-candles"):
            last = now - now % _MINUTE_MS
            times = range(last, last - 300 * _MINUTE_MS, -_MINUTE_MS)
            data = [[str(at), price, price, price, price, "1", "1", "1", "1"] for at in times]
        elif path == "market/books":
            book = [price, "10", "0", "1"]
            data = [{"asks": [book], "bids": [book], "ts": str(now)}]
        elif path in ("market/ticker", "market/tickers"):
            ticker = {"last": price, "askPx": price, "bidPx": price, "ts": str(now), "instType": "SPOT"}
            data = [{**ticker, "instId": f"{coin}-USDT"} for coin in COINS]
        return web.json_response({"code": "0", "msg": "", "data": data})


@asynccontextmanager
async def running_bot(program: str, number: int, url: str, folder: Path) -> AsyncIterator[None]:
    """Run a bot in a dry run."""
    part = json.loads((ROOT / "examples" / "freqtrade.json").read_text())
    part["ccxt_config"]["urls"]["api"]["rest"] = url
    part["ccxt_config"]["headers"] = {"Authorization": f"Bearer {_token(number)}"}
    part["pair_whitelist"] = [f"{coin}/USDT" for coin in COINS]
    pricing = {"price_side": "same", "use_order_book": True, "order_book_top": 1}
    tree = {
        "initial_state": "running",
        "dry_run": True,
        "dry_run_wallet": 1_000_000,
        "max_open_trades": 3,
        "stake_currency": "USDT",
        "stake_amount": 100,
        "trading_mode": "spot",
        "exchange": part,
        "pairlists": [{"method": "StaticPairList"}],
        "entry_pricing": pricing,
        "exit_pricing": pricing,
        "strategy": "Always",
        "strategy_path": str(folder),
        "internals": {"process_throttle_secs": 5},
        "db_url": f"sqlite:///{folder}/bot{number}.sqlite",
        "user_data_dir": str(folder),
    }
    (folder / f"bot{number}.json").write_text(json.dumps(tree))
    command = (program, "trade", "--config", str(folder / f"bot{number}.json"), "--no-color")
    with (folder / f"bot{number}.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log)
        try:
            yield
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()


def _token(number: int) -> str:
    return f"token-of-bot-{number}-0123456789012345678901"


async def run(options: argparse.Namespace, share_open_s: float) -> tuple[str, ...]:
    """Return the row of a run: what the bots asked for, what of it was sent, and what was shared."""
    exchange, outcomes, bots = Exchange(), list[Outcome](), range(options.bots)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "always.py").write_text(_STRATEGY)
        server = await stack.enter_async_context(RawTestServer(exchange.answer))
        config = Config.model_validate(
            {
                "venue": "okx",
                "base_url": f"http://127.0.0.1:{server.port}",
                "listen": {"tcp": "127.0.0.1:0"},
                "admin": {"tcp": "127.0.0.1:0"},
                "limits": {"share_open_s": share_open_s},
                "keys": {"main": {"api_key": "k", "secret": "env:SECRET", "passphrase": "env:SECRET"}},
                "bots": {f"bot{number}": {"token": f"env:TOKEN{number}"} for number in bots},
            }
        )
        environ = {"SECRET": "real secret", **{f"TOKEN{number}": _token(number) for number in bots}}
        gateway = await stack.enter_async_context(running_gateway(config, (outcomes.extend,), environ))
        for number in bots:
            address = f"http://{gateway.address}"
            await stack.enter_async_context(running_bot(options.program, number, address, folder))
        await asyncio.sleep(options.seconds)
        if options.logs:
            print((folder / "bot0.log").read_text())
    asked, sent = len(outcomes), sum(outcome.attempts for outcome in outcomes)
    failed = sum(outcome.status != HTTPStatus.OK for outcome in outcomes)
    waited_ms = 1e3 * max((outcome.queue_s for outcome in outcomes), default=0.0)
    row = (share_open_s, asked, sent, f"{100 * sent / max(asked, 1):.0f}", failed, f"{waited_ms:.0f}")
    return tuple(map(str, row))


def main() -> None:
    """Measure each value of `limits.share_open_s`, and print a table."""
    parser = argparse.ArgumentParser(description="Count what six freqtrade bots ask for, and what is sent.")
    parser.add_argument("--program", default="freqtrade", help="where freqtrade is")
    parser.add_argument("--bots", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=180.0, help="of each run (180)")
    parser.add_argument(
        "--ages", type=float, nargs="+", default=[0.0, 0.5, 2.0], help="of a shared reply, in s"
    )
    parser.add_argument("--logs", action="store_true", help="print the log of the first bot")
    options = parser.parse_args()
    rows = [asyncio.run(run(options, age)) for age in options.ages]
    print(table(_HEAD, rows))


if __name__ == "__main__":
    main()
