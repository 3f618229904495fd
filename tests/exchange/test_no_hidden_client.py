"""Nothing happens behind the pipeline's back: no resend, redirect, unpacking, cookie or proxy.

An ordinary `aiohttp.ClientSession` does all of it.
"""

import asyncio
import gzip
import logging
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs
from yarl import URL

from rig.bot import request
from rig.station import Station, running_station
from rig.upstream import Act, Upstream, running_upstream, say
from rig.wire import reply

TARGET = b"/v1/trade/order/1"


def url_of(upstream: Upstream, host: str = "127.0.0.1") -> URL:
    return URL.build(scheme="http", host=host, port=upstream.port, path=TARGET.decode())


# Resends.


# Redirects.

REDIRECTS = {
    301: b"301 Moved Permanently",
    302: b"302 Found",
    303: b"303 See Other",
    307: b"307 Temporary Redirect",
    308: b"308 Permanent Redirect",
}


@pytest.fixture
async def elsewhere() -> AsyncIterator[Upstream]:
    async with running_upstream() as running:
        yield running


def redirect(status: int, elsewhere: Upstream) -> Act:
    return say(reply(REDIRECTS[status], b"", b"Location: " + str(url_of(elsewhere)).encode()))


@pytest.mark.parametrize("status", REDIRECTS)
@pytest.mark.parametrize("method", [b"GET", b"POST"], ids=bytes.decode)
async def test_a_redirect_passes_back(
    station: Station, elsewhere: Upstream, status: int, method: bytes
) -> None:
    station.upstream.answers.append(redirect(status, elsewhere))
    answer = await station.ask(request(method, TARGET))
    assert (answer.status, answer.outcome) == (status, "done")
    assert answer.text("Location") == str(url_of(elsewhere))
    assert len(station.upstream.received) == 1
    assert elsewhere.connections == 0


# Unpacking.

PACKED = gzip.compress(b'{"ok":true}', mtime=0)
GZIPPED = reply(b"200 OK", PACKED, b"Content-Encoding: gzip")


async def test_a_packed_reply_stays_packed(station: Station) -> None:
    station.upstream.answers.append(say(GZIPPED))
    answer = await station.ask(request())
    assert (answer.body, answer.text("Content-Encoding")) == (PACKED, "gzip")


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
async def test_a_reply_that_is_packed_in_name_only_passes(station: Station, encoding: str) -> None:
    station.upstream.answers.append(
        say(reply(b"200 OK", b"plain", b"Content-Encoding: " + encoding.encode()))
    )
    answer = await station.ask(request())
    assert (answer.status, answer.body) == (200, b"plain")


# Cookies.


class Named(Upstream):
    """By name: cookies are not kept for addresses."""

    @property
    def base_url(self) -> str:
        return f"http://localhost:{self.port}"


COOKIE = say(reply(b"200 OK", b"", b"Set-Cookie: session=1; Path=/"))


async def test_cookies_are_not_kept(upstream: Upstream) -> None:
    upstream.otherwise = COOKIE
    async with running_station(Named(port=upstream.port)) as station:
        for _ in range(2):
            answer = await station.ask(request())
            assert answer.text("Set-Cookie") == "session=1; Path=/"
    assert [received.head.value(b"Cookie") for received in upstream.received] == [None, None]


# Proxies.


@pytest.fixture
def proxy(elsewhere: Upstream, monkeypatch: pytest.MonkeyPatch) -> Upstream:
    """Return an upstream that the environment names as everybody's proxy."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, elsewhere.base_url)
        monkeypatch.setenv(name.lower(), elsewhere.base_url)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    return elsewhere


async def test_proxies_of_the_environment_are_ignored(proxy: Upstream, upstream: Upstream) -> None:
    async with running_station(upstream) as station:
        assert (await station.ask(request())).status == 200
    assert len(upstream.received) == 1
    assert proxy.connections == 0


# What the server below would do by itself.

CANARY = b"c4n4ry-0123456789"
MALFORMED = {
    "a field without a colon": b"GET /v1/trade/x HTTP/1.1\r\nHost: localhost\r\n%b\r\n\r\n" % CANARY,
    "a field name with a space": b"GET /v1/trade/x HTTP/1.1\r\nHost: localhost\r\n%b x: 1\r\n\r\n" % CANARY,
    "a value with a NUL": b"GET /v1/trade/x HTTP/1.1\r\nAuthorization: %b\0\r\n\r\n" % CANARY,
    "a length that is none": b"POST /v1/trade/x HTTP/1.1\r\nContent-Length: %b\r\n\r\n" % CANARY,
    "a method that is none": b"%b /v1/trade/x HTTP/1.1\r\nHost: localhost\r\n\r\n"
    % CANARY.replace(b"-", b"("),
    "a version that is none": b"GET /v1/trade/x %b\r\nHost: localhost\r\n\r\n" % CANARY,
    "a line that is too long": b"GET /v1/trade/x HTTP/1.1\r\nX-Long: %b\r\n\r\n" % (CANARY * 1000),
    "a chunk size that is none": (
        b"POST /v1/trade/x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n%b\r\n" % CANARY
    ),
}


@pytest.mark.parametrize("raw", MALFORMED.values(), ids=MALFORMED)
async def test_what_cannot_be_parsed_is_not_echoed(
    station: Station, raw: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with capture_logs() as structured:
        async with station.bot() as bot:
            await bot.send(raw)
            answer = await bot.rest()
    assert answer.startswith((b"HTTP/1.1 400 Bad Request\r\n", b"HTTP/1.1 431 "))
    for canary in (CANARY, CANARY.replace(b"-", b"(")):
        assert canary not in answer
        assert canary.decode() not in caplog.text
        assert canary.decode() not in str(structured)
    assert station.upstream.received == []


async def test_a_body_that_drips_is_given_up(upstream: Upstream) -> None:
    async with running_station(upstream, listen={"body_timeout": 0.3}) as station, station.bot() as bot:
        await bot.send(request(b"POST", b"/v1/trade/order", b"Content-Length: 100000"))
        dripping = asyncio.ensure_future(bot.drip(b"x", 0.02))
        answer = await bot.reply(b"POST")
        dripping.cancel()
        assert (answer.status, answer.reason) == (408, "body_timeout")
