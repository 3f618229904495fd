"""Gateways that share a key through a real Redis: pauses, budgets, and what is done without it."""

import asyncio
import contextlib
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from rig.bot import request
from rig.redis import RedisServer, running_redis
from rig.station import ENVIRON, KEY, Station, running_station
from rig.upstream import Act, Upstream, say
from rig.wire import let_pass, reply
from sealgate.limits.status import SharingStatus
from sealgate.observe.metrics import Metrics

READ = request()
PAUSE_S = 2.0
# What signs is not what is tested here, and nobody is left to drain for.
QUIET: dict[str, Any] = {
    "clock": {"required": False, "grace": 0.0},
    "listen": {"tcp": "127.0.0.1:0", "drain": 0},
}


def limited(seconds: float) -> Act:
    return say(reply(b"429 Too Many Requests", b"", b"Retry-After: %.3f" % seconds))


@pytest.fixture
async def redis() -> AsyncIterator[RedisServer]:
    async with running_redis() as server:
        yield server


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait longer for Redis: a machine under load must not look like one without it."""
    monkeypatch.setattr("sealgate.cluster.redis_group.TIMEOUT_S", 5.0)


@contextlib.asynccontextmanager
async def running_pair(
    upstream: Upstream, redis: RedisServer, **limits: object
) -> AsyncIterator[tuple[Station, Station]]:
    """Run two gateways; the first leads."""
    tables: dict[str, Any] = {"limits": {"redis": redis.url, **limits}, **QUIET}
    async with running_station(upstream, **tables) as one:
        await one.until(lambda: sharing(one).is_leader)
        async with running_station(upstream, **tables) as other:
            await one.until(lambda: is_shared(one, 2) and is_shared(other, 2))
            yield one, other


def sharing(station: Station) -> SharingStatus:
    status = station.gateway.status().keys[0].sharing
    assert status is not None
    return status


def is_shared(station: Station, replicas: int) -> bool:
    status = sharing(station)
    return status.degraded is None and status.replicas == replicas


def pause_s(station: Station) -> float:
    return station.gateway.status().keys[0].pause_s


def bots_reads(upstream: Upstream) -> list[float]:
    return [received.at for received in upstream.received]


@pytest.mark.parametrize("is_leader_refused", [True, False])
async def test_a_pause_of_one_holds_for_the_other(
    upstream: Upstream,
    redis: RedisServer,
    is_leader_refused: bool,
) -> None:
    async with running_pair(upstream, redis) as pair:
        first, second = pair if is_leader_refused else pair[::-1]
        upstream.received.clear()
        upstream.answers.append(limited(PAUSE_S))
        waiting = asyncio.ensure_future(first.ask(READ))
        await second.until(lambda: pause_s(second) > 0)
        assert (await second.ask(READ)).status == 200
        assert (await waiting).status == 200
    refused_at, *others = bots_reads(upstream)
    assert min(others) >= refused_at + PAUSE_S


@pytest.mark.usefixtures("patient")
async def test_a_budget_is_one_for_both(upstream: Upstream, redis: RedisServer) -> None:
    async with running_pair(upstream, redis, known=["10/2s"]) as pair:
        # Each is another one, so that none shares a reply.
        reads = [request(b"GET", b"/v1/trade/user/0xabc/positions?page=%d" % page) for page in range(10)]
        await asyncio.gather(*(station.ask(read) for station in pair for read in reads))
    times = bots_reads(upstream)
    assert len(times) == 20
    # In half of the window: what is sent in time may be read late, so that arrivals move together.
    within = [sum(1 for at in times if since <= at < since + 1.0) for since in times]
    assert max(within) <= 10


POOLS = """
name = "mine"
like = "service"
[[limits.pools]]
name = "weight"
scope = "address"
known = ["10/2s"]
[[limits.pools]]
name = "reads"
scope = "key"
lanes = ["read"]
[[replies]]
status = [429]
at = "/code"
is = ["reads"]
means = "limited"
kind = "rate_limited"
pool = "reads"
"""


@pytest.mark.usefixtures("patient")
async def test_gateways_with_different_keys_share_the_pools_of_the_address_alone(
    upstream: Upstream, redis: RedisServer, tmp_path: Path
) -> None:
    venue = tmp_path / "mine.toml"
    venue.write_text(POOLS)
    tables: dict[str, Any] = {"limits": {"redis": redis.url}, "venue": str(venue), **QUIET}
    other_key: dict[str, Any] = {"keys": {"main": {**KEY, "api_key": "ak-public-2"}}}
    reads = [request(b"GET", b"/v1/trade/user/0xabc/positions?page=%d" % page) for page in range(10)]
    async with (
        running_station(upstream, **tables) as one,
        running_station(upstream, **tables, **other_key) as other,
    ):
        for station in (one, other):
            await station.until(lambda: is_shared(station, 2))  # noqa: B023 - awaited in this turn of the loop
        await asyncio.gather(*(station.ask(read) for station in (one, other) for read in reads))
        times = bots_reads(upstream)
        assert max(sum(1 for at in times if since <= at < since + 1.0) for since in times) <= 10
        # What closes the pool of one key holds up the other in nothing.
        refused = reply(b"429 Too Many Requests", b'{"code":"reads"}', b"Retry-After: 30")
        upstream.answers.append(say(refused))
        waiting = asyncio.ensure_future(one.ask(READ))
        await one.until(lambda: closed(one) == ["reads"])
        assert (await other.ask(READ)).status == 200
        assert closed(other) == []
        waiting.cancel()


def closed(station: Station) -> list[str]:
    return [pool.pool for pool in station.gateway.status().keys[0].pools if pool.pause_s > 0]


@pytest.mark.parametrize("is_frozen", [False, True])
async def test_a_pause_that_is_known_outlasts_redis(
    upstream: Upstream,
    redis: RedisServer,
    is_frozen: bool,
) -> None:
    async with running_pair(upstream, redis) as pair:
        upstream.received.clear()
        upstream.answers.append(limited(PAUSE_S))
        asking = [asyncio.ensure_future(pair[0].ask(READ))]
        await pair[1].until(lambda: pause_s(pair[1]) > 0)
        redis.freeze() if is_frozen else await redis.kill()
        asking += [asyncio.ensure_future(station.ask(READ)) for station in pair]
        for station in pair:
            await station.until(lambda: sharing(station).degraded is not None)  # noqa: B023 - at once
        if is_frozen:
            redis.thaw()
        else:
            await redis.start()
        for station in pair:
            await station.until(lambda: is_shared(station, 2))  # noqa: B023 - awaited in this turn of the loop
        assert [(await one).status for one in asking] == [200] * 3
    refused_at, *others = bots_reads(upstream)
    assert min(others) >= refused_at + PAUSE_S


async def test_without_redis_each_goes_carefully_alone_and_says_so(
    upstream: Upstream, redis: RedisServer
) -> None:
    with capture_logs() as logs:
        async with running_pair(upstream, redis, known=["10/2s"]) as pair:
            await redis.kill()
            for station in pair:
                await station.until(lambda: sharing(station).degraded == "Redis cannot be reached")  # noqa: B023 - awaited in this turn of the loop
            assert [(await station.ask(READ)).status for station in pair] == [200, 200]
            [limit] = pair[1].gateway.status().keys[0].limits
            assert limit.n == pytest.approx(10 * 0.8 / 2)
            assert "this gateway's share" in limit.words
            page = Metrics(pair[1].gateway.status).snapshot()().decode()
            assert 'sealgate_limit_sharing_degraded{exchange="service",key="main"} 1.0' in page
            assert 'sealgate_limit_sharing_replicas{exchange="service",key="main"} 2.0' in page
            await redis.start()
            for station in pair:
                await station.until(lambda: is_shared(station, 2))  # noqa: B023 - awaited in this turn of the loop
            page = Metrics(pair[1].gateway.status).snapshot()().decode()
            assert 'sealgate_limit_sharing_degraded{exchange="service",key="main"} 0.0' in page
    told = Counter(line["event"] for line in logs)
    assert told["limit_sharing_degraded"] >= 2  # each cause is told, of which a slow machine sees more
    assert told["limit_shared"] >= 4


async def test_a_leader_that_makes_no_sense_is_outlived(upstream: Upstream, redis: RedisServer) -> None:
    """A leader of another version keeps a gateway alone as long as it renews its lease, and no longer."""
    tables = {"limits": {"redis": redis.url}, **QUIET}
    async with Redis.from_url(redis.url) as stranger:
        async with running_station(upstream, **tables) as first:
            await first.until(lambda: sharing(first).is_leader)
            tables_there: list[Any] = await stranger.keys()
            [table] = [name for name in tables_there if not name.endswith(b":members")]

        async def leader() -> None:
            seconds, us = await stranger.time()
            until_us = seconds * 10**6 + us + 1_400_000
            strange: dict[Any, Any] = {"lead": "strange", "lead_until": until_us, "beat": '{"beat":{}}'}
            await stranger.hset(table, mapping=strange)

        async def go_on_leading() -> None:
            while True:
                await let_pass(0.1)
                await leader()

        await leader()
        leading = asyncio.create_task(go_on_leading())
        async with running_station(upstream, **tables) as second:
            await second.until(lambda: "cannot be understood" in str(sharing(second).degraded))
            assert (await second.ask(READ)).status == 200
            leading.cancel()
            await second.until(lambda: sharing(second) == SharingStatus(1, is_leader=True, degraded=None))


async def test_who_leaves_hands_the_leader_over(upstream: Upstream, redis: RedisServer) -> None:
    tables = {"limits": {"redis": redis.url}, **QUIET}
    async with running_station(upstream, **tables) as first:
        await first.until(lambda: sharing(first).is_leader)
        async with running_station(upstream, **tables) as second:
            await second.until(lambda: is_shared(second, 2))
            await first.gateway.services.background.stop()
            await second.until(lambda: sharing(second) == SharingStatus(1, is_leader=True, degraded=None))
            assert (await second.ask(READ)).status == 200


async def test_a_url_with_a_password_comes_from_a_reference(upstream: Upstream, redis: RedisServer) -> None:
    tables: dict[str, Any] = {"limits": {"redis": "env:REDIS_URL"}, **QUIET}
    async with running_station(upstream, {**ENVIRON, "REDIS_URL": redis.url}, **tables) as station:
        await station.until(lambda: is_shared(station, 1))


WITHOUT = """
import asyncio, sys
from rig.station import ENVIRON, make_config
from sealgate.server.gateway import running_gateway

async def main():
    async with running_gateway(make_config("http://127.0.0.1:9", **{tables}), (), ENVIRON):
        names = [name for name in sys.modules if name == "redis" or ".sharing" in name]
        print("found:", names)

asyncio.run(main())
"""


def run_python(source: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", source]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={"PYTHONPATH": "tests"})


def test_unset_nothing_of_it_is_imported() -> None:
    done = run_python(WITHOUT.replace("{tables}", "{}"))
    assert "found: []\n" in done.stdout, done.stderr
