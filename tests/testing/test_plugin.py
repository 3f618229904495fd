"""The pytest plugin, by its fixtures: what a test can arrange, and that none touches another."""

import asyncio
import math
import socket
import ssl
import threading
import time  # noqa: TID251 - held against the time that the world makes
import warnings
from typing import Any

import aiohttp
import httpx
import pytest

from sealgate.server.gateway import Gateway as GatewayOfServe
from sealgate.testing import Gateway, Sandbox
from sealgate.testing.world import SetupError

TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # not used, but slow to make
ORDER = {"symbol": "BTC", "side": "buy", "size": "0.002", "price": "65000"}


def send(gateway: Gateway, target: str, body: object = None, **headers: str) -> httpx.Response:
    """Send a request as a bot does: a GET, or with a body a POST."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    method = "GET" if body is None else "POST"
    return httpx.request(
        method, f"{gateway.url}/v1/trade{target}", json=body, headers=names, timeout=60, verify=TLS
    )


def orders(sandbox: Sandbox) -> list[dict[str, Any]]:
    return [line for line in sandbox.journal() if line["method"] == "POST"]


def test_an_order_reaches_the_exchange_signed(sealgate_gateway: Gateway, sealgate_sandbox: Sandbox) -> None:
    reply = send(sealgate_gateway, "/order", ORDER)
    assert (reply.status_code, reply.headers["X-Gateway-Outcome"]) == (200, "done")
    [line] = orders(sealgate_sandbox)
    assert (line["order_id"], line["verdict"]) == (reply.json()["order_id"], "ok")
    assert sealgate_sandbox.api_key in line["headers"].values()


async def test_an_asynchronous_test_uses_the_same(sealgate_gateway: Gateway) -> None:
    async with aiohttp.ClientSession(sealgate_gateway.url) as bot:
        replies = await asyncio.gather(*(bot.post("/v1/trade/order", json=ORDER) for _ in range(5)))
        assert [reply.status for reply in replies] == [200] * 5


@pytest.mark.parametrize("_", range(2))
def test_a_pause_and_all_that_was_learned_ends_with_the_test(
    sealgate_gateway: Gateway, sealgate_sandbox: Sandbox, _: int
) -> None:
    assert send(sealgate_gateway, "/symbols/list", X_Gateway_Deadline_Ms="500").status_code == 200
    sealgate_sandbox.limit(kind="fixed", requests=1, window_s=1000.0)
    assert send(sealgate_gateway, "/symbols/list").status_code == 200
    assert send(sealgate_gateway, "/symbols/list", X_Gateway_Deadline_Ms="500").status_code == 429


def test_what_waits_for_a_limit_goes_when_the_test_lets_time_pass(
    sealgate_gateway: Gateway, sealgate_sandbox: Sandbox
) -> None:
    sealgate_sandbox.limit(kind="fixed_from_first", requests=1, window_s=20.0)
    assert send(sealgate_gateway, "/symbols/list").status_code == 200
    answers: list[httpx.Response] = []
    bot = threading.Thread(target=lambda: answers.append(send(sealgate_gateway, "/symbols/list")))
    bot.start()
    while [line["status"] for line in sealgate_sandbox.journal() if "list" in line["target"]] != [200, 429]:
        bot.join(0.001)
    assert not answers
    sealgate_sandbox.advance(20)
    bot.join()
    [reply] = answers
    assert (reply.status_code, reply.headers["X-Gateway-Attempts"]) == (200, "2")


class TestPolicy:
    @pytest.fixture
    def sealgate_settings(self, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
        monkeypatch.setenv("GRID_TOKEN", "token-of-grid")
        return {"bots": {"grid": {"token": "env:GRID_TOKEN", "policy": {"max_orders_per_minute": 1}}}}

    def test_orders_of_many_minutes_do_not_wait_to_go_at_once(
        self, sealgate_gateway: Gateway, sealgate_sandbox: Sandbox
    ) -> None:
        patient = {"Authorization": "Bearer token-of-grid", "X_Gateway_Deadline_Ms": "3000000"}
        sealgate_sandbox.limit(kind="fixed_from_first", requests=1, window_s=600.0)
        assert send(sealgate_gateway, "/symbols/list", **patient).status_code == 200
        answers: list[httpx.Response] = []
        bot = threading.Thread(
            target=lambda: answers.append(send(sealgate_gateway, "/order", ORDER, **patient))
        )
        bot.start()
        while not orders(sealgate_sandbox):
            bot.join(0.001)
        sealgate_sandbox.advance(120)
        other = send(sealgate_gateway, "/order", ORDER, **patient)
        assert "1 of 1 orders" in other.json()["detail"]
        sealgate_sandbox.advance(480)
        bot.join()
        assert [answer.status_code for answer in answers] == [200]
        assert send(sealgate_gateway, "/order", ORDER, **patient).json()["reason"] == "policy_refused"


def test_faults_strike_the_next_requests_and_no_more(
    sealgate_gateway: Gateway, sealgate_sandbox: Sandbox
) -> None:
    sealgate_sandbox.faults({"kind": "reset_after", "next": 1, "match": "POST /v1/trade/order"})
    reply = send(sealgate_gateway, "/order", ORDER)
    assert (reply.json()["reason"], reply.headers["X-Gateway-Outcome"]) == ("upstream_broken", "unknown")
    assert [line["executed"] for line in orders(sealgate_sandbox)] == [True]
    assert send(sealgate_gateway, "/order", ORDER).status_code == 200


@pytest.mark.parametrize(("valid", "outcome"), [({"X_Gateway_Valid_Ms": "500"}, "refused"), ({}, "done")])
def test_an_order_that_comes_late_executes_only_while_it_is_valid(
    sealgate_gateway: Gateway, sealgate_sandbox: Sandbox, valid: dict[str, str], outcome: str
) -> None:
    sealgate_sandbox.faults({"kind": "late", "delay_s": 1, "next": 1, "match": "POST *"})
    reply = send(sealgate_gateway, "/order", ORDER, **valid)
    assert (reply.headers["X-Gateway-Outcome"], reply.headers["X-Gateway-Attempts"]) == (outcome, "1")
    assert [line["executed"] for line in orders(sealgate_sandbox)] == [outcome == "done"]


def test_the_market_moves_and_fills_as_the_test_says(
    sealgate_gateway: Gateway, sealgate_sandbox: Sandbox
) -> None:
    order_id = send(sealgate_gateway, "/order", ORDER).json()["order_id"]
    filled = sealgate_sandbox.market(order_id=order_id, fill="0.001")
    assert filled["fills"] == [{"order_id": order_id, "size": "0.001", "left": "0.001"}]
    assert sealgate_sandbox.market(symbol="BTC", price="64000")["fills"][0]["left"] == "0"
    account = f"/user/{sealgate_sandbox.user_address}"
    assert send(sealgate_gateway, f"{account}/openOrders").json()["orders"] == []
    [position] = send(sealgate_gateway, f"{account}/positions").json()["positions"]
    assert position["size"] == "0.002"


def test_a_stepped_clock_costs_an_order_one_attempt_at_most(
    sealgate_gateway: Gateway, sealgate_sandbox: Sandbox
) -> None:
    sealgate_sandbox.clock(skew_ms=3_600_000)
    reply = send(sealgate_gateway, "/order", ORDER)
    assert reply.status_code == 200
    assert int(reply.headers["X-Gateway-Attempts"]) <= 2  # one, where the gateway has seen it by itself


def test_a_request_that_hangs_does_not_hold_the_next_test_up(
    sealgate_gateway: Gateway, sealgate_sandbox: Sandbox
) -> None:
    """Neither does it fail: its bot is a thread that ends with the gateway."""
    sealgate_sandbox.faults({"kind": "stall", "delay_s": 1000.0})
    threading.Thread(target=lambda: send(sealgate_gateway, "/symbols/list")).start()
    while "/v1/trade/symbols/list" not in [one["target"] for one in sealgate_sandbox.journal()]:
        pass


class TestSettings:
    @pytest.fixture
    def sealgate_settings(self, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
        monkeypatch.setenv("GRID_TOKEN", "a-token-of-a-bot-0123456789")
        return {"bots": {"grid": {"token": "env:GRID_TOKEN", "may": ["read"]}}}

    def test_the_gateway_has_the_settings_of_the_test(self, sealgate_gateway: Gateway) -> None:
        assert send(sealgate_gateway, "/symbols/list").status_code == 401
        proof = {"Authorization": "Bearer a-token-of-a-bot-0123456789"}
        assert send(sealgate_gateway, "/symbols/list", **proof).status_code == 200
        assert send(sealgate_gateway, "/order", ORDER, **proof).json()["reason"] == "bot_forbidden"


def test_the_admin_address_is_there(sealgate_gateway: Gateway) -> None:
    assert httpx.get(f"{sealgate_gateway.admin_url}/status.json", verify=TLS).json()["not_ready"] == []


@pytest.mark.parametrize(
    ("call", "cause"),
    [
        (lambda sandbox: sandbox.limit(kind="none", request=2), r"sealgate_sandbox.limit: request: Extra"),
        (
            lambda sandbox: sandbox.faults({"kind": "dely"}),
            r"sealgate_sandbox.faults: faults.0.kind: .*'delay'",
        ),
        (
            lambda sandbox: sandbox.faults({"kind": "cut", "match": "POST /v1/trade/ordr"}),
            r"sealgate_sandbox.faults: faults.0.match: fits no call of the exchange; write 'METHOD /path'",
        ),
        (lambda sandbox: sandbox.market(order_id=77), "sealgate_sandbox.market: Order was never placed"),
        (lambda sandbox: sandbox.market(price="5"), "^sealgate_sandbox.market: symbol: Field required$"),
        (lambda sandbox: sandbox.market(order_id="x"), "^sealgate_sandbox.market: order_id: Input should be"),
        (lambda sandbox: sandbox.advance(-1), "time only moves forward.*; give seconds from 0"),
        (lambda sandbox: sandbox.advance(math.inf), r"advance\(inf\): .* at most 1e9 seconds"),
        (lambda sandbox: sandbox.advance(math.nan), r"advance\(nan\)"),
        (lambda sandbox: [sandbox.advance(6e8) for _ in range(2)], "at most 1e9 seconds .* in a test"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(sealgate_sandbox: Sandbox, call: Any, cause: str) -> None:
    with pytest.raises(ValueError, match=cause):
        call(sealgate_sandbox)


def test_a_gateway_that_cannot_read_the_exchanges_clock_says_so(
    sealgate_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sealgate.testing.world._READY_S", 0.5)
    sealgate_sandbox.faults({"kind": "reset_before"})
    with pytest.raises(SetupError, match=r"clock.* correct sealgate_settings, or undo what the test did"):
        sealgate_sandbox._world.start_gateway({})


def test_a_gateway_whose_start_fails_is_not_left_running(
    sealgate_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    world, settings = sealgate_sandbox._world, {"listen": {"tcp": f"127.0.0.1:{port}"}}
    with monkeypatch.context() as patches:
        patches.setattr("sealgate.testing.world._READY_S", "no number")
        with pytest.raises(TypeError):
            world.start_gateway(settings)
    world.start_gateway(settings)  # the address is free
    world.stop_gateway()


def test_time_stops_flying_although_a_gateway_cannot_be_stopped(
    sealgate_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exchange_s() -> float:
        reply = httpx.get(f"{sealgate_sandbox.base_url}/v1/trade/time", verify=TLS)
        return float(reply.json()["server_time"]) / 1000

    async def fail(gateway: Any) -> None:
        await drain(gateway)
        raise OSError("no close")

    world, drain = sealgate_sandbox._world, GatewayOfServe.drain
    with monkeypatch.context() as patches:
        patches.setattr(GatewayOfServe, "drain", fail)
        world.start_gateway({})
        with pytest.raises(OSError, match="no close"):
            world.stop_gateway()
    sealgate_sandbox.limit(kind="none")
    began, first = time.monotonic(), exchange_s()
    for _ in range(20):
        last = exchange_s()
    assert last - first <= time.monotonic() - began + 0.001  # its milliseconds are rounded


@pytest.mark.parametrize("returned", [None, ["listen"]])
def test_settings_that_are_no_dict_are_named(sealgate_sandbox: Sandbox, returned: Any) -> None:
    with pytest.raises(SetupError, match=r"sealgate_settings returns .*; return a dict of settings"):
        sealgate_sandbox._world.start_gateway(returned)


@pytest.mark.filterwarnings("error")
def test_what_the_compiled_gateway_warns_of_is_no_error(sealgate_gateway: Gateway) -> None:
    del sealgate_gateway
    warnings.warn("the (type, exc, tb) signature of throw() is deprecated", DeprecationWarning, stacklevel=1)


def test_output_of_the_gateway_is_not_taken_for_the_bots(
    capfd: pytest.CaptureFixture[str], sealgate_gateway: Gateway, sealgate_sandbox: Sandbox
) -> None:
    sealgate_sandbox.clock(skew_ms=3_600_000)
    assert send(sealgate_gateway, "/order", ORDER).status_code == 200
    assert capfd.readouterr() == ("", "")


def test_the_log_has_each_request_as_the_bot_met_it(
    caplog: pytest.LogCaptureFixture, sealgate_gateway: Gateway, sealgate_sandbox: Sandbox
) -> None:
    sealgate_sandbox.faults({"kind": "reset_after", "next": 1, "match": "POST *"})
    with caplog.at_level("INFO"):
        replies = [send(sealgate_gateway, "/order", ORDER) for _ in range(2)]
        sealgate_sandbox._world.report()
    lines = [
        line.getMessage() for line in caplog.records if line.name.partition(".")[0] in {"aiohttp", "sealgate"}
    ]
    lines = [line for line in lines if "/order" in line]
    assert [reply.status_code for reply in replies] == [502, 200]
    assert ["status=502" in lines[0], "status=200" in lines[1], len(lines)] == [True, True, 2], lines
