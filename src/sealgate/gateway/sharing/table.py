"""The table of one key in Redis: the script for visits, and a subscription for what others say there.

Nothing here waits longer than `TIMEOUT_S` for Redis, and nothing is tried twice: who gets no answer goes
alone.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from importlib.resources import files
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.client import PubSub
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from sealgate.core.sharing.notes import LONGEST_PAUSE_S
from sealgate.core.sharing.plain import reading, whole
from sealgate.core.sharing.seat import LEAD_LEASE_S, MEMBER_LEASE_S, Visit, VisitAnswer

TIMEOUT_S = 0.1
TROUBLE = (RedisError, OSError, TimeoutError)

SCRIPT = (files(__package__) / "table.lua").read_text("utf-8")
_US = 1_000_000


class Table:
    """One gateway's place at the table of `tag`, a name that all gateways on the key derive alike."""

    def __init__(self, url: str, tag: str, me: str) -> None:
        self._url = url
        self._name = f"{{sealgate:{tag}}}"
        self._me = me

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator["Session"]:
        """Connect and subscribe as long as the block lasts. Raises one of TROUBLE."""
        async with (
            self._client(TIMEOUT_S) as client,
            self._client(None) as listener,  # who listens may hear nothing for long
            listener.pubsub() as pubsub,
        ):
            async with asyncio.timeout(2 * TIMEOUT_S):
                await _subscribe(pubsub, f"{self._name}:all", f"{self._name}:{self._me}")
            yield Session(client, pubsub, self._name, self._me)

    def _client(self, timeout_s: float | None) -> Redis:
        client: Redis = Redis.from_url(
            self._url,
            socket_timeout=timeout_s,
            socket_connect_timeout=TIMEOUT_S,
            retry=Retry(NoBackoff(), 0),
            protocol=2,
        )
        return client


class Session:
    """An open connection: `visit`, and `listen` beside it."""

    def __init__(self, client: Redis, pubsub: PubSub, name: str, me: str) -> None:
        self._script = client.register_script(SCRIPT)
        self._pubsub = pubsub
        self._name = name
        self._me = me

    async def visit(self, visit: Visit) -> VisitAnswer:
        """Make a visit. Raises one of TROUBLE, or MessageError."""
        return await self._run(visit, MEMBER_LEASE_S)

    async def leave(self) -> None:
        """Free the place at once, and the lead. Raises one of TROUBLE."""
        await self._run(Visit(0), 0.0)

    async def listen(self, heard: Callable[[bytes], None]) -> None:
        """Pass on every message, until cancelled. Raises one of TROUBLE."""
        async for message in self._pubsub.listen():
            if message["type"] == "message":
                heard(message["data"])

    async def _run(self, visit: Visit, lease_s: float) -> VisitAnswer:
        keys = [self._name, f"{self._name}:members"]
        async with asyncio.timeout(TIMEOUT_S):
            found = await self._script(keys=keys, args=arguments("", self._me, visit, lease_s))
        return read_answer(found)


def arguments(now: str, me: str, visit: Visit, lease_s: float) -> list[str | int]:
    """Return the ARGV of table.lua; `now` is "" for the time of Redis."""
    grants = [text for grant in visit.grants for text in grant]
    spans_s = lease_s, LEAD_LEASE_S, visit.pause_s, LONGEST_PAUSE_S
    spans_us = [round(span_s * _US) for span_s in spans_s]
    return [now, me, visit.epoch, *spans_us, visit.note, visit.beat, *grants]


def read_answer(found: list[Any]) -> VisitAnswer:
    """Return what table.lua returned. Raises MessageError for what it would not."""
    with reading():
        lead, epoch, pause_us, replicas, beat, members = found
        names = tuple(member.decode() for member in members)
        numbers = whole(epoch), whole(pause_us) / _US, whole(replicas)
        return VisitAnswer(lead.decode(), *numbers, beat.decode(), names)


def words(error: BaseException) -> str:
    """Say in a few words why Redis is of no use; never what its URL is, which may hold a password."""
    if isinstance(error, TimeoutError | RedisTimeoutError):
        return f"Redis did not answer within {TIMEOUT_S * 1000:.0f} ms"
    if isinstance(error, ResponseError):
        said = "".join(str(error).splitlines()[:1])[:100]
        return f"Redis refuses ({said or 'no reason given'})"
    return "Redis cannot be reached"


async def _subscribe(pubsub: PubSub, *channels: str) -> None:
    """Return when it is certain that nothing said from now on is missed."""
    await pubsub.subscribe(*channels)
    for _ in channels:
        await pubsub.get_message(timeout=None)
