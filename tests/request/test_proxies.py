"""Clients that take the gateway for a proxy, and those that do not escape, are told what to write."""

import asyncio
import os
import shutil
import sys

import pytest

from rig.bot import request
from rig.station import Station

EXCHANGE = "https://api.exchange.example"
HINT = "The client uses the gateway as a proxy. Remove its proxy setting"


async def run(*command: str, **variables: str) -> str:
    """Return what a program prints, errors included."""
    environ = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()} | variables
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, env=environ
    )
    printed, _ = await process.communicate()
    return printed.decode()


def url_of(station: Station) -> str:
    return f"http://127.0.0.1:{station.gateway.address.port}"


@pytest.mark.parametrize(
    ("raw", "status", "instead"),
    [
        (request(b"CONNECT", b"api.exchange.example:443"), 405, EXCHANGE),
        (request(b"GET", b"http://api.exchange.example/v1/trade/x"), 400, "http://api.exchange.example"),
        (request(b"POST", b"/https://api.exchange.example/v1/trade/order", body=b"{}"), 400, EXCHANGE),
    ],
    ids=["a tunnel", "an absolute target", "an address behind the gateway's"],
)
async def test_a_client_that_takes_the_gateway_for_a_proxy(
    station: Station, raw: bytes, status: int, instead: str
) -> None:
    """Its Host is the exchange's, and it has no token: it hears of neither."""
    answer = await station.ask(raw.replace(b"Host: 127.0.0.1", b"Host: api.exchange.example", 1))
    detail = answer.document()["detail"]
    assert (answer.status, answer.outcome) == (status, "not_sent")
    assert detail.startswith(HINT)
    assert f"set its base URL to {url_of(station)} instead of {instead}." in detail
    assert station.outcomes.all[-1].detail == detail[: detail.index(" The gateway can")]
    assert station.upstream.received == []


async def test_python_shows_why_its_tunnel_failed(station: Station) -> None:
    code = f"from urllib.request import urlopen; urlopen('{EXCHANGE}/v1/trade/x')"
    printed = await run(sys.executable, "-c", code, HTTPS_PROXY=url_of(station))
    assert f"Tunnel connection failed: 405 Not a proxy: set the base URL to {url_of(station)}" in printed


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not here")
async def test_curl_shows_what_to_write(station: Station) -> None:
    printed = await run("curl", "-sS", "-x", url_of(station), "http://api.exchange.example/v1/trade/x")
    assert f"set its base URL to {url_of(station)} instead of http://api.exchange.example." in printed
    printed = await run("curl", "-sSv", "-x", url_of(station), f"{EXCHANGE}/v1/trade/x")
    assert f"405 Not a proxy: set the base URL to {url_of(station)}" in printed
