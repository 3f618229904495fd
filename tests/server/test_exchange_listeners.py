"""An exchange's own address: a reload opens, moves and closes it, and touches no other."""

import asyncio
from typing import Any

import pytest

from rig.bot import bot_at, request
from rig.ports import free_port
from rig.station import KEY
from rig.two_exchanges import GRID, config_of, two_exchanges
from rig.wire import PATIENCE_S
from sealgate.config import Config
from sealgate.orders.halts import Scope
from sealgate.server.reload import ReloadError

ORDER = request(b"POST", b"/v1/trade/order", GRID, body=b"{}")
NAMED = request(b"POST", b"/spot/v1/trade/order", GRID, body=b"{}")


class Settings:
    """What the next reload reads: own addresses of exchanges, and tables that replace the usual ones."""

    def __init__(self, **listen: str) -> None:
        self.urls: tuple[str, str] = "", ""
        self.listen = listen
        self.tables: dict[str, Any] = {}

    def exchanges(self, spot: str, perp: str) -> dict[str, Any]:
        """Return the table of exchanges."""
        self.urls = spot, perp
        tables: dict[str, dict[str, str]] = {"spot": {"base_url": spot}, "perp": {"base_url": perp}}
        for name, address in self.listen.items():
            tables[name]["listen"] = address
        return tables

    def __call__(self) -> Config:
        return config_of(*self.urls, **{"exchanges": self.exchanges(*self.urls), **self.tables})


async def test_a_reload_opens_moves_and_closes_it() -> None:
    settings = Settings()
    async with two_exchanges(load=settings, exchanges=settings.exchanges) as two:
        first, second = free_port(), free_port()
        async with bot_at(two.gateway.address.host, two.gateway.address.port) as before:
            named = request(b"POST", b"/spot/v1/trade/order", GRID, body=b"{}")
            assert (await before.ask(named)).status == 200
            # 1. It is opened.
            settings.listen = {"perp": f"127.0.0.1:{first}"}
            await two.gateway.reloader.reload("test")
            assert (await two.ask(ORDER, first)).status == 200
            # 2. It moves.
            settings.listen = {"perp": f"127.0.0.1:{second}"}
            await two.gateway.reloader.reload("test")
            assert (await two.ask(ORDER, second)).status == 200
            with pytest.raises(ConnectionError):
                await two.ask(ORDER, first)
            # 3. It goes to another exchange.
            settings.listen = {"spot": f"127.0.0.1:{first}"}
            await two.gateway.reloader.reload("test")
            assert (await two.ask(ORDER, first)).status == 200
            assert (len(two.spot.received), len(two.perp.received)) == (2, 2)
            # 4. It is closed. The common address has not noticed.
            settings.listen = {}
            await two.gateway.reloader.reload("test")
            with pytest.raises(ConnectionError):
                await two.ask(ORDER, first)
            assert (await before.ask(named)).status == 200


async def test_two_exchanges_change_addresses_and_no_request_is_lost() -> None:
    first, second = free_port(), free_port()
    settings = Settings(spot=f"127.0.0.1:{first}", perp=f"127.0.0.1:{second}")
    async with two_exchanges(load=settings, exchanges=settings.exchanges) as two:
        assert (await two.ask(ORDER, first)).status == 200
        settings.listen = {"spot": f"127.0.0.1:{second}", "perp": f"127.0.0.1:{first}"}
        await two.gateway.reloader.reload("test")
        for _ in range(3):
            assert (await two.ask(ORDER, first)).status == 200
        assert (len(two.spot.received), len(two.perp.received)) == (1, 3)


async def test_an_address_that_is_taken_changes_nothing() -> None:
    settings = Settings()
    async with two_exchanges(load=settings, exchanges=settings.exchanges) as two:
        other = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        async with other:
            settings.listen = {"perp": f"127.0.0.1:{other.sockets[0].getsockname()[1]}"}
            with pytest.raises(
                ReloadError, match=r"another program listens there; set exchanges\.perp\.listen"
            ):
                async with asyncio.timeout(PATIENCE_S):
                    await two.gateway.reloader.reload("test")
            assert (await two.ask(NAMED)).status == 200


async def test_what_goes_on_under_a_name_is_told() -> None:
    settings = Settings()
    async with two_exchanges(load=settings, exchanges=settings.exchanges) as two:
        await two.gateway.halt(Scope(exchange="perp"))
        settings.tables = {
            "exchanges": {
                "spot": {"base_url": two.perp.base_url},
                "swap": {"base_url": two.spot.base_url},
            },
            "keys": {
                "main": {**KEY, "exchange": "spot"},
                "swap": {"api_key": "ak-swap", "secret": "env:OTHER_SECRET", "exchange": "swap"},
            },
        }
        warnings = await two.gateway.reloader.reload("test")
        assert any("no exchange perp" in one for one in warnings)
        assert any(one.startswith("exchanges.spot.base_url has changed") for one in warnings)


ONE_TABLE = {
    "exchanges": lambda url: {"spot": {"base_url": url}},
    "keys": {"main": {**KEY, "exchange": "spot"}},
}
NO_TABLE = {"exchanges": lambda _: {}, "base_url": lambda url: url, "keys": {"main": KEY}}


@pytest.mark.parametrize("form", [ONE_TABLE, NO_TABLE], ids=["one table is left", "none is left"])
async def test_a_connection_to_an_exchange_that_is_gone_reaches_no_other(form: dict[str, Any]) -> None:
    port = free_port()
    settings = Settings(perp=f"127.0.0.1:{port}")
    async with (
        two_exchanges(load=settings, exchanges=settings.exchanges) as two,
        bot_at("127.0.0.1", port) as bot,
    ):
        assert (await bot.ask(ORDER)).status == 200
        settings.tables = {
            name: table(settings.urls[0]) if callable(table) else table for name, table in form.items()
        }
        settings.tables["bots"] = {"grid": {"token": "env:GRID", "key": "main"}}
        await two.gateway.reloader.reload("test")
        replied = await bot.ask(ORDER)
        assert (replied.status, replied.reason) == (404, "unknown_exchange")
        assert [one for one in two.spot.received if one.method == b"POST"] == []
        assert (await two.ask(ORDER if form is NO_TABLE else NAMED)).status == 200
