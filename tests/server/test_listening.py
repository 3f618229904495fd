"""The doors: which are open, under which loop, and what an address that cannot be had says."""

import asyncio
import socket
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from rig.bot import request
from rig.listeners import Certificates, bot_on, unix_connection
from rig.station import ENVIRON, running_station
from rig.upstream import Upstream, running_upstream
from sealgate.machine.process import StartError


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


async def use_every_door(certificates: Certificates, path: Path) -> None:
    listen = {**certificates.settings, "client_ca": str(certificates.ca_file), "unix": str(path)}
    bots = {"grid": {}, "watch": {"uid": path.parent.stat().st_uid}}
    async with (
        running_upstream() as upstream,
        running_station(upstream, ENVIRON, listen=listen, bots=bots) as station,
    ):
        context, port = certificates.client("grid"), station.gateway.address.port
        async with bot_on(host="127.0.0.1", port=port, ssl=context) as bot:
            assert (await bot.ask(request())).status == 200
        async with bot_on(unix_connection(path)) as bot:
            assert (await bot.ask(request())).status == 200
        assert [one.bot for one in station.outcomes.all] == ["grid", "watch"]


@pytest.mark.parametrize("module", ["asyncio", "uvloop"])
def test_every_door_under_either_loop(certificates: Certificates, tmp_path: Path, module: str) -> None:
    loops = pytest.importorskip(module, reason="the extra `fast` is not installed")
    with asyncio.Runner(loop_factory=loops.new_event_loop) as runner:
        runner.run(use_every_door(certificates, tmp_path / "bots.sock"))


@pytest.mark.parametrize("is_tls", [False, True])
async def test_an_address_that_is_taken(
    upstream: Upstream, certificates: Certificates, *, is_tls: bool
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = {"tcp": f"127.0.0.1:{taken.getsockname()[1]}"} | (certificates.settings if is_tls else {})
        with pytest.raises(StartError, match=r"another program listens there; set listen\.tcp to another"):
            async with running_station(upstream, listen=listen):
                pass


@pytest.mark.parametrize("is_tls", [False, True])
async def test_nobody_can_take_a_share_of_the_connections(
    upstream: Upstream, certificates: Certificates, *, is_tls: bool
) -> None:
    async with running_station(upstream, listen=certificates.settings if is_tls else {}) as station:
        with socket.socket() as thief:
            thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            with pytest.raises(OSError, match="Address already in use"):
                thief.bind(("127.0.0.1", station.gateway.address.port))


async def test_where_one_door_cannot_be_opened_the_other_is_closed_again(
    upstream: Upstream, tmp_path: Path
) -> None:
    path = tmp_path / "bots.sock"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = {"tcp": f"127.0.0.1:{taken.getsockname()[1]}", "unix": str(path)}
        with pytest.raises(StartError):
            await running_station(upstream, listen=listen).__aenter__()
    with pytest.raises(FileNotFoundError):
        unix_connection(path)


@pytest.mark.parametrize(("host", "is_tls", "warns"), [("0.0.0.0", False, True), ("0.0.0.0", True, False)])
async def test_plain_http_for_other_machines_is_warned_of(
    upstream: Upstream, certificates: Certificates, host: str, *, is_tls: bool, warns: bool
) -> None:
    listen = {"tcp": f"{host}:0"} | (certificates.settings if is_tls else {})
    with capture_logs() as logs:
        async with running_station(
            upstream, {**ENVIRON, "T": "t"}, listen=listen, bots={"a": {"token": "env:T"}}
        ):
            pass
    told = [line for line in logs if line["event"] == "bots_without_tls"]
    assert bool(told) is warns
    assert all("listen.tls_cert" in line["fix"] for line in told)
