"""The exposition: a known mix of requests must come out as exactly these figures."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families
from pytest_aiohttp import AiohttpClient

from observe.test_exposition import counts, figures
from rig.admin import Client, application, live_view
from rig.bot import request
from rig.station import ENVIRON, Station, running_station, sandbox_config
from rig.upstream import Upstream, say, say_and_close
from rig.wire import OK, reply
from sealgate.observe.metrics import Metrics
from sealgate.orders.outcome import Outcome
from sealgate.sandbox.server import Sandbox, running_sandbox
from sealgate.sandbox.settings import SandboxSettings
from sealgate.server.gateway import Gateway, running_gateway

BOT = b"Authorization: Bearer token-of-grid"
POSITIONS = request(b"GET", b"/v1/trade/user/0xabc/positions", BOT)
OTHER = request(b"GET", b"/v1/trade/anything/at/all", BOT)
ORDER = request(b"POST", b"/v1/trade/order", BOT, body=b"{}")
CANCEL = request(b"DELETE", b"/v1/trade/order/7", BOT)


def rendered(outcomes: Sequence[Outcome], metrics: Metrics) -> str:
    metrics(outcomes)
    return metrics.snapshot()().decode()


async def test_a_known_mix(upstream: Upstream) -> None:
    bots = {"grid": {"token": "env:TOKEN"}}
    async with running_station(upstream, {**ENVIRON, "TOKEN": "token-of-grid"}, bots=bots) as station:
        for _ in range(3):
            await station.ask(POSITIONS)
        await station.ask(OTHER)
        upstream.answers.extend([say_and_close(), say(OK)])
        await station.ask(POSITIONS)
        upstream.answers.append(say(reply(b"400 Bad Request", b"{}")))
        await station.ask(ORDER)
        upstream.answers.append(say_and_close())
        await station.ask(ORDER)
        upstream.answers.extend([say(reply(b"429 Too Many Requests", b"{}", b"Retry-After: 0.05")), say(OK)])
        await station.ask(CANCEL)
        upstream.answers.append(say(reply(b"429 Too Many Requests", b"{}", b"Retry-After: 3600")))
        await station.ask(ORDER)
        await station.ask(request(b"GET", b"/v1/wallet", BOT))
        await station.ask(request())
        await station.ask(b"garbage\r\n\r\n")
        text = rendered(station.outcomes.all, Metrics(station.gateway.status))

    found = figures(text)
    # sorted label names: bot, key, method, route, status
    assert counts(found, "requests_total") == {
        ("grid", "main", "GET", "/user/{address}/positions", "200"): 4,
        ("grid", "main", "GET", "other", "200"): 1,
        ("grid", "main", "POST", "/order", "400"): 1,
        ("grid", "main", "POST", "/order", "502"): 1,
        ("grid", "main", "DELETE", "other", "200"): 1,
        ("grid", "main", "POST", "/order", "429"): 1,
        ("grid", "", "GET", "other", "404"): 1,
    }
    # What counts against the exchange's limit: each resend, and nothing that the gateway refused.
    assert counts(found, "sent_total") == {
        ("grid", "main", "read"): 6,
        ("grid", "main", "order"): 3,
        ("grid", "main", "cancel"): 2,
    }
    assert counts(found, "outcomes_total") == {
        ("grid", "done"): 6,
        ("grid", "refused"): 2,
        ("grid", "unknown"): 1,
        ("grid", "not_sent"): 1,
    }
    # sorted label names: bot, reason
    assert counts(found, "refusals_total") == {
        ("grid", "upstream_broken"): 1,
        ("grid", "rate_limited"): 1,
        ("grid", "outside_prefix"): 1,
        ("unknown", "bot_unauthenticated"): 1,
        ("unknown", "bad_request"): 1,
        ("unknown", "browser_refused"): 0,
        ("unknown", "host_refused"): 0,
    }
    # The order that was to wait for longer than it could was not sent again.
    assert counts(found, "retries_total") == {("main", "lost"): 1, ("main", "rate_limited"): 1}
    assert counts(found, "rate_limited_total") == {("main", "upstream"): 2, ("main", "gateway"): 1}
    assert counts(found, "queue_wait_seconds_count") == {
        ("main", "read"): 5,
        ("main", "order"): 3,
        ("main", "cancel"): 1,
    }
    assert counts(found, "upstream_duration_seconds_count") == {(): 9}
    assert counts(found, "added_latency_seconds_count") == {(): 10}
    assert 3500 < counts(found, "pause_seconds")[("main",)] <= 3601


async def test_reads_that_got_the_reply_of_another_count_as_served_and_not_as_sent(
    upstream: Upstream, aiohttp_client: AiohttpClient
) -> None:
    kept = [{"match": "GET /v1/trade/symbols/list", "share_s": 60.0}]
    symbols = request(b"GET", b"/v1/trade/symbols/list")
    async with running_station(upstream, routes=kept) as station:
        metrics = Metrics(station.gateway.status)
        for _ in range(4):
            assert (await station.ask(symbols)).status == 200
        await station.ask(request())
        metrics(station.outcomes.all)
        client = await aiohttp_client(application(station.gateway.status, live_view(station), metrics))
        found = figures(await (await client.get("/metrics")).text())
    assert counts(found, "shared_reads_total") == {("main",): 3}
    assert counts(found, "sent_total") == {("local", "main", "read"): 2}
    assert sum(counts(found, "requests_total").values()) == 5
    assert counts(found, "outcomes_total") == {("local", "done"): 5}
    assert counts(found, "upstream_duration_seconds_count") == {(): 2}


async def test_no_series_has_a_name_that_a_bot_chose(station: Station) -> None:
    """Paths, ids and header values that bots make up must not become labels."""
    for number in range(30):
        raw = request(b"GET", b"/v1/trade/made/up/%d" % number, b"X-Gateway-Request-Id: made-up-%d" % number)
        await station.ask(raw)
        await station.ask(request(b"MADEUP%d" % number, b"/v1/trade/x"))
    text = rendered(station.outcomes.all, Metrics(station.gateway.status))
    assert "made-up" not in text
    assert "made/up" not in text
    assert "MADEUP" not in text
    assert len(counts(figures(text), "requests_total")) <= 2


async def test_a_scrape(client: Client) -> None:
    answer = await client.get("/metrics")
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert "sealgate_build_info" in await answer.text()


GOOD = {"symbol": "BTC", "side": "buy", "size": "0.001", "price": "65000"}
# What is sent, how often, and by which kind it counts; None is accepted.
MIX = [
    ({}, 7, None),
    ({"price": "65000.123"}, 3, "off_tick"),
    ({"size": "0.0001"}, 2, "below_minimum"),
    ({"symbol": "NONE"}, 4, "symbol_unsupported"),
    ({"side": "sideways"}, 1, "validation"),
]


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with running_sandbox(
        SandboxSettings(limit_kind="sliding_log", limit_requests=12, limit_window_s=1.0)
    ) as one:
        yield one


async def send_mix(gateway: Gateway) -> None:
    async with aiohttp.ClientSession(f"http://{gateway.address}") as session:

        async def send(change: dict[str, str]) -> None:
            async with session.post("/v1/trade/order", json=GOOD | change) as reply:
                await reply.read()

        await asyncio.gather(*(send(change) for change, count, _ in MIX for _ in range(count)))


async def journal(sandbox: Sandbox) -> Counter[tuple[str, int]]:
    """Count what the exchange received, by verdict and status, its clock apart."""
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{sandbox.base_url}/_sandbox/journal") as reply,
    ):
        entries = (await reply.json())["entries"]
    return Counter(
        (entry["verdict"], entry["status"]) for entry in entries if not entry["target"].endswith("/time")
    )


def samples(metrics: Metrics, name: str, *labels: str) -> Counter[tuple[str, ...]]:
    found: Counter[tuple[str, ...]] = Counter()
    for family in text_string_to_metric_families(metrics.snapshot()().decode()):
        for sample in family.samples:
            if sample.name == f"sealgate_{name}":
                found[tuple(sample.labels[label] for label in labels)] += int(sample.value)
    return found


async def test_every_counter_agrees_with_the_exchanges_journal(sandbox: Sandbox) -> None:
    async with running_gateway(
        sandbox_config(sandbox), (), {"EXCHANGE_SECRET": sandbox.api_secret}
    ) as gateway:
        metrics = Metrics(gateway.status)
        gateway.reporter.add(metrics)
        await gateway.wait_until_ready(10)
        await send_mix(gateway)
        gateway.reporter.flush()
    received = await journal(sandbox)
    wanted = {kind: count for _, count, kind in MIX if kind}
    kinds = samples(metrics, "upstream_errors_total", "kind")
    limited = sum(count for (verdict, _), count in received.items() if verdict == "rate_limited")
    assert limited > 0
    assert kinds == Counter({(kind,): count for kind, count in wanted.items()} | {("rate_limited",): limited})
    for kind, count in wanted.items():
        assert sum(n for (verdict, _), n in received.items() if verdict == kind) == count, kind
    assert samples(metrics, "rate_limited_total", "origin") == {("upstream",): limited}
    assert samples(metrics, "retries_total", "reason") == {("rate_limited",): limited}
    assert samples(metrics, "retry_after_seconds_count", "key") == {("main",): limited}
    statuses = Counter[tuple[str, ...]]()
    for (_, status), count in received.items():
        statuses[(str(status),)] += count
    del statuses[("429",)]
    assert samples(metrics, "requests_total", "status") == statuses
    assert samples(metrics, "upstream_duration_seconds_count") == {(): sum(statuses.values())}
