"""A gateway with its admin address, a client of what it serves, and a browser that shows the live page."""

from collections.abc import AsyncIterator, Iterator

import pytest
from pytest_aiohttp import AiohttpClient

from rig.admin import Admin, Client, application, live_view, running_admin
from rig.chromium import Page, new_page, running_chromium
from rig.station import Station
from sealgate.observe.live import Live
from sealgate.observe.metrics import Metrics


@pytest.fixture
def live(station: Station) -> Live:
    return live_view(station)


@pytest.fixture
async def admin(station: Station, live: Live) -> AsyncIterator[Admin]:
    status = station.gateway.status
    async with running_admin(status, Metrics(status), live) as running:
        yield running


@pytest.fixture
async def client(station: Station, live: Live, aiohttp_client: AiohttpClient) -> Client:
    return await aiohttp_client(application(station.gateway.status, live))


@pytest.fixture(scope="session")
def chromium() -> Iterator[int]:
    with running_chromium() as port:
        yield port


@pytest.fixture
async def blank(chromium: int) -> AsyncIterator[Page]:
    async with new_page(chromium) as page:
        yield page


@pytest.fixture
async def page(admin: Admin, blank: Page) -> Page:
    await blank.open(f"http://127.0.0.1:{admin.port}/")
    await blank.until("document.querySelector('#state')?.textContent === 'ready'")
    return blank
