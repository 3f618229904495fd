"""Real headless Chromium cannot place an order from a web page, and could if nobody guarded.

The pages are those of `browser_pages.py`. What the upstream received is the oracle; the gateway's outcomes
show that the attempts came.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from aiohttp import web
from aiohttp.test_utils import RawTestServer

from rig.browser_pages import (
    CROSS_ORIGIN,
    REBINDING,
    WAYS_OF_AN_OWN_ORIGIN,
    WAYS_THAT_NEED_NO_LEAVE,
)
from rig.chromium import FLAGS
from rig.programs import path_of
from rig.station import Station

pytestmark = pytest.mark.needs("chromium")

BROWSING_S = 40.0
OWN_FLAGS = (
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP evil.test 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
)


class Site:
    """The attacker's web site, evil.test to the browser. `turn` is a port that can be turned over."""

    def __init__(self, page: str) -> None:
        self.page = page
        self.port = 0
        self.is_done = asyncio.Event()
        self.turn = Turn()

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """Serve the page, or note what it says."""
        if request.path == "/done":
            self.is_done.set()
        elif request.path == "/rebind":
            self.turn.is_turned = True
        response = web.Response(text=self.page if request.path == "/" else "", content_type="text/html")
        response.force_close()
        return response


class Turn:
    """A port that leads to the site, and after the turn to the gateway, as a name does that is bound anew."""

    def __init__(self) -> None:
        self.port = 0
        self.before = 0
        self.after = 0
        self.is_turned = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass a connection on."""
        there = await asyncio.open_connection("127.0.0.1", self.after if self.is_turned else self.before)
        await asyncio.gather(_pump(reader, there[1]), _pump(there[0], writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
    writer.close()


@contextlib.asynccontextmanager
async def running_site(page: str, station: Station) -> AsyncIterator[Site]:
    """Run the site and its port that turns. `page` may name `gateways` and `site`."""
    site = Site(page)
    async with RawTestServer(site.answer) as server:
        site.port = site.turn.before = server.port or 0
        site.turn.after = station.gateway.address.port
        turn = await asyncio.start_server(site.turn.serve, "127.0.0.1", 0)
        site.turn.port = turn.sockets[0].getsockname()[1]
        gateways = [
            f"http://{name}:{station.gateway.address.port}"
            for name in ("127.0.0.1", "localhost", "evil.test")
        ]
        site.page = page % {"gateways": json.dumps(gateways), "site": f"http://evil.test:{site.port}"}
        with contextlib.closing(turn):
            yield site


async def browse(url: str, site: Site, folder: Path) -> None:
    """Open a page in a new browser, and leave it when the page says that it is done."""
    browser = await asyncio.create_subprocess_exec(
        path_of("chromium"),
        *FLAGS,
        *OWN_FLAGS,
        f"--user-data-dir={folder}",
        url,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(BROWSING_S):
            await site.is_done.wait()
    finally:
        browser.terminate()
        await browser.wait()


def ways_that_got_through(station: Station) -> set[str]:
    """Return the names of the ways by which an order arrived."""
    received = station.upstream.received
    return {parse_qs(item.target.partition(b"?")[2].decode())["via"][0] for item in received}


async def attack_from_another_origin(station: Station, folder: Path) -> None:
    async with running_site(CROSS_ORIGIN, station) as site:
        await browse(f"http://evil.test:{site.port}/", site, folder)


async def attack_by_rebinding(station: Station, folder: Path) -> None:
    async with running_site(REBINDING, station) as site:
        await browse(f"http://evil.test:{site.turn.port}/", site, folder)


async def test_no_page_of_another_origin_places_an_order(station: Station, tmp_path: Path) -> None:
    await attack_from_another_origin(station, tmp_path)
    assert ways_that_got_through(station) == set()
    reasons = [outcome.reason for outcome in station.outcomes.all]
    assert len(reasons) > 2 * len(WAYS_THAT_NEED_NO_LEAVE)
    assert {"browser_refused", "host_refused"} <= set(reasons) <= {"browser_refused", "host_refused"}


async def test_no_page_places_an_order_by_rebinding(station: Station, tmp_path: Path) -> None:
    await attack_by_rebinding(station, tmp_path)
    assert ways_that_got_through(station) == set()
    reasons = [outcome.reason for outcome in station.outcomes.all]
    assert len(reasons) >= len(WAYS_OF_AN_OWN_ORIGIN)
    assert set(reasons) == {"host_refused"}
