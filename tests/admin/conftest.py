"""A gateway with its admin address, and a browser that shows the live page."""

from collections.abc import AsyncIterator

import pytest

from rig.admin import Admin, running_admin
from rig.chromium import Page, running_chromium
from rig.station import Station
from sealgate.admin.metrics import Metrics


@pytest.fixture
async def admin(station: Station) -> AsyncIterator[Admin]:
    status = station.gateway.status
    async with running_admin(status, Metrics(status)) as running:
        yield running


@pytest.fixture
async def page(admin: Admin) -> AsyncIterator[Page]:
    async with running_chromium() as running:
        await running.open(f"http://127.0.0.1:{admin.port}/")
        await running.until("document.querySelector('#state')?.textContent === 'ready'")
        yield running
