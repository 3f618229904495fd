"""What `check` says of the way to an exchange: DNS, or the proxy that looks the name up, and TLS."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from rig.backends import the_exchange
from rig.connections import running_server
from rig.proxies import PASSWORD, USER, running_proxy
from rig.station import make_config
from rig.tls import Authority
from sealgate.config import ExchangeConfig
from sealgate.diagnose.local import read_passwords
from sealgate.diagnose.network import look_at_way
from sealgate.keys.key import Secret
from sealgate.machine.findings import Finding, Level

NAME = "exchange.test"
SCHEMES = pytest.mark.parametrize("scheme", ["http", "socks5"])


async def lines(found: AsyncIterator[Finding]) -> list[tuple[str, Level, str]]:
    return [(one.area, one.level, f"{one.text}; {one.fix}") async for one in found]


def exchange_behind(proxy: str, **more: Any) -> ExchangeConfig:
    return the_exchange(make_config(f"https://{NAME}", upstream={"proxy": proxy, **more}))


@pytest.fixture(autouse=True)
def _no_look_ups(monkeypatch: pytest.MonkeyPatch) -> None:
    look_up = asyncio.BaseEventLoop.getaddrinfo

    async def getaddrinfo(loop: Any, host: Any, *args: Any, **more: Any) -> Any:
        assert host != NAME, "the proxy looks it up"
        return await look_up(loop, host, *args, **more)

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", getaddrinfo)


@SCHEMES
async def test_through_a_proxy(scheme: str, authority: Authority, tmp_path: Path) -> None:
    async with (
        running_server(authority.server_context(NAME)) as server,
        running_proxy(scheme, {NAME: server.port}) as proxy,
    ):
        proxy.needs_login = True
        config = exchange_behind(proxy.url, ca_file=authority.write(tmp_path))
        first, second = await lines(look_at_way(config, {}, Secret(PASSWORD)))
    assert first[:2] == ("proxy", Level.OK)
    assert first[2].startswith(f"127.0.0.1:{proxy.port} leads to {NAME}:443")
    assert second[0] == "TLS"
    assert "the certificate is valid until" in second[2]


@SCHEMES
async def test_a_refusal_is_the_proxys_and_tls_is_not_tried(scheme: str) -> None:
    async with running_proxy(scheme) as proxy:
        proxy.needs_login = True
        config = exchange_behind(proxy.url.replace(f"{USER}@", ""))
        [(area, level, text)] = await lines(look_at_way(config, {"HTTPS_PROXY": "http://x"}))
    assert (area, level) == ("proxy", Level.FAIL)
    assert f"the proxy 127.0.0.1:{proxy.port} requires a user" in text
    assert text.endswith("; write its user in upstream.proxy, and set upstream.proxy_password")


@SCHEMES
async def test_a_proxy_that_hangs(scheme: str) -> None:
    async with running_proxy(scheme) as proxy:
        proxy.answers = False
        config = exchange_behind(proxy.url, connect_timeout=0.1)
        [(area, level, text)] = await lines(look_at_way(config, {}))
    assert (area, level) == ("proxy", Level.FAIL)
    assert text == f"no connection through the proxy 127.0.0.1:{proxy.port} in time; see upstream.proxy"


@SCHEMES
async def test_no_tls_is_needed_on_this_machine(scheme: str) -> None:
    async with running_server() as server, running_proxy(scheme) as proxy:
        config = the_exchange(make_config(f"http://127.0.0.1:{server.port}", upstream={"proxy": proxy.url}))
        assert [one[:2] for one in await lines(look_at_way(config, {}))] == [
            ("proxy", Level.OK),
            ("TLS", Level.OK),
        ]


def test_the_password_is_read_on_this_machine() -> None:
    def found(reference: str, environ: dict[str, str]) -> tuple[list[Finding], dict[str, Secret]]:
        config = make_config(
            f"https://{NAME}",
            upstream={"proxy": f"http://{USER}@127.0.0.1:3128", "proxy_password": reference},
        )
        passwords: dict[str, Secret] = {}
        return list(read_passwords(config, config.served.values(), environ, passwords)), passwords

    [line], passwords = found("env:P", {"P": PASSWORD})
    assert (line.level, line.text) == (Level.OK, "the password is readable from env:P")
    assert passwords == {"service": Secret(PASSWORD)}
    for wrong in ("", "pässword", "x" * 256, "a\nb"):
        [line], passwords = found("env:P", {"P": wrong})
        assert (line.area, line.level, passwords) == ("upstream.proxy_password", Level.FAIL, {})
        assert not wrong or wrong not in line.text
