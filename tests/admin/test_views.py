"""The stream of the live page, where it is not had: the house is full, or somebody only looks ahead."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from admin.test_picture import STATUS
from rig.admin import Admin, running_admin
from rig.wire import let_pass
from sealgate.admin.live import Live
from sealgate.admin.metrics import Metrics
from sealgate.core.status import Status
from sealgate.gateway.platform.system import System


def status() -> Status:
    return STATUS


@pytest.fixture
def live() -> Live:
    return Live(status, System())


@pytest.fixture
async def admin(live: Live) -> AsyncIterator[Admin]:
    async with running_admin(status, Metrics(status), live) as running:
        yield running


async def test_where_too_many_look_on_the_next_is_sent_away(
    admin: Admin, live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sealgate.admin.live._MOST_VIEWERS", 1)
    with live.broadcast.viewing():
        reply = await admin.ask("/events")
        assert live.broadcast.viewers == 1
    assert (reply.status, reply.body) == (503, b"too many viewers\n")


async def test_a_stream_is_no_page_to_look_ahead_at(admin: Admin, live: Live) -> None:
    assert (await admin.ask("/events", method="HEAD")).status == 405
    assert live.broadcast.viewers == 0


async def test_a_viewer_that_leaves_is_no_failure(admin: Admin, live: Live) -> None:
    failures: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    reader, writer = await asyncio.open_connection("127.0.0.1", admin.port)
    writer.write(b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    await reader.readuntil(b"event: history")
    writer.close()
    await writer.wait_closed()

    async with asyncio.timeout(5):
        while live.broadcast.viewers:
            live.broadcast.publish(("picture", "{}"))
            await let_pass(0)
    await let_pass(0)
    assert failures == []
