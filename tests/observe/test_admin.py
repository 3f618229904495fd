"""The admin address: health, readiness, status, and who may read them."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from itertools import product

import pytest
from structlog.testing import capture_logs

from observe.test_exposition import figures
from rig.admin import Admin, Client, running_admin
from rig.bot import bot_at, request
from rig.held_memory import counting_held
from rig.served import is_served_again
from rig.station import Station
from sealgate import __version__
from sealgate.observe.metrics import Metrics
from sealgate.observe.status import Status

PATHS = ("/", "/metrics", "/-/healthy", "/-/ready", "/status.json")
OF_PROMETHEUS = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
FOR_SCRAPERS = ("/metrics", "/-/healthy", "/-/ready")


async def test_what_programs_read_says_its_type(client: Client) -> None:
    types = {
        "/metrics": "text/plain; version=0.0.4; charset=utf-8",
        "/status.json": "application/json; charset=utf-8",
    }
    for path, media_type in types.items():
        answer = await client.get(path)
        assert (answer.status, answer.headers["Content-Type"]) == (200, media_type)
        assert __version__ in await answer.text()


@pytest.mark.parametrize(
    ("accept", "is_open"),
    [
        (OF_PROMETHEUS, True),
        ("Application/OpenMetrics-Text", True),
        ("application/openmetrics-text; version=x; q=0.5, */*", True),
        ("application/openmetrics-text;q=0, text/plain", False),
        ("text/plain;version=0.0.4", False),
        ("*/*", False),
    ],
)
async def test_a_scraper_gets_the_format_that_it_accepts(client: Client, accept: str, is_open: bool) -> None:
    answer = await client.get("/metrics", headers={"Accept": accept})
    media_type = "application/openmetrics-text; version=1.0.0" if is_open else "text/plain; version=0.0.4"
    assert answer.headers["Content-Type"] == f"{media_type}; charset=utf-8"
    assert answer.headers["Vary"] == "Accept"
    assert (await answer.text()).endswith("# EOF\n") == is_open


async def test_not_ready_while_draining(station: Station, client: Client) -> None:
    assert (await client.get("/-/ready")).status == 200
    async with asyncio.timeout(20):
        await station.gateway.drain()
    answer = await client.get("/-/ready")
    assert answer.status == 503
    assert "shutting down" in await answer.text()
    assert (await client.get("/-/healthy")).status == 200


async def test_a_failure_of_the_gateway_is_logged_and_counted(station: Station) -> None:
    """In a callback of the loop, and where a page is made: no request of a bot meets either."""

    def fail() -> Status:
        raise LookupError("a fault of ours")

    async def failures(admin: Admin) -> float:
        return figures((await admin.ask("/metrics")).body.decode())[
            "sealgate_callback_errors_total", frozenset({("exchange", "")})
        ]

    status = station.gateway.status
    async with (
        running_admin(status, Metrics(status)) as admin,
        running_admin(fail, Metrics(fail)) as failing,
    ):
        assert await failures(admin) == 0
        with capture_logs() as logs:
            asyncio.get_running_loop().call_soon(fail)
            assert await failures(admin) == 1, logs
            assert (await failing.ask("/-/ready")).status == 500
            assert await failures(admin) == 2, logs
    assert {line["event"] for line in logs} == {"callback_failed"}


async def test_one_connection_too_many_is_told_so(station: Station) -> None:
    status = station.gateway.status
    async with running_admin(status, Metrics(status), most=2) as admin, contextlib.AsyncExitStack() as stack:
        held = [await stack.enter_async_context(bot_at("127.0.0.1", admin.port)) for _ in range(2)]
        for bot in held:
            assert (await bot.ask(request(target=b"/-/healthy"))).status == 200
        with capture_logs() as logs:
            async with bot_at("127.0.0.1", admin.port) as bot:
                told = await bot.rest()
        assert told.startswith(b"HTTP/1.1 503 ")
        assert told.endswith(b"too many connections\n")
        assert [line["event"] for line in logs] == ["admin_connections_full"]
        held[0].hang_up()
        await is_served_again(lambda: admin.ask("/-/healthy"))


@pytest.mark.parametrize("sent", [b"", b"GET /-/healthy HT", b"GET /-/healthy HTTP/1.1\r\nHost: loc"])
async def test_a_connection_without_a_request_is_closed(station: Station, sent: bytes) -> None:
    status = station.gateway.status
    async with (
        running_admin(status, Metrics(status), head_timeout_s=0.05) as admin,
        bot_at("127.0.0.1", admin.port) as bot,
    ):
        await bot.send(sent)
        assert await bot.rest() == b""


FIELD = b"X-More: %b\r\n" % (b"x" * 8000)
HEAD = b"%b /no HTTP/1.1\r\nHost: 127.0.0.1\r\n"
MORE = {
    "requests behind a stream": request(target=b"/events") + 2000 * request(target=b"/no"),
    "a head without end": HEAD % b"GET" + 9 * FIELD,
    "a body": HEAD % b"POST" + b"Content-Length: 1000000\r\n\r\n" + b"x" * 400_000,
    "trailers": HEAD % b"POST" + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + 50 * FIELD,
}


@pytest.mark.parametrize("raw", MORE.values(), ids=MORE)
async def test_who_sends_on_without_waiting_for_a_reply_is_cut(admin: Admin, raw: bytes) -> None:
    async with bot_at("127.0.0.1", admin.port) as bot:
        await bot.send(raw)
        await bot.rest()


@pytest.mark.parametrize("fields", [b"", b"Nonsense"], ids=["no page", "no HTTP"])
async def test_what_is_refused_is_let_go_with_its_reply(
    admin: Admin, fields: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """At once, and not when the collector runs, which may be much later."""
    caplog.set_level(logging.CRITICAL, "aiohttp")  # as the gateway does; else the record would keep it
    raw = HEAD % b"GET" + 7 * FIELD + fields + b"\r\n\r\n"
    with counting_held() as held:
        for _ in range(10):
            async with bot_at("127.0.0.1", admin.port) as bot:
                await bot.send(raw)
                assert (await bot.line()).split()[1] in (b"404", b"400")
        kept = held()
    assert kept < 5 * len(raw)


# Who may read.


@pytest.fixture
async def public(station: Station) -> AsyncIterator[Admin]:
    """Run an admin address that says it is reachable from other machines."""
    status = station.gateway.status
    async with running_admin(status, Metrics(status), is_loopback=False) as running:
        yield running


ALLOWED_HOSTS = ("127.0.0.1", "localhost", "LOCALHOST:8788", "127.0.0.1:1")
REFUSED_HOSTS = ("evil.com", "localhost.evil.com", "127.0.0.1.evil.com:8788", "sealgate", "", "[::1]")


async def test_only_hosts_that_are_listed_are_served(admin: Admin) -> None:
    for host, status in [(name, 200) for name in ALLOWED_HOSTS] + [(name, 421) for name in REFUSED_HOSTS]:
        for path in PATHS:
            answer = await admin.ask(path, host=host)
            assert answer.status == status, (host, path)
            assert status == 200 or b"sealgate_" not in answer.body


async def test_scrapers_may_call_a_public_address_by_any_name(public: Admin) -> None:
    for path in PATHS:
        answer = await public.ask(path, host="sealgate.monitoring.svc")
        assert answer.status == (200 if path in FOR_SCRAPERS else 421), path


CROSS_SITE = (
    "Origin: https://evil.com",
    "Origin: null",
    "Sec-Fetch-Site: cross-site",
    "Sec-Fetch-Site: same-site",
)
SAME_SITE = ("Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: none", "Sec-Fetch-Mode: cors")


async def test_only_the_own_page_is_served(admin: Admin) -> None:
    for path in PATHS:
        for field in CROSS_SITE:
            assert (await admin.ask(path, field)).status == 403, (path, field)
    for field in SAME_SITE:
        assert (await admin.ask("/status.json", field)).status == 200, field


async def test_nothing_can_be_changed_here(admin: Admin) -> None:
    for path in (*PATHS, "/-/reload", "/-/halt"):
        for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
            assert (await admin.ask(path, method=method)).status in (404, 405), (path, method)


async def test_every_reply_is_guarded(admin: Admin) -> None:
    for path, host in product((*PATHS, "/nothing"), ("127.0.0.1", "evil.com")):
        answer = await admin.ask(path, host=host)
        assert "default-src 'none'" in (answer.text("Content-Security-Policy") or "")
        assert answer.text("X-Content-Type-Options") == "nosniff"
        assert answer.text("Cache-Control") == "no-store"
        assert not [name for name, _ in answer.fields if name.lower().startswith(b"access-control-")]


BAD_REQUESTS = (
    b"GET / HTTP/1.1\r\nX-Y\x01: zk9Q\r\n\r\n",
    b"GET / HTTP/1.1\r\nzk9Q\r\n\r\n",
    b"GET / HTTP/1.1\r\nX: zk9Q\x00\r\n\r\n",
    b"GET / HTTP/1.1\r\nContent-Length: zk9Q\r\n\r\n",
    b"GET / HTTP/1.1\r\nX: zk9Q" + b"a" * 20_000 + b"\r\n\r\n",
    b"GET / HTTP/zk9Q\r\n\r\n",
    b"GET /zk9Q /x HTTP/1.1\r\n\r\n",
    b"zk9Q / HTTP/1.1\r\n\r\n",
    b"zk9Q\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nExpect: zk9Q\r\n\r\n",
    b"GET /zk9Q HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nExpect: zk9Q\r\n\r\n",
    b"GET /zk9Q HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
    b"GET /zk9Q HTTP/1.1\r\nHost: zk9Q\r\nConnection: close\r\n\r\n",
)


async def test_no_reply_repeats_what_came(admin: Admin) -> None:
    for data in BAD_REQUESTS:
        async with bot_at("127.0.0.1", admin.port) as bot:
            await bot.send(data)
            answer = await bot.rest()
        assert answer.startswith((b"HTTP/1.0 4", b"HTTP/1.1 4")), data
        assert b"zk9Q" not in answer
        assert b"X-Content-Type-Options: nosniff" in answer
