"""A gateway with its admin address."""

from collections.abc import AsyncIterator

import pytest

from rig.admin import Admin, running_admin
from rig.station import Station
from sealgate.admin.metrics import Metrics


@pytest.fixture
async def admin(station: Station) -> AsyncIterator[Admin]:
    status = station.gateway.status
    async with running_admin(status, Metrics(status)) as running:
        yield running
