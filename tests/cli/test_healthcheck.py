"""`sealgate healthcheck` before an admin address that answers as the test says."""

from collections.abc import AsyncIterator
from http.client import BadStatusLine
from pathlib import Path
from socket import gaierror

import pytest

from rig.command import ended_command
from rig.upstream import Upstream, running_upstream, say
from rig.wire import reply
from sealgate.config.settings import Admin

ENVIRON = {
    "SEALGATE_BASE_URL": "http://127.0.0.1:7",
    "SEALGATE_KEYS__MAIN__API_KEY": "ak-public-1",
    "SEALGATE_KEYS__MAIN__SECRET": "env:NOWHERE",
}
READY = reply(b"200 OK", b"ready\n")


async def healthcheck(admin: str, *options: str, **environ: str) -> tuple[int, str, str]:
    """Return exit code, stdout and stderr."""
    env = ENVIRON | {"SEALGATE_ADMIN__TCP": admin} | environ
    result = await ended_command("healthcheck", *options, environ=env)
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
async def admin() -> AsyncIterator[Upstream]:
    async with running_upstream() as there:
        there.otherwise = say(READY)
        yield there


async def test_a_ready_gateway(admin: Upstream) -> None:
    address = f"127.0.0.1:{admin.port}"
    assert await healthcheck(address) == (0, "ready\n", "")
    assert await healthcheck(address, "--live", SEALGATE_ADMIN__HOSTS="gate.example") == (0, "healthy\n", "")
    asked = [(one.target, one.head.value(b"Host")) for one in admin.received]
    assert asked == [(b"/-/ready", b"127.0.0.1"), (b"/-/healthy", b"gate.example")]


async def test_a_gateway_on_every_address_is_asked_on_this_machines_own(admin: Upstream) -> None:
    assert (await healthcheck(f"0.0.0.0:{admin.port}"))[0] == 0


async def test_reasons_why_it_is_not_ready(admin: Upstream) -> None:
    admin.otherwise = say(reply(b"503 Service Unavailable", b"not ready: shutting down\nnot ready: clock\n"))
    told = "sealgate: not ready: shutting down\nsealgate: not ready: clock\n"
    assert await healthcheck(f"127.0.0.1:{admin.port}") == (1, "", told)


async def test_one_exchange_of_several(admin: Upstream) -> None:
    address = f"127.0.0.1:{admin.port}"
    assert await healthcheck(address, "--exchange", "perp") == (0, "ready\n", "")
    assert admin.received[-1].target == b"/-/ready?exchange=perp"
    admin.otherwise = say(reply(b"404 Not Found", b"no such exchange; known: spot, perp\n"))
    told = "sealgate: no such exchange; known: spot, perp\n"
    assert await healthcheck(address, "--exchange", "s&p") == (1, "", told)
    assert admin.received[-1].target == b"/-/ready?exchange=s%26p"
    code, _, told = await healthcheck(address, "--exchange", "perp", "--live")
    assert (code, "give only one" in told) == (2, True)


async def test_somebody_else_at_the_address(admin: Upstream) -> None:
    address = f"127.0.0.1:{admin.port}"
    admin.otherwise = say(reply(b"421 Misdirected Request", b""))
    told = f"sealgate: {address} answers 421 to /-/ready; is it the gateway's admin.tcp?\n"
    assert await healthcheck(address) == (1, "", told)


async def test_nobody_at_the_address() -> None:
    told = "sealgate: no gateway answers at 127.0.0.1:9: connection refused; start it with `sealgate serve`\n"
    assert await healthcheck("127.0.0.1:9") == (1, "", told)


async def test_without_any_configuration_the_default_address_is_asked(
    admin: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gateway's variables may stand in its own terminal alone."""
    monkeypatch.chdir(tmp_path)
    default = {"tcp": f"127.0.0.1:{admin.port}"}
    monkeypatch.setattr("sealgate.config.load.Admin", lambda: Admin.model_validate(default))
    result = await ended_command("healthcheck", environ={})
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
        ("", "is off, so there is no address to ask; set one"),
        ("127.0.0.1:0", "has port 0, which means a new port at each start; give it a fixed one"),
    ],
)
async def test_an_address_that_nobody_can_ask(address: str, told: str) -> None:
    assert await healthcheck(address) == (2, "", f"sealgate: error: admin.tcp {told}\n")
