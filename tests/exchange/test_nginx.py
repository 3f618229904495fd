"""Real nginx as the upstream: no target that the gateway lets through gets outside the prefix's location.

nginx decodes, merges slashes and resolves dot segments before it chooses a location, as many upstreams do.
It says back where a request ended, which path it saw and which target came.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from random import Random  # noqa: TID251 - seeded
from urllib.parse import unquote_to_bytes

import pytest

from rig.bad_requests import targets
from rig.bad_requests.case import lines
from rig.bot import Bot, Reply, bot_at
from rig.ports import free_port
from rig.programs import path_of
from rig.station import Station, running_station
from rig.upstream import Upstream
from rig.wire import PATIENCE_S, let_pass

pytestmark = pytest.mark.needs("nginx")

CONFIG = """
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
    access_log off;
    keepalive_requests 1000000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location /v1/trade/ {{ return 200 "inside\n$uri\n$request_uri"; }}
        location /v1/wallet {{ return 200 "wallet\n$uri\n$request_uri"; }}
        location / {{ return 200 "outside\n$uri\n$request_uri"; }}
    }}
}}
"""
PIECES = (
    *("/", "//", ".", "..", "/./", "/../", "../", "./", ";", "..;/", "%2e", "%2E%2e", "%2f", "%2F", "%5c"),
    *("\\", "%00", "%0a", "%20", "%25", "%252e", "%c0%ae", "%C3%A9", "%3a", "%3B", "%23", "%3F", "%7e"),
    *("a", "order", "wallet", "v1", "trade", "/v1/trade/", "api-keys", "~", "*", "'", "(", ",", "=", "+"),
    *("?", "?a=/../", "&b=%2F..", "%zz", "%", "é", "[", "]", "{", "...", "..a", ".a", "a."),
)
PLAIN = (
    "a",
    "/b",
    "/order",
    "%20",
    "%C3%A9",
    "%3a",
    "...",
    "~",
    "*",
    "'",
    "(",
    ",",
    "=",
    "+",
    "?a=",
    "%22",
    "/..a",
)


def random_targets(count: int) -> Iterator[bytes]:
    """Yield targets around the prefix, from a fixed seed."""
    random = Random(8)
    for _ in range(count):
        start = random.choice(("/v1/trade/", "/v1/trade/", "/v1/trade/", "/v1/trade", "/v1/", "/", ""))
        pieces = random.choice((PIECES, PLAIN))
        yield (start + "".join(random.choices(pieces, k=random.randint(1, 6)))).encode()


def corpus() -> list[bytes]:
    """Return the targets of the corpus of bad requests."""
    return [bad.raw.split(b" ")[1] for bad in targets.CASES.values() if bad.raw.count(b" ") == 3]


TARGETS = list(dict.fromkeys((*corpus(), *random_targets(2_000))))


@pytest.fixture
async def nginx(tmp_path: Path) -> AsyncIterator[int]:
    """Run nginx on a free port."""
    port = free_port()
    config = tmp_path / "nginx.conf"
    config.write_text(CONFIG.format(folder=tmp_path, port=port))
    process = await asyncio.create_subprocess_exec(
        path_of("nginx"), "-e", tmp_path / "error.log", "-c", config
    )
    try:
        await until_it_listens(port)
        yield port
    finally:
        process.terminate()
        await process.wait()


async def until_it_listens(port: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                async with bot_at("127.0.0.1", port):
                    return
            except ConnectionError:
                await let_pass(0.01)


@pytest.fixture
async def station(nginx: int) -> AsyncIterator[Station]:
    async with running_station(
        Upstream(port=nginx), clock={"required": False, "grace": 0}, synced=False
    ) as running:
        yield running


async def answers(host: str, port: int) -> AsyncIterator[tuple[bytes, Reply]]:
    """Ask for each target over as few connections as will do."""
    pending = list(reversed(TARGETS))
    while pending:
        async with bot_at(host, port) as bot:
            while pending:
                target = pending.pop()
                answer = await ask(bot, target)
                yield target, answer
                if answer.closes:
                    break


async def ask(bot: Bot, target: bytes) -> Reply:
    return await bot.ask(lines(b"GET " + target + b" HTTP/1.1", b"Host: localhost"))


async def test_what_is_let_through_stays_inside(station: Station) -> None:
    passed = 0
    async for target, answer in answers(station.gateway.address.host, station.gateway.address.port):
        if answer.reason is not None:
            assert answer.outcome == "not_sent"
            continue
        where, path, seen = answer.body.split(b"\n", 2)
        assert (answer.status, where, seen) == (200, b"inside", target)
        assert path == unquote_to_bytes(target.partition(b"?")[0])
        passed += 1
    assert passed > 100
