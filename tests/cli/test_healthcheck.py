import asyncio
from http.client import BadStatusLine
from pathlib import Path
from socket import gaierror

import pytest
from click.testing import CliRunner
from pytest_aiohttp import AiohttpServer

from sealgate.cli import main
from sealgate.config.settings import Admin
from sealgate.exchange.clock import ClockStatus
from sealgate.machine.system import System
from sealgate.observe.admin import admin_app
from sealgate.observe.live import Live
from sealgate.observe.metrics import Metrics
from sealgate.observe.status import Status
from sealgate.orders.doubts import JournalStatus

ENVIRON = {
    "SEALGATE_BASE_URL": "http://127.0.0.1:7",
    "SEALGATE_KEYS__MAIN__API_KEY": "ak-public-1",
    "SEALGATE_KEYS__MAIN__SECRET": "env:NOWHERE",
}
Told = tuple[int, str, str]


async def healthcheck(admin: str, *options: str, **environ: str) -> Told:
    """Return exit code, stdout and stderr; it runs in a thread, as what it asks runs here."""
    env = ENVIRON | {"SEALGATE_ADMIN__TCP": admin} | environ
    result = await asyncio.to_thread(CliRunner().invoke, main, ["healthcheck", *options], env=env)
    return result.exit_code, result.stdout, result.stderr


def status(*reasons: str) -> Status:
    return Status(
        version="0",
        base_url="http://127.0.0.1:9",
        uptime_s=0.0,
        not_ready=reasons,
        is_draining=False,
        inflight=0,
        connections=0,
        clock=ClockStatus(offset_s=None, error_s=None, age_s=None, steps=0, refusals=0, trouble=None),
        keys=(),
        journal=JournalStatus(0, (), None, is_refusing=False),
    )


class Answers:
    """An admin address whose answer the test sets."""

    def __init__(self) -> None:
        self.status = status()
        self.port = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"


@pytest.fixture
async def admin(aiohttp_server: AiohttpServer) -> Answers:
    answers = Answers()
    metrics = Metrics(lambda: answers.status)
    hosts = frozenset({"127.0.0.1", "gate.example"})
    app = admin_app(
        lambda: answers.status, metrics, Live(lambda: answers.status, System()), hosts, is_loopback=True
    )
    answers.port = (await aiohttp_server(app)).port or 0
    return answers


async def test_a_ready_gateway(admin: Answers) -> None:
    assert await healthcheck(admin.address) == (0, "ready\n", "")


async def test_it_calls_the_gateway_by_a_name_of_admin_hosts(admin: Answers) -> None:
    assert (await healthcheck(admin.address, SEALGATE_ADMIN__HOSTS="gate.example"))[0] == 0


async def test_a_gateway_on_every_address_is_asked_on_this_machines_own(admin: Answers) -> None:
    assert (await healthcheck(f"0.0.0.0:{admin.port}"))[0] == 0


async def test_reasons_why_it_is_not_ready(admin: Answers) -> None:
    admin.status = status("shutting down", "clock not synced: no sample yet")
    told = "sealgate: not ready: shutting down\nsealgate: not ready: clock not synced: no sample yet\n"
    assert await healthcheck(admin.address) == (1, "", told)


async def test_a_gateway_that_cannot_sign_runs_all_the_same(admin: Answers) -> None:
    """So a container whose exchange is away is not restarted for it."""
    admin.status = status("clock not synced: no sample yet")
    assert await healthcheck(admin.address, "--live") == (0, "healthy\n", "")


async def test_somebody_else_at_the_address(admin: Answers) -> None:
    code, out, err = await healthcheck(admin.address, SEALGATE_ADMIN__HOSTS="other.example")
    assert (code, out) == (1, "")
    assert err == f"sealgate: {admin.address} answers 421 to /-/ready; is it the gateway's admin.tcp?\n"


async def test_nobody_at_the_address() -> None:
    code, out, err = await healthcheck("127.0.0.1:9")
    assert (code, out) == (1, "")
    told = "sealgate: no gateway answers at 127.0.0.1:9: connection refused; start it with `sealgate serve`\n"
    assert err == told


async def test_without_any_configuration_the_default_address_is_asked(
    admin: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gateway's variables may stand in its own terminal alone."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sealgate.config.load.Admin", lambda: Admin.model_validate({"tcp": admin.address}))
    result = await asyncio.to_thread(CliRunner().invoke, main, ["healthcheck"])
    assert (result.exit_code, result.output) == (0, "ready\n")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (TimeoutError("timed out"), "no reply within 5 s"),
        (BadStatusLine("220 mail.example"), "does not speak HTTP"),
        (gaierror(-2, "Name or service not known"), "name or service not known; start it"),
    ],
    ids=["silent", "another protocol", "no such host"],
)
async def test_trouble_is_told_in_plain_words(
    monkeypatch: pytest.MonkeyPatch, error: Exception, told: str
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("http.client.HTTPConnection.request", fail)
    code, _, err = await healthcheck("127.0.0.1:9")
    assert code == 1
    assert told in err
    assert "Errno" not in err


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("", "is off, so there is nothing to ask; give it an address"),
        ("127.0.0.1:0", "has port 0, which means a new port at each start; give it a fixed one"),
    ],
)
async def test_an_address_that_nobody_can_ask(address: str, told: str) -> None:
    code, out, err = await healthcheck(address)
    assert (code, out) == (2, "")
    assert err == f"sealgate: error: admin.tcp {told}\n"
