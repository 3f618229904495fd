"""The addresses of streams in a reply: they become the gateway's, and all other bytes stay."""

import gzip
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from rig.bot import Reply, request
from rig.listeners import Certificates, bot_on, unix_connection
from rig.station import running_station
from rig.two_exchanges import GRID, two_exchanges
from rig.upstream import Upstream, say
from rig.wire import chunked, reply

FILE = """
name = "mine"
title = "Mine"
[signing]
message = "{timestamp}{method}{target}{body}"
[signing.headers]
SIGN = "{signature}"
[[routes]]
match = ["POST /v1/token", "GET /v1/token"]
needs = "read"
lane = "read"
streams_at = "/data/servers/*/at"
[[streams]]
host = ["stream.example.com", "push.example.com:9443"]
[environments.test]
streams = { "stream.example.com" = "stream.example.org" }
"""
TOKEN = b"/v1/token"
CLOCK = {"path": "/v1/trade/time"}
LISTED = b'{"data": {"token":"t", "servers":[{"at" :"wss://stream.example.com/endpoint" , "n":1.0}]}}'
OWN = LISTED.replace(b"wss://stream.example.com", b"ws://127.0.0.1/stream.example.com")


def at(address: str) -> bytes:
    return f'{{"data":{{"servers":[{{"at":"{address}"}}]}}}}'.encode()


@pytest.fixture
def venue(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "mine.toml").write_text(FILE)
    return {"venue": str(tmp_path / "mine.toml"), "clock": CLOCK}


async def asked(upstream: Upstream, venue: dict[str, Any], body: bytes, *fields: bytes) -> Reply:
    upstream.otherwise = say(reply(b"200 OK", body, *fields))
    async with running_station(upstream, **venue) as station:
        return await station.ask(request(b"POST", TOKEN, body=b""))


async def test_an_address_becomes_the_gateways_and_all_else_stays(
    upstream: Upstream, venue: dict[str, Any]
) -> None:
    replied = await asked(upstream, venue, LISTED, b"X-Own: 1")
    assert (replied.body, replied.text("Content-Length")) == (OWN, str(len(OWN)))
    assert (replied.text("X-Own"), replied.outcome) == ("1", "done")


@pytest.mark.parametrize(
    ("address", "own"),
    [
        ("wss://stream.example.com", "ws://127.0.0.1/stream.example.com"),
        ("wss://stream.example.com/", "ws://127.0.0.1/stream.example.com/"),
        (
            "wss://Stream.example.com:443/a/b?x=1&y=/",
            "ws://127.0.0.1/stream.example.com:443/a/b?x=1&y=/",
        ),
        ("wss://push.example.com:9443?x=1", "ws://127.0.0.1/push.example.com:9443?x=1"),
        ("ws://stream.example.com/a", "ws://127.0.0.1/stream.example.com/a"),
        ("stream.example.com/a", "ws://127.0.0.1/stream.example.com/a"),
        (r"wss:\/\/stream.example.com\/a", "ws://127.0.0.1/stream.example.com/a"),
    ],
)
async def test_each_way_to_write_an_address(
    upstream: Upstream, venue: dict[str, Any], address: str, own: str
) -> None:
    assert (await asked(upstream, venue, at(address))).body == at(own)


@pytest.mark.parametrize(
    "body",
    [
        at("wss://push.example.com/a"),  # another port
        at("wss://user@stream.example.com/a"),
        at("wss://stream.example.com.evil.example/a"),
        at("https://stream.example.com/a"),
        at("wss://stream.example.com/a b"),
        at(r"\ud800"),
        b'{"at":"wss://stream.example.com/"}',
        b'{"data":{"servers":{"at":"wss://stream.example.com/"}}}',
        b'{"data":{"servers":[{"at":["wss://stream.example.com/"]},7,{"at":7}]}}',
        b'{"data":{"servers":[{"at":"wss://stream.example.com/"}',
        LISTED + b"\xff",
        b'"' + b"x" * 65536 + b'"',
        b"",
    ],
)
async def test_what_is_no_address_of_a_listed_host_stays(
    upstream: Upstream, venue: dict[str, Any], body: bytes
) -> None:
    assert (await asked(upstream, venue, body)).body == body


async def test_each_member_of_a_list_is_replaced(upstream: Upstream, venue: dict[str, Any]) -> None:
    one, own = '{"at":"wss://stream.example.com"}', '{"at":"ws://127.0.0.1/stream.example.com"}'
    body = '{"data":{"servers":[%s , {"at":"wss://x.example"},%s]}}'
    replied = await asked(upstream, venue, (body % (one, one)).encode())
    assert replied.body.decode() == body % (own, own)


async def test_a_host_that_the_file_does_not_list_is_told_once(
    upstream: Upstream, venue: dict[str, Any]
) -> None:
    upstream.otherwise = say(reply(b"200 OK", at("wss://other.example/?token=secret")))
    with capture_logs() as logs:
        async with running_station(upstream, **venue) as station:
            for _ in range(2):
                await station.ask(request(b"POST", TOKEN, body=b""))
            for number in range(20):
                upstream.otherwise = say(reply(b"200 OK", at(f"wss://other{number}.example/")))
                await station.ask(request(b"POST", TOKEN, body=b""))
    told = [line for line in logs if line["event"] == "stream_not_listed"]
    assert [line["host"] for line in told[:2]] == ["other.example", "other0.example"]
    assert len(told) == 8
    assert "secret" not in str(logs)
    assert "[[streams]]" in told[0]["fix"]


async def test_a_test_network_has_hosts_of_its_own(upstream: Upstream, venue: dict[str, Any]) -> None:
    upstream.otherwise = say(reply(b"200 OK", at("wss://stream.example.org/a")))
    async with running_station(upstream, environment="test", **venue) as station:
        replied = await station.ask(request(b"POST", TOKEN, body=b""))
        assert replied.body == at("ws://127.0.0.1/stream.example.org/a")
        upstream.otherwise = say(reply(b"200 OK", at("wss://push.example.com:9443/a")))
        replied = await station.ask(request(b"POST", TOKEN, body=b""))
        assert replied.body == at("wss://push.example.com:9443/a")


@pytest.mark.parametrize(
    "asks", [b"Accept-Encoding: gzip, br", b"accept-encoding:  gzip\r\nX-A: 1", b"X-A: 1"]
)
async def test_such_a_reply_is_asked_for_uncompressed(
    upstream: Upstream, venue: dict[str, Any], asks: bytes
) -> None:
    async with running_station(upstream, **venue) as station:
        await station.ask(request(b"POST", TOKEN, asks, body=b""))
        await station.ask(request(b"POST", b"/v1/other", b"Accept-Encoding: gzip", body=b""))
    asked, other = upstream.received
    assert asked.head.values(b"Accept-Encoding") == [b"identity"]
    assert asked.head.values(b"X-A") == ([b"1"] if b"X-A" in asks else [])
    assert other.head.values(b"Accept-Encoding") == [b"gzip"]


async def test_one_that_is_compressed_all_the_same_stays(upstream: Upstream, venue: dict[str, Any]) -> None:
    body = gzip.compress(LISTED, mtime=0)
    assert (await asked(upstream, venue, body, b"Content-Encoding: gzip")).body == body
    assert (await asked(upstream, venue, LISTED, b"Content-Encoding: Identity")).body == OWN


@pytest.mark.parametrize("status", [b"302 Found", b"400 Bad Request", b"503 Service Unavailable"])
async def test_what_is_no_success_stays(upstream: Upstream, venue: dict[str, Any], status: bytes) -> None:
    upstream.otherwise = say(reply(status, LISTED))
    async with running_station(upstream, **venue) as station:
        assert (await station.ask(request(b"POST", TOKEN, body=b""))).body == LISTED


async def test_one_in_chunks_and_one_too_large_to_be_held(upstream: Upstream, venue: dict[str, Any]) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    large = LISTED + b" " * 600_000
    async with running_station(upstream, **venue) as station:
        upstream.otherwise = say(head + chunked(LISTED[:20], LISTED[20:]))
        assert (await station.ask(request(b"POST", TOKEN, body=b""))).body == OWN
        upstream.otherwise = say(reply(b"200 OK", large))
        replied = await station.ask(request(b"POST", TOKEN, body=b""))
        assert (replied.body, replied.is_whole) == (large, True)


async def test_another_route_is_passed_on_as_it_is(upstream: Upstream, venue: dict[str, Any]) -> None:
    upstream.otherwise = say(reply(b"200 OK", LISTED))
    async with running_station(upstream, **venue) as station:
        assert (await station.ask(request(b"POST", b"/v1/other", body=b""))).body == LISTED


async def test_the_address_is_the_one_that_the_bot_used(
    upstream: Upstream, venue: dict[str, Any], tmp_path: Path
) -> None:
    certificates = Certificates(tmp_path)
    upstream.otherwise = say(reply(b"200 OK", LISTED))
    call = request(b"POST", TOKEN, body=b"")
    named = call.replace(b"Host: 127.0.0.1", b"Host: localhost:8787")
    async with running_station(upstream, listen=certificates.settings, **venue) as station:
        port = station.gateway.address.port
        async with bot_on(host="127.0.0.1", port=port, ssl=certificates.client()) as bot:
            assert (await bot.ask(call)).body == OWN.replace(b"ws:", b"wss:")
            changed = OWN.replace(b"ws://127.0.0.1", b"wss://localhost:8787")
            assert (await bot.ask(named)).body == changed


async def test_a_unix_socket_has_no_address_to_put_there(
    upstream: Upstream, venue: dict[str, Any], tmp_path: Path
) -> None:
    upstream.otherwise = say(reply(b"200 OK", LISTED))
    listen = {"unix": str(tmp_path / "s")}
    async with (
        running_station(upstream, listen=listen, **venue),
        bot_on(unix_connection(tmp_path / "s")) as bot,
    ):
        assert (await bot.ask(request(b"POST", TOKEN, body=b""))).body == LISTED


async def test_the_name_of_the_exchange_stands_before_it_where_the_bot_wrote_it(
    venue: dict[str, Any],
) -> None:
    def exchanges(spot: str, perp: str) -> dict[str, Any]:
        return {
            "spot": {"base_url": spot, **venue},
            "perp": {"base_url": perp, "listen": "127.0.0.1:0", **venue},
        }

    async with two_exchanges(exchanges=exchanges) as two:
        two.perp.otherwise = say(reply(b"200 OK", LISTED))
        named = await two.ask(request(b"POST", b"/perp" + TOKEN, GRID, body=b""))
        assert named.body == OWN.replace(b"127.0.0.1/", b"127.0.0.1/perp/")
        port = int(two.gateway.listeners.exchange_urls["perp"].rpartition(":")[2])
        assert (await two.ask(request(b"POST", TOKEN, GRID, body=b""), port)).body == OWN


@pytest.mark.parametrize("needs", ["read", "trade"])
async def test_no_bot_gets_the_address_of_another_listener(
    upstream: Upstream, venue: dict[str, Any], needs: str
) -> None:
    """Neither by an Idempotency-Key, nor by a read that is shared."""
    upstream.otherwise = say(reply(b"200 OK", LISTED))
    routes = [{"match": f"{method} /v1/token", "needs": needs} for method in ("GET", "POST")]
    async with running_station(upstream, routes=routes, **venue) as station:
        for method in (b"GET", b"POST"):
            call = request(method, TOKEN, b"Idempotency-Key: k", body=b"")
            assert (await station.ask(call)).body == OWN
            named = call.replace(b"Host: 127.0.0.1", b"Host: localhost:8787")
            again = await station.ask(named)
            assert again.body == OWN.replace(b"127.0.0.1", b"localhost:8787")
            assert again.text("X-Gateway-Replayed") is None
    assert len(upstream.received) == 4
