"""From a bot's upgrade to the open stream: who may, what is passed on, and what the exchange says instead."""

import base64
import hashlib
import hmac
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import unused_port

from rig.backends import only
from rig.stream_lab import API_KEY, SECRET, TOKENS, Lab, running_lab
from rig.stream_venue import HOST
from rig.wire import until
from sealgate.keys.key_health import KeyFault


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[Lab]:
    async with running_lab(tmp_path) as lab:
        yield lab


@pytest.mark.parametrize(
    ("path", "bot", "status", "reason"),
    [
        pytest.param("/nowhere.example/private", "GRID", 404, "unknown_stream", id="host"),
        pytest.param(f"/{HOST}/elsewhere", "GRID", 404, "unknown_stream", id="path"),
        pytest.param(f"/{HOST}:444/private", "GRID", 404, "unknown_stream", id="port"),
        pytest.param("/", "GRID", 404, "unknown_stream", id="no host"),
        pytest.param(f"/{HOST}//private", "GRID", 400, "ambiguous_target", id="empty segment"),
        pytest.param(f"/{HOST}/private", "", 401, "bot_unauthenticated", id="stranger"),
    ],
)
async def test_what_is_no_stream_of_the_bot_reaches_nobody(
    lab: Lab, path: str, bot: str, status: int, reason: str
) -> None:
    assert (await lab.refused(path, bot))[:2] == (status, reason)
    assert lab.exchange.opened == []


async def test_a_refusal_names_the_hosts_that_there_are(lab: Lab) -> None:
    _, _, detail = await lab.refused("/nowhere.example/private")
    assert f"begins with one of its hosts: other.lab.example:8443 and {HOST}." in detail
    assert "sealgate venues show lab" in detail


async def test_a_refusal_names_the_paths_of_the_host(lab: Lab) -> None:
    _, _, detail = await lab.refused("/other.lab.example:8443/elsewhere")
    assert "has no stream with this path, but / and /private." in detail


@pytest.mark.parametrize(
    ("headers", "status", "reason"),
    [
        ({"Sec-WebSocket-Version": "8"}, 400, "bad_request"),
        ({"Sec-WebSocket-Key": "short"}, 400, "bad_request"),
        ({"Connection": "keep-alive"}, 400, "bad_request"),
        ({"Content-Length": "2"}, 400, "bad_request"),
        ({"Origin": "https://evil.example"}, 403, "browser_refused"),
        ({"Host": "evil.example"}, 421, "host_refused"),
        ({"X-Gateway-Key": "other"}, 403, "bot_forbidden"),
    ],
)
async def test_an_upgrade_that_is_not_right_is_refused(
    lab: Lab, headers: dict[str, str], status: int, reason: str
) -> None:
    assert (await lab.refused(f"/{HOST}/private", **headers))[:2] == (status, reason)
    assert lab.exchange.opened == []


@pytest.mark.parametrize(
    ("path", "arrives"),
    [
        (f"/{HOST}/private", "/private"),
        (f"/{HOST}:443/private?x=1&y=%20", "/private?x=1&y=%20"),
        (f"/{HOST}", "/"),
        ("/other.lab.example:8443/", "/"),
        (f"/{HOST}/public/a/b", "/public/a/b"),
    ],
)
async def test_path_query_and_headers_arrive(lab: Lab, path: str, arrives: str) -> None:
    stream = await lab.open(path, headers={"User-Agent": "mine", "X-Own": "1"})
    request = lab.exchange.opened[0]
    assert (request.path_qs, request.headers["User-Agent"], request.headers["X-Own"]) == (
        arrives,
        "mine",
        "1",
    )
    assert "X-Gateway-Token" not in request.headers
    assert TOKENS["GRID"] not in str(request.headers)
    await stream.close()


async def test_subprotocols_are_passed_and_extensions_are_not(lab: Lab) -> None:
    stream = await lab.open(protocols=("two",), compress=15)
    assert (stream.protocol, stream.compress) == ("two", 0)
    assert "Sec-WebSocket-Extensions" not in lab.exchange.opened[0].headers
    await stream.close()


async def test_what_the_exchange_answers_instead_is_passed_on(lab: Lab) -> None:
    lab.exchange.answer = lambda: web.Response(status=410, text="no more of these", headers={"X-Why": "gone"})
    assert await lab.refused(f"/{HOST}/private") == (410, "", "no more of these")
    tally = lab.gateway.streams.desk.tally.opened
    assert tally["lab", "grid", f"{HOST}/private", "refused"] == 1


async def test_a_101_that_is_none_opens_nothing(lab: Lab) -> None:
    lab.exchange.answer = lambda: web.Response(
        status=101, headers={"Upgrade": "other", "Connection": "Upgrade"}
    )
    assert (await lab.refused(f"/{HOST}/private"))[:2] == (502, "upstream_broken")


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        (f"/{HOST}/private?token={TOKENS['GRID']}", {}),
        (f"/{HOST}/public/{TOKENS['GRID']}", {}),
        (f"/{HOST}/private?x={base64.b64encode(b'grid:' + TOKENS['GRID'].encode()).decode()}", {}),
        (f"/{HOST}/private", {"X-Own": TOKENS["GRID"]}),
        (f"/{HOST}/private", {"Sec-WebSocket-Protocol": f"one, {TOKENS['GRID']}"}),
    ],
)
async def test_an_upgrade_does_not_take_the_bots_token_along(
    lab: Lab, path: str, headers: dict[str, str]
) -> None:
    assert (await lab.refused(path, **headers))[:2] == (403, "bot_forbidden")
    assert lab.exchange.opened == []


async def test_an_exchange_that_cannot_be_reached(tmp_path: Path) -> None:
    async with running_lab(tmp_path, upstream={"streams": f"ws://127.0.0.1:{unused_port()}"}) as lab:
        status, reason, detail = await lab.refused(f"/{HOST}/private")
        assert (status, reason) == (502, "upstream_unreachable")
        assert "The stream could not be opened: cannot connect to 127.0.0.1" in detail


async def test_a_signed_handshake(lab: Lab) -> None:
    stream = await lab.open(f"/{HOST}/signed/me?key=dummy&x=1", headers={"X-LAB-KEY": "dummy"})
    request = lab.exchange.opened[0]
    stamp = request.headers["X-LAB-TIME"]
    expected = hmac.new(SECRET.encode(), f"{stamp}/signed/me".encode(), hashlib.sha256).hexdigest()
    assert request.path_qs == f"/signed/77?x=1&key={API_KEY}"
    assert request.headers.getall("X-LAB-KEY") == [API_KEY]
    assert request.headers["X-LAB-SIGN"] == expected
    assert lab.gateway.streams.statuses()[0].is_logged_in
    await stream.close()


async def test_a_handshake_that_is_refused_for_its_key_brings_the_key_into_doubt(lab: Lab) -> None:
    lab.exchange.answer = lambda: web.json_response({"error": "no such key"}, status=401)
    assert (await lab.refused(f"/{HOST}/signed/me"))[:2] == (401, "")
    assert only(lab.gateway.generation).exchange.live_keys["main"].breaker.state.doubt is KeyFault.INVALID


async def test_a_handshake_that_is_refused_for_its_time_has_the_clock_ask_again(lab: Lab) -> None:
    lab.exchange.answer = lambda: web.json_response({"error": "too old"}, status=401)
    samples = lab.exchange.asked_for_time
    await lab.refused(f"/{HOST}/signed/me")
    await until(lambda: lab.exchange.asked_for_time > samples)


async def test_there_are_only_so_many_streams_at_a_time(tmp_path: Path) -> None:
    async with running_lab(tmp_path, listen={"tcp": "127.0.0.1:0", "max_streams": 1}) as lab:
        first = await lab.open()
        assert (await lab.refused(f"/{HOST}/private"))[:2] == (503, "queue_full")
        await first.close()
        await until(lambda: len(lab.gateway.streams) == 0)
        await (await lab.open()).close()


async def test_openings_beyond_the_limit_are_refused_where_the_wait_is_too_long(tmp_path: Path) -> None:
    async with running_lab(tmp_path, limits={"stream_opens": "1/300s", "max_wait": 0.0}) as lab:
        first = await lab.open()
        assert (await lab.refused(f"/{HOST}/private"))[:2] == (429, "rate_limited")
        assert len(lab.exchange.opened) == 1
        await first.close()


async def test_the_record_of_an_opening(lab: Lab) -> None:
    stream = await lab.open(f"/{HOST}/ws/a-listen-key?token=secret")
    record = await lab.outcomes.until(1)
    assert (record.method, record.route, record.status) == ("GET", f"{HOST}/public/**", 101)
    await stream.close()
