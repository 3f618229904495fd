"""The exposition: a known mix of requests must come out as exactly these figures."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from observe.test_exposition import counts, figures
from rig.bot import request
from rig.station import Station, sandbox_config
from sealgate.observe.metrics import Metrics
from sealgate.orders.outcome import Outcome
from sealgate.sandbox.server import Sandbox, running_sandbox
from sealgate.sandbox.settings import SandboxSettings
from sealgate.server.gateway import Gateway, running_gateway


def rendered(outcomes: Sequence[Outcome], metrics: Metrics) -> str:
    metrics(outcomes)
    return metrics.snapshot()().decode()


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
