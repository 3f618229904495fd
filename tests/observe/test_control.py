"""The commands on the admin socket: what they take, and what they refuse to guess."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from rig.admin import live_view
from rig.station import Station, running_station
from rig.upstream import Upstream
from sealgate.observe.control import parse_command
from sealgate.observe.metrics import Metrics
from sealgate.orders.halts import Scope
from sealgate.server.serving import running_control


@pytest.mark.parametrize(
    ("body", "scope"),
    [
        (b"", Scope()),
        (b" \n", Scope()),
        (b"{}", Scope()),
        (b'{"bot": null, "key": null}', Scope()),
        (b'{"bot": "grid"}', Scope("grid")),
        (b'{"key": "main"}', Scope(None, "main")),
        (b'{"bot": "grid", "key": "main"}', Scope("grid", "main")),
        (b'{"exchange": "spot"}', Scope(exchange="spot")),
    ],
)
def test_whom_a_command_means(body: bytes, scope: Scope) -> None:
    assert parse_command(body) == (scope, "")


def test_a_reason() -> None:
    assert parse_command(b'{"bot": "grid", "reason": "a \\"bad\\" day"}') == (Scope("grid"), 'a "bad" day')
    assert parse_command(b'{"reason": null}') == (Scope(), "")


@pytest.mark.parametrize(
    "body",
    [
        b"grid",
        b"[]",
        b'"grid"',
        b"null",
        b'{"bots": "grid"}',
        b'{"bot": "grid", "kee": 1}',
        b'{"bot": ""}',
        b'{"bot": 7}',
        b'{"bot": ["grid"]}',
        b'{"exchange": ""}',
        b'{"exchange": ["spot"]}',
        b'{"reason": 7}',
        b'{"reason": "two\\nlines"}',
        b'{"reason": "\\u001b[2J"}',
        b'{"reason": "' + b"x" * 201 + b'"}',
        b"\xff",
    ],
)
def test_what_is_not_understood_halts_nobody(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_command(body)


class Desk:
    """A gateway and its admin socket."""

    def __init__(self, station: Station, session: aiohttp.ClientSession) -> None:
        self.station = station
        self._session = session

    async def ask(self, path: str, method: str = "GET", body: bytes = b"") -> tuple[int, str]:
        async with self._session.request(method, f"http://localhost{path}", data=body) as answer:
            return answer.status, await answer.text()

    async def tell(self, path: str, body: bytes = b"") -> tuple[int, dict[str, Any]]:
        status, text = await self.ask(path, "POST", body)
        document = json.loads(text)
        assert isinstance(document, dict)
        return status, document


@asynccontextmanager
async def running_desk(upstream: Upstream, folder: Path) -> AsyncIterator[Desk]:
    path = folder / "admin.sock"
    async with running_station(upstream, admin={"unix": str(path)}) as station:
        metrics = Metrics(station.gateway.status)
        async with (
            running_control(station.gateway, metrics, live_view(station)) as control,
            aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(path))) as session,
        ):
            assert control == path
            yield Desk(station, session)
        assert not path.exists()


async def test_a_halt_is_shown_everywhere(upstream: Upstream, tmp_path: Path) -> None:
    async with running_desk(upstream, tmp_path) as desk:
        status, said = await desk.tell("/-/halt", b'{"bot": "local"}')
        assert (status, said["refused"], said["survives_restart"]) == (200, 0, False)
        assert await desk.ask("/-/ready") == (200, "ready\nnote: orders are halted\n")
        assert 'sealgate_halted{bot="local",exchange="",key=""} 1.0' in (await desk.ask("/metrics"))[1]
        status, text = await desk.ask("/status.json")
        (halt,) = json.loads(text)["halts"]
        assert (halt["bot"], halt["key"], halt["exchange"]) == ("local", None, None)
        status, said = await desk.tell("/-/resume")
        assert (status, said["halts"]) == (200, [])
        assert await desk.ask("/-/ready") == (200, "ready\n")


@pytest.mark.parametrize("path", ["/-/halt", "/-/resume", "/-/reload"])
async def test_what_is_not_understood_is_told(upstream: Upstream, tmp_path: Path, path: str) -> None:
    async with running_desk(upstream, tmp_path) as desk:
        status, said = await desk.tell(path, b'{"bots": "grid"}')
        assert (status, "bot" in said["error"]) == (400, True)
        assert desk.station.gateway.status().halts == ()
        assert (await desk.ask(path))[0] == 405


async def test_a_reload(upstream: Upstream, tmp_path: Path) -> None:
    async with running_desk(upstream, tmp_path) as desk:
        status, said = await desk.tell("/-/reload")
        assert (status, said["warnings"]) == (200, [])
        assert 'sealgate_reloads_total{result="unchanged"} 1.0' in (await desk.ask("/metrics"))[1]
        assert (await desk.tell("/-/reload", b'{"key": "main"}'))[0] == 400
        await desk.station.gateway.drain()
        status, said = await desk.tell("/-/reload")
        assert (status, "shutting down" in said["error"]) == (409, True)
