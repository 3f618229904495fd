"""Through a proxy: TLS from end to end, and each refusal named as the proxy's, before anything was sent."""

import asyncio
import base64
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import chain, product
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from rig.backends import only
from rig.bot import request
from rig.connections import OK, Server, running_server
from rig.proxies import PASSWORD, USER, Proxy, running_proxy
from rig.station import ENVIRON, running_station
from rig.tls import Authority
from rig.upstream import Upstream as Exchange
from rig.upstream import Wire, running_upstream
from sealgate.config.addresses import parse_proxy
from sealgate.exchange.answer import Answer
from sealgate.exchange.destination import Destination, Way
from sealgate.exchange.failure import Failure, FailureKind
from sealgate.exchange.pool import Upstream
from sealgate.keys.key import NO_SECRET, Secret
from sealgate.venues.routes import Lane

NAME = "exchange.test"
SCHEMES = pytest.mark.parametrize("scheme", ["http", "socks5"])


@asynccontextmanager
async def connections_through(
    proxy: Proxy | str,
    base_url: str,
    ca_file: Path | None = None,
    *,
    password: str = "",
    timeout_s: float = 5.0,
) -> AsyncIterator[Upstream]:
    url = parse_proxy(proxy if isinstance(proxy, str) else proxy.url)
    way = Way("", url, Secret(password) if password else NO_SECRET)
    upstream = Upstream(Destination(base_url, timeout_s, 5.0, 8, ca_file, way=way))
    try:
        yield upstream
    finally:
        await upstream.close()


async def failure_through(
    proxy: Proxy | str, base_url: str = f"https://{NAME}", ca_file: Path | None = None, **more: Any
) -> Failure:
    async with connections_through(proxy, base_url, ca_file, **more) as upstream:
        failure = await upstream.connect(Lane.ORDER, 5.0)
    assert isinstance(failure, Failure)
    assert failure.is_unsent
    return failure


@asynccontextmanager
async def tls_server(authority: Authority, tmp_path: Path) -> AsyncIterator[tuple[Server, Path]]:
    async with running_server(authority.server_context(NAME)) as server:
        yield server, Path(authority.write(tmp_path))


def forbid_look_ups(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = socket.getaddrinfo

    def getaddrinfo(host: Any, *args: Any, **more: Any) -> Any:
        assert host != NAME, "the proxy looks it up"
        return genuine(host, *args, **more)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


@SCHEMES
@pytest.mark.parametrize("drips", [False, True], ids=["at once", "byte by byte"])
async def test_tls_goes_from_end_to_end_and_the_proxy_looks_the_name_up(
    scheme: str, authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, drips: bool
) -> None:
    forbid_look_ups(monkeypatch)
    async with tls_server(authority, tmp_path) as (server, ca_file), running_proxy(scheme) as proxy:
        proxy.names, proxy.drips = {NAME: server.port}, drips
        async with connections_through(proxy, f"https://{NAME}", ca_file) as upstream:
            connection = await upstream.connect(Lane.ORDER, 5.0)
            assert not isinstance(connection, Failure)
            answer = await connection.exchange(upstream.head("GET", "/x") + b"\r\n", 5.0, is_head=False)
            assert isinstance(answer, Answer)
            assert answer.body == OK[-2:]
        assert proxy.asked == [(NAME, 443)]


@SCHEMES
async def test_a_user_and_a_password_are_given_to_the_proxy(
    scheme: str, authority: Authority, tmp_path: Path
) -> None:
    async with tls_server(authority, tmp_path) as (server, ca_file), running_proxy(scheme) as proxy:
        proxy.names, proxy.needs_login = {NAME: server.port}, True
        async with connections_through(proxy, f"https://{NAME}", ca_file, password=PASSWORD) as upstream:
            assert not isinstance(await upstream.connect(Lane.ORDER, 5.0), Failure)


@SCHEMES
async def test_the_certificate_must_be_the_exchanges(
    scheme: str, authority: Authority, tmp_path: Path
) -> None:
    async with tls_server(authority, tmp_path) as (server, ca_file), running_proxy(scheme) as proxy:
        proxy.names = {"other.test": server.port}
        failure = await failure_through(proxy, "https://other.test", ca_file)
    there = f"cannot connect to other.test:443 through the proxy 127.0.0.1:{proxy.port}: "
    assert failure.detail.startswith(f"{there}its certificate is refused (Hostname mismatch")


@SCHEMES
async def test_a_tunnel_that_is_cut_during_the_handshake(scheme: str) -> None:
    async with running_server() as server, running_proxy(scheme, {NAME: server.port}) as proxy:
        proxy.cuts = True
        failure = await failure_through(proxy)
    assert failure.kind is FailureKind.UNREACHABLE
    assert f"cannot connect to {NAME}:443 through the proxy 127.0.0.1:{proxy.port}: " in failure.detail


REFUSED = {
    "no login, HTTP": ("http", b"HTTP/1.1 407 Who\r\n\r\n", "requires a user (407); write its user"),
    "not allowed, HTTP": ("http", b"HTTP/1.1 403 No\r\nX: y\r\n\r\n", "does not allow a connection"),
    "no way, HTTP": ("http", b"HTTP/1.0 502 Bad Gateway\r\n\r\n", "cannot reach the exchange (502); check"),
    "no HTTP at all": ("http", b"SSH-2.0-OpenSSH\r\n\r\n", "does not speak HTTP; check scheme and port"),
    "an endless head": ("http", b"HTTP/1.1 200 OK\r\n" + b"x" * 20_000, "does not speak HTTP"),
    "nothing, HTTP": ("http", b"", "closed the connection without an answer; see upstream.proxy"),
    "half a reply, HTTP": ("http", b"HTTP/1.1 2", "closed the connection without an answer"),
    "not allowed, SOCKS": (
        "socks5",
        b"\x05\x02\x00",
        "does not allow a connection to the exchange (reply 2)",
    ),
    "no name, SOCKS": (
        "socks5",
        b"\x05\x04\x00",
        "cannot resolve the exchange's name, or cannot reach it (reply 4)",
    ),
    "an unknown code": ("socks5", b"\x05\x63\x00", "opens no tunnel (reply 99); see upstream.proxy"),
    "no SOCKS": (
        "socks5",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        "does not speak SOCKS5; check scheme and port",
    ),
    "an address of no kind": ("socks5", b"\x05\x00\x00\x09" + bytes(6), "does not speak SOCKS5"),
    "a name that is no text": ("socks5", b"\x05\x00\x00\x03\x01\xff\x00\x00", "does not speak SOCKS5"),
    "nothing, SOCKS": ("socks5", b"", "closed the connection without an answer"),
}


@pytest.mark.parametrize(("scheme", "says", "words"), REFUSED.values(), ids=REFUSED)
async def test_a_refusal_is_named_as_the_proxys(scheme: str, says: bytes, words: str) -> None:
    async with running_server() as server, running_proxy(scheme, {NAME: server.port}) as proxy:
        proxy.says = says
        failure = await failure_through(proxy)
        assert server.opened.empty()
    assert failure.kind is FailureKind.PROXY
    assert words in failure.detail
    assert f"cannot connect to {NAME}:443" in failure.detail
    assert f"the proxy 127.0.0.1:{proxy.port}" in failure.detail


@pytest.mark.parametrize(
    ("scheme", "user", "words"),
    [
        ("http", "", "requires a user (407)"),
        ("http", "grid@", "does not accept user and password (407)"),
        ("socks5", "", "requires a user and a password"),
        ("socks5", "grid@", "does not accept user and password; correct"),
    ],
)
async def test_a_login_that_is_missing_or_wrong(scheme: str, user: str, words: str) -> None:
    async with running_proxy(scheme) as proxy:
        proxy.needs_login = True
        url = f"{scheme}://{user}127.0.0.1:{proxy.port}"
        failure = await failure_through(url, password="wr0ng-canary" if user else "")
    assert words in failure.detail
    assert "canary" not in failure.detail
    assert proxy.asked == []


@SCHEMES
async def test_nobody_listens_at_the_proxys_address(scheme: str, unused_tcp_port: int) -> None:
    failure = await failure_through(f"{scheme}://127.0.0.1:{unused_tcp_port}")
    there = f"the proxy 127.0.0.1:{unused_tcp_port}"
    why = f"{there} cannot be reached: Connection refused; see upstream.proxy"
    assert failure == Failure(FailureKind.PROXY, f"cannot connect to {NAME}:443: {why}")


@SCHEMES
async def test_a_proxy_that_hangs_is_named_when_the_time_is_over(scheme: str) -> None:
    async with running_proxy(scheme) as proxy:
        proxy.answers = False
        failure = await failure_through(proxy, timeout_s=0.1)
        assert proxy.asked == [(NAME, 443)]
    words = f"no connection through the proxy 127.0.0.1:{proxy.port} in time; see upstream.proxy"
    assert failure == Failure(FailureKind.CONNECT_TIMEOUT, words)


def settings(proxy: Proxy, **more: str) -> dict[str, Any]:
    return {"upstream": {"proxy": proxy.url, **more}}


@SCHEMES
async def test_all_that_a_gateway_sends_goes_through_the_proxy(scheme: str) -> None:
    async with running_upstream() as exchange, running_proxy(scheme) as proxy:
        async with running_station(exchange, **settings(proxy)) as station:
            answer = await station.ask(request(b"POST", b"/v1/trade/order", body=b"{}"))
            assert (answer.status, answer.outcome) == (200, "done")
        assert len(proxy.asked) == exchange.connections
        assert set(proxy.asked) == {("127.0.0.1", exchange.port)}
        assert exchange.asked_time, "the clock's own, too"


async def refused_order(exchange: Exchange, proxy: Proxy) -> Any:
    async with running_station(
        exchange, {**ENVIRON, "PROXY": PASSWORD}, **settings(proxy, proxy_password="env:PROXY")
    ) as station:
        proxy.says = b"HTTP/1.1 403 Forbidden\r\n\r\n" if proxy.scheme == "http" else b"\x05\x02\x00"
        exchange.cut_all()
        limit = b"X-Gateway-Deadline-Ms: 300"
        return await station.ask(request(b"POST", b"/v1/trade/order", limit, body=b"{}"))


@SCHEMES
async def test_an_order_that_the_proxy_keeps_back_was_not_sent(scheme: str) -> None:
    async with running_upstream() as exchange, running_proxy(scheme) as proxy:
        proxy.needs_login = True
        answer = await refused_order(exchange, proxy)
        assert exchange.received == []
    assert answer.outcome == "not_sent"
    assert b"does not allow a connection to the exchange" in answer.body
    assert PASSWORD.encode() not in answer.raw


@SCHEMES
async def test_an_order_waits_for_a_proxy_that_refuses_once_and_is_sent_once(scheme: str) -> None:
    async with running_upstream() as exchange, running_proxy(scheme) as proxy:
        async with running_station(exchange, **settings(proxy)) as station:
            proxy.says = b""
            exchange.cut_all()
            before = len(proxy.asked)
            asked = asyncio.ensure_future(station.ask(request(b"POST", b"/v1/trade/order", body=b"{}")))
            await proxy.until_asked(before + 1)
            proxy.says = None
            answer = await asked
        assert answer.outcome == "done"
        assert len(exchange.received) == 1


@SCHEMES
async def test_the_password_is_nowhere(scheme: str, caplog: pytest.LogCaptureFixture) -> None:
    canary = "c4n4ry-0123456789"
    caplog.set_level(logging.DEBUG)
    async with running_upstream() as exchange, running_proxy(scheme) as proxy:
        proxy.needs_login = True
        tables = settings(proxy, proxy_password="env:PROXY")
        with capture_logs() as structured:
            async with running_station(
                exchange, {**ENVIRON, "PROXY": canary}, synced=False, **tables
            ) as station:
                await station.until(lambda: any(one["event"] == "clock_trouble" for one in structured))
                answer = await station.ask(request(b"GET", b"/v1/trade/x", b"X-Gateway-Deadline-Ms: 200"))
                status = str(station.gateway.status())
                destination = only(station.gateway.generation).exchange.upstream.destination
    said = f"{structured} {caplog.text} {answer.raw!r} {status} {destination!r}"
    assert "does not accept user and password" in str(structured)
    for form in (canary, base64.b64encode(f"{USER}:{canary}".encode()).decode()):
        assert form not in said


def test_another_password_is_another_way() -> None:
    """A reload opens new connections where only the password has changed."""
    url = parse_proxy("http://grid@127.0.0.1:3128")
    assert Way("", url, Secret("a")) == Way("", url, Secret("a"))
    assert Way("", url, Secret("a")) != Way("", url, Secret("b"))


@pytest.mark.slow
@SCHEMES
async def test_whatever_the_proxy_does_an_order_is_received_as_often_as_its_outcome_says(scheme: str) -> None:
    async with running_upstream() as exchange, running_proxy(scheme) as proxy:

        async def cut_in_flight(_: Wire) -> None:
            proxy.cut_all()

        def misbehave(how: str) -> None:
            proxy.says = {"refuses": b"HTTP/1.1 403 No\r\n\r\n", "says nothing": b""}.get(how)
            proxy.answers = how != "hangs"
            if how == "cuts in flight":
                exchange.answers.append(cut_in_flight)
            elif how != "works":
                proxy.cut_all()

        ways = ("works", "refuses", "says nothing", "hangs", "cuts before", "cuts in flight")
        in_vain = ("refuses", "says nothing", "hangs")
        outcomes: dict[str, set[tuple[str | None, int]]] = {}
        async with running_station(exchange, **settings(proxy, warm="false")) as station:
            connections = only(station.gateway.generation).exchange.upstream
            for number, how in enumerate(chain.from_iterable(product(ways, ways))):
                misbehave(how)
                if how not in ("works", "cuts in flight"):
                    await station.until(lambda: not connections._idle)
                body = b'{"id":"%d"}' % number
                limits = [b"X-Gateway-Deadline-Ms: 100"] if how in in_vain else []
                answer = await station.ask(request(b"POST", b"/v1/trade/order", *limits, body=body))
                receipts = sum(received.body == body for received in exchange.received)
                outcomes.setdefault(how, set()).add((answer.outcome, receipts))
                exchange.answers.clear()
    assert outcomes == {
        "works": {("done", 1)},
        "refuses": {("not_sent", 0)},
        "says nothing": {("not_sent", 0)},
        "hangs": {("not_sent", 0)},
        "cuts before": {("done", 1)},
        "cuts in flight": {("unknown", 1)},
    }
