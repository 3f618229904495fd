"""Redis killed in the middle of a pause, and started again, under the load of several gateways.

The window of the limiter starts with the first request that it lets through, so the journal alone tells when
a pause ends: whatever is received between a 429, plus the time for it to be heard, and the end of its window
was sent inside a known pause. The limit is lowered again and again, as one that is well met brings few
pauses.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import pairwise
from typing import Any

from bench.floods import address_of, running_sandbox
from rig.herd import Address, Entry, journal_at, put
from rig.redis import RedisServer, running_redis

Herds = Callable[[Mapping[str, Any], str, int], AbstractAsyncContextManager[None]]

_WINDOW_S = 2.0
_LIMITS = (160, 112, 78, 54, 38, 26)  # each well below the last: it is met at once
_HEARD_MS = 60  # after which a 429 is known to whoever shares it
_AWAY_S = 1.0
_QUIET_S = 4.0


async def measure(running_herds: Herds, count: int) -> str:
    sends: list[int] = []
    gaps_s: list[float] = []
    refused: list[int] = []
    async with running_sandbox() as sandbox, running_redis() as redis:
        where = address_of(sandbox["base_url"])
        await change_limit(where, _LIMITS[0])
        async with running_herds(sandbox, redis.url, count):
            await asyncio.sleep(_QUIET_S)
            for requests in _LIMITS[1:]:
                since = (await journal_at(where))[-1].n
                await change_limit(where, requests)
                await outage(where, since, redis)
                received = await journal_at(where, since)
                sends += inside_pauses(received)
                gaps_s.append(longest_gap_s(received))
                refused.append(sum(entry.is_refused for entry in received))
    return (
        f"Redis killed {len(refused)} times under the load of {count} gateways, "
        f"{sum(map(bool, refused))} times right after a 429, and "
        f"started again after {_AWAY_S:g} s: {len(sends)} requests sent inside a known pause, "
        f"{sum(refused)} 429s, "
        f"longest time without an accepted request {max(gaps_s):.1f} s, at windows of {_WINDOW_S:g} s."
    )


async def change_limit(where: Address, requests: int) -> None:
    limit = {"kind": "fixed_from_first", "requests": requests, "window_s": _WINDOW_S, "retry_after": "exact"}
    await put(where, b"/_sandbox/limit", limit)


async def outage(where: Address, since: int, redis: RedisServer) -> None:
    """Kill Redis as soon as there is a 429, start it again, and look on for a while."""
    for _ in range(round(_QUIET_S / 0.02)):
        if any(entry.is_refused for entry in await journal_at(where, since)):
            break
        await asyncio.sleep(0.02)
    await redis.kill()
    await asyncio.sleep(_AWAY_S)
    await redis.start()
    await asyncio.sleep(_QUIET_S)


def inside_pauses(received: Sequence[Entry]) -> list[int]:
    """Return when requests were received inside a pause, in ms since the 429."""
    return [
        entry.received_ms - began_ms
        for began_ms, ends_ms in pauses(received)
        for entry in received
        if began_ms + _HEARD_MS < entry.received_ms < ends_ms - 2
    ]


def pauses(received: Sequence[Entry]) -> Iterator[tuple[int, int]]:
    """Yield the first 429 of each window, and the window's end."""
    start_ms, is_paused = -(10**15), False
    for entry in received:
        if entry.is_accepted and entry.received_ms >= start_ms + round(_WINDOW_S * 1000) - 2:
            start_ms, is_paused = entry.received_ms, False
        elif entry.is_refused and not is_paused:
            is_paused = True
            yield entry.received_ms, start_ms + round(_WINDOW_S * 1000)


def longest_gap_s(received: Sequence[Entry]) -> float:
    accepted = [entry.received_ms for entry in received if entry.is_accepted]
    return max(later - earlier for earlier, later in pairwise(accepted)) / 1000
