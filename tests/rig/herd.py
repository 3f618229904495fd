"""Bots that together ask for more than a limit grants, and what the sandbox's journal says of them.

Each bot names itself in `User-Agent`, which the gateway forwards, so the journal tells whose request it was.
"""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from rig.bot import Bot, Reply, bot_at, request
from rig.wire import PATIENCE_S

WEIGHTS = MappingProxyType({"one": 1, "two": 1, "three": 2})
ORDER = b'{"symbol":"BTC","side":"buy","size":"0.001","price":"65000.0"}'

Address = tuple[str, int]


def bots_table() -> dict[str, dict[str, Any]]:
    """Return the configuration's `[bots]` for this herd."""
    return {
        name: {"token": f"env:TOKEN_{name.upper()}", "weight": weight} for name, weight in WEIGHTS.items()
    }


def tokens() -> Mapping[str, str]:
    """Return the environment that `bots_table` refers to."""
    return {f"TOKEN_{name.upper()}": f"token-of-{name}" for name in WEIGHTS}


def by(name: str, method: bytes, target: bytes, *fields: bytes, body: bytes | None = None) -> bytes:
    """Write a request of a bot."""
    own = (b"Authorization: Bearer token-of-" + name.encode(), b"User-Agent: " + name.encode())
    return request(method, target, *own, *fields, body=body)


def order_by(name: str, *fields: bytes) -> bytes:
    """Write an order of a bot that rests below the mark."""
    kind = b"Content-Type: application/json"
    return by(name, b"POST", b"/v1/trade/order", kind, *fields, body=ORDER)


def read_by(name: str, *fields: bytes) -> bytes:
    """Write a read of a bot."""
    return by(name, b"GET", b"/v1/trade/symbols/list", *fields)


@dataclass(frozen=True)
class Entry:
    """A signed request in the sandbox's journal; times are epoch ms."""

    n: int
    bot: str
    method: str
    target: str
    status: int
    received_ms: int
    stamped_ms: int

    @property
    def is_refused(self) -> bool:
        """Whether the limit refused it."""
        return self.status == 429

    @property
    def is_accepted(self) -> bool:
        """Whether the limit let it through; what has no reply yet counts as neither."""
        return self.status not in (0, 429)


async def journal_at(address: Address, since: int = 0) -> list[Entry]:
    """Read what the sandbox there has received with a signature after entry `since`, in order of arrival."""
    async with bot_at(*address) as reader:
        reply = await reader.ask(request(target=b"/_sandbox/journal?since=%d" % since))
    found = (_entry(entry) for entry in reply.document()["entries"])
    return [entry for entry in found if entry is not None]


def _entry(entry: Mapping[str, Any]) -> Entry | None:
    headers = {name.lower(): value for name, value in entry["headers"].items()}
    if "x-service-timestamp" not in headers:
        return None
    return Entry(
        n=entry["n"],
        bot=headers.get("user-agent", ""),
        method=entry["method"],
        target=entry["target"],
        status=entry["status"],
        received_ms=entry["at_ms"],
        stamped_ms=int(headers["x-service-timestamp"]),
    )


async def put(address: Address, path: bytes, document: object) -> None:
    """Change the sandbox's limit, clock or faults."""
    async with bot_at(*address) as writer:
        body = json.dumps(document).encode()
        reply = await writer.ask(request(b"PUT", path, b"Content-Type: application/json", body=body))
    assert reply.status == 200, reply.body


def shares(entries: Iterable[Entry]) -> dict[str, float]:
    """Return what each bot was accepted, as the part of all, by weight: 1 is just its share."""
    counts = Counter(entry.bot for entry in entries if entry.is_accepted)
    parts = {name: weight / sum(WEIGHTS.values()) for name, weight in WEIGHTS.items()}
    return {name: counts[name] / counts.total() / part for name, part in parts.items()}


class Herd:
    """All bots of `WEIGHTS`, each with several requests under way at a time."""

    def __init__(self, gateway: Address, in_flight: int) -> None:
        self._gateway = gateway
        self._in_flight = in_flight
        self.accepted = 0
        self._news = asyncio.Condition()

    async def until_accepted(self, count: int) -> None:
        """Wait until that many were accepted."""
        async with asyncio.timeout(PATIENCE_S), self._news:
            await self._news.wait_for(lambda: self.accepted >= count)

    async def run(self, name: str, message: bytes) -> None:
        """Send it again and again on one connection, until cancelled."""
        async with bot_at(*self._gateway) as bot:
            while True:
                await self._ask(bot, name, message)

    async def _ask(self, bot: Bot, name: str, message: bytes) -> None:
        reply: Reply = await bot.ask(message)
        assert reply.status in (200, 429), (name, reply.status, reply.body)
        if reply.status == 200:
            self.accepted += 1
            async with self._news:
                self._news.notify_all()

    @property
    def messages(self) -> Sequence[tuple[str, bytes]]:
        """What is under way at a time, bot by bot: one in four is a read."""
        makers = (order_by, order_by, order_by, read_by)
        return [(name, makers[turn % 4](name)) for name in WEIGHTS for turn in range(self._in_flight)]


@contextlib.asynccontextmanager
async def running_herd(gateway: Address, in_flight: int = 12) -> AsyncIterator[Herd]:
    """Let the bots saturate a gateway as long as the block lasts; then they hang up."""
    herd = Herd(gateway, in_flight)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(herd.run(name, message)) for name, message in herd.messages]
        try:
            yield herd
        finally:
            for task in tasks:
                task.cancel()
