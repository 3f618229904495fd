"""The stream of the live page, where it is not had: the house is full, or somebody only looks ahead."""

from collections.abc import AsyncIterator

import pytest

from admin.test_picture import STATUS
from rig.admin import Admin, running_admin
from sealgate.admin.live import Live
from sealgate.admin.metrics import Metrics
from sealgate.core.status import Status
from sealgate.gateway.host.host import Host


def status() -> Status:
    return STATUS


@pytest.fixture
def live() -> Live:
    return Live(status, Host())


@pytest.fixture
async def admin(live: Live) -> AsyncIterator[Admin]:
    async with running_admin(status, Metrics(status), live) as running:
        yield running


async def test_where_too_many_look_on_the_next_is_sent_away(
    admin: Admin, live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sealgate.admin.broadcast._MOST_VIEWERS", 1)
    with live.broadcast.viewing():
        reply = await admin.ask("/events")
        assert live.broadcast.viewers == 1
    assert (reply.status, reply.body) == (503, b"too many viewers\n")


async def test_a_stream_is_no_page_to_look_ahead_at(admin: Admin, live: Live) -> None:
    assert (await admin.ask("/events", method="HEAD")).status == 405
    assert live.broadcast.viewers == 0
