"""A gateway with its admin address."""

from collections.abc import AsyncIterator

import pytest

from rig.admin import Admin, running_admin
from rig.station import Station, running_station
from rig.upstream import Upstream, running_upstream
from sealgate.admin.metrics import Metrics


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with running_upstream() as running:
        yield running


@pytest.fixture
async def station(upstream: Upstream) -> AsyncIterator[Station]:
    async with running_station(upstream) as running:
        yield running


@pytest.fixture
async def admin(station: Station) -> AsyncIterator[Admin]:
    status = station.gateway.status
    async with running_admin(status, Metrics(status)) as running:
        yield running
