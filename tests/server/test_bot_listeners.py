"""A bot's own address: whoever connects there is this bot; a reload opens, moves and closes it."""

import ssl
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from rig.bot import Reply, bot_at, request
from rig.listeners import Certificates, bot_on
from rig.ports import free_port
from rig.station import ENVIRON, KEY, running_station
from rig.two_exchanges import GRID, SPOT_ONLY, Two, config_of, two_exchanges
from rig.upstream import Upstream
from sealgate.config import Config
from sealgate.orders.halts import Scope
from sealgate.server.reload import ReloadError

ORDER = b"/v1/trade/order"
AT_SPOT = request(b"POST", b"/spot/v1/trade/order", body=b"{}")
AT_PERP = request(b"POST", b"/perp/v1/trade/order", body=b"{}")


def bots(**listen: str) -> dict[str, Any]:
    """Return the bots with their own addresses; `cash` may use `spot` alone."""
    tables: dict[str, dict[str, Any]] = {
        "grid": {"token": "env:GRID", "keys": ["main", "swap"]},
        "cash": {"token": "env:SPOT_ONLY", "key": "main"},
    }
    for name, address in listen.items():
        tables[name]["listen"] = address
    return tables


def port_of(two: Two, bot: str) -> int:
    return int(two.gateway.listeners.bot_urls[bot].rpartition(":")[2])


async def asked(two: Two, raw: bytes, port: int) -> tuple[int, str | None]:
    """Send a request; return the reply's status, and whose request it was."""
    reply = await two.ask(raw, port)
    own_id = reply.text("X-Gateway-Request-Id")
    await two.until(lambda: any(one.request_id == own_id for one in two.outcomes.all))
    return reply.status, next(one.bot for one in two.outcomes.all if one.request_id == own_id)


async def test_whoever_connects_there_is_this_bot() -> None:
    async with two_exchanges(bots=bots(grid="127.0.0.1:0", cash="127.0.0.1:0")) as two:
        grid, cash = port_of(two, "grid"), port_of(two, "cash")
        assert await asked(two, AT_SPOT, grid) == (200, "grid")
        # The same bytes at another bot's address, and at that of all, are another's.
        assert await asked(two, AT_SPOT, cash) == (200, "cash")
        assert (await two.ask(AT_SPOT)).reason == "bot_unauthenticated"
        # Paths begin with an exchange's name there, as everywhere.
        assert (await two.ask(AT_PERP, grid)).status == 200
        assert (await two.ask(AT_PERP, cash)).reason == "unknown_exchange"
        assert (await two.ask(request(b"POST", ORDER, body=b"{}"), grid)).reason == "unknown_exchange"
        assert (len(two.spot.received), len(two.perp.received)) == (2, 1)


async def test_a_token_that_is_sent_there_is_this_bots() -> None:
    async with two_exchanges(bots=bots(grid="127.0.0.1:0")) as two:
        port = port_of(two, "grid")
        for token, status in ((GRID, 200), (SPOT_ONLY, 401), (b"Authorization: Bearer wrong", 401)):
            sent = request(b"POST", b"/spot/v1/trade/order", token, body=b"{}")
            assert (await two.ask(sent, port)).status == status
        assert len(two.spot.received) == 1


PAGES = {
    "another name": ([b"Host: evil.example:1"], "host_refused"),
    "a page": ([b"Origin: http://evil.example"], "browser_refused"),
    "a page of this very address": ([b"Origin: http://localhost"], "browser_refused"),
    "an image in a page": ([b"Sec-Fetch-Site: cross-site"], "browser_refused"),
    "a link in a page": ([b"Referer: http://evil.example/"], "browser_refused"),
    "a web socket of a page": (
        [b"Upgrade: websocket", b"Connection: Upgrade", b"Origin: http://evil.example"],
        "browser_refused",
    ),
}


@pytest.mark.parametrize(("fields", "reason"), PAGES.values(), ids=PAGES)
async def test_no_page_is_this_bot(fields: list[bytes], reason: str) -> None:
    async with two_exchanges(bots=bots(grid="127.0.0.1:0")) as two:
        host = [] if fields[0].startswith(b"Host") else [b"Host: localhost"]
        sent = b"\r\n".join([b"GET /spot/v1/trade/order HTTP/1.1", *host, *fields, b"", b""])
        assert (await two.ask(sent, port_of(two, "grid"))).reason == reason
        assert two.spot.received == []


async def test_what_stops_a_bot_stops_it_there() -> None:
    async with two_exchanges(bots=bots(grid="127.0.0.1:0")) as two:
        await two.gateway.halt(Scope(bot="grid"))
        assert (await two.ask(AT_SPOT, port_of(two, "grid"))).reason == "halted"


class Settings:
    """What the next reload reads: the bots' own addresses, and that of the exchange `perp`."""

    def __init__(self, **listen: str) -> None:
        self.urls: tuple[str, str] = "", ""
        self.listen = listen
        self.perp = ""

    def exchanges(self, spot: str, perp: str) -> dict[str, Any]:
        """Return the table of exchanges."""
        self.urls = spot, perp
        return {"spot": {"base_url": spot}, "perp": {"base_url": perp, "listen": self.perp}}

    def __call__(self) -> Config:
        return config_of(*self.urls, exchanges=self.exchanges(*self.urls), bots=bots(**self.listen))


def reloading(settings: Settings) -> AbstractAsyncContextManager[Two]:
    return two_exchanges(load=settings, exchanges=settings.exchanges, bots=bots(**settings.listen))


async def test_a_reload_opens_moves_and_closes_it() -> None:
    settings = Settings()
    async with reloading(settings) as two:
        first, second = free_port(), free_port()
        # 1. It is opened.
        settings.listen = {"grid": f"127.0.0.1:{first}"}
        await two.gateway.reloader.reload("test")
        assert (await two.ask(AT_PERP, first)).status == 200
        async with bot_at("127.0.0.1", first) as open_before:
            assert (await open_before.ask(AT_PERP)).status == 200
            # 2. Another bot gets it. Who is connected already is not that bot, and no longer the former one.
            settings.listen = {"cash": f"127.0.0.1:{first}", "grid": f"127.0.0.1:{second}"}
            await two.gateway.reloader.reload("test")
            assert two.gateway.status().bot_urls == {
                "grid": f"http://127.0.0.1:{second}",
                "cash": f"http://127.0.0.1:{first}",
            }
            refused = await open_before.ask(AT_SPOT)
            assert (refused.status, refused.closes) == (401, True)
            assert "no longer belongs to the bot grid" in refused.document()["detail"]
        assert await asked(two, AT_SPOT, first) == (200, "cash")
        assert (await two.ask(AT_PERP, second)).status == 200
        # 3. An exchange gets it: there, nobody is a bot without a token.
        settings.listen, settings.perp = {}, f"127.0.0.1:{first}"
        await two.gateway.reloader.reload("test")
        assert (await two.ask(request(b"POST", ORDER, body=b"{}"), first)).reason == "bot_unauthenticated"
        assert (await two.ask(request(b"POST", ORDER, GRID, body=b"{}"), first)).status == 200
        with pytest.raises(ConnectionError):
            await two.ask(AT_PERP, second)
        # 4. It is closed.
        settings.perp = ""
        await two.gateway.reloader.reload("test")
        with pytest.raises(ConnectionError):
            await two.ask(AT_PERP, first)


async def test_two_bots_change_addresses() -> None:
    first, second = free_port(), free_port()
    settings = Settings(grid=f"127.0.0.1:{first}", cash=f"127.0.0.1:{second}")
    async with reloading(settings) as two, bot_at("127.0.0.1", first) as open_before:
        assert (await open_before.ask(AT_PERP)).status == 200
        settings.listen = {"cash": f"127.0.0.1:{first}", "grid": f"127.0.0.1:{second}"}
        await two.gateway.reloader.reload("test")
        assert (await open_before.ask(AT_PERP)).status == 401
        for port, bot in ((first, "cash"), (second, "grid")):
            assert await asked(two, AT_SPOT, port) == (200, bot)


async def test_free_ports_are_not_shared() -> None:
    settings = Settings(grid="127.0.0.1:0")
    async with reloading(settings) as two, bot_at("127.0.0.1", port_of(two, "grid")) as open_before:
        before = port_of(two, "grid")
        settings.listen = {"cash": "127.0.0.1:0", "grid": "127.0.0.1:0"}
        await two.gateway.reloader.reload("test")
        assert (await open_before.ask(AT_PERP)).status == 200
        assert port_of(two, "grid") == before != port_of(two, "cash")
        assert await asked(two, AT_SPOT, port_of(two, "cash")) == (200, "cash")


async def test_an_address_that_another_program_has() -> None:
    settings = Settings()
    async with reloading(settings) as two:
        settings.listen = {"grid": f"127.0.0.1:{two.gateway.address.port}"}
        with pytest.raises(ReloadError, match=r"set bots\.grid\.listen"):
            await two.gateway.reloader.reload("test")


async def test_it_has_no_tls_and_wants_no_certificate(upstream: Upstream, tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    listen = certificates.settings | {"client_ca": str(certificates.ca_file)}
    own = {"grid": {"listen": "127.0.0.1:0"}, "watch": {}}
    async with running_station(upstream, listen=listen, bots=own) as station:
        url = station.gateway.listeners.bot_urls["grid"]
        assert url.startswith("http://")
        async with bot_at("127.0.0.1", int(url.rpartition(":")[2])) as bot:
            assert (await bot.ask(request())).status == 200

        async def at_the_common_address(context: ssl.SSLContext) -> Reply:
            where = station.gateway.address
            async with bot_on(host="127.0.0.1", port=where.port, ssl=context) as other:
                return await other.ask(request())

        assert (await at_the_common_address(certificates.client("watch"))).status == 200


async def test_a_bot_may_have_no_other_way_in(upstream: Upstream) -> None:
    tables: dict[str, Any] = {
        "listen": {"tcp": ""},
        "keys": {"main": KEY},
        "bots": {"grid": {"listen": "localhost:0"}},
    }
    async with running_station(upstream, ENVIRON, **tables) as station:
        assert station.gateway.listeners.urls == ()
        port = int(station.gateway.listeners.bot_urls["grid"].rpartition(":")[2])
        async with bot_at("127.0.0.1", port) as bot:
            assert (await bot.ask(request())).status == 200
