"""`sealgate serve` as a process of its own, before a raw upstream in this one."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rig.bot import Bot, Reply, bot_at
from rig.command import ended_command
from rig.program import BASE, WITHOUT_UVLOOP, Program, running_program
from rig.wire import let_pass

LOOPS: Mapping[str, Sequence[str]] = {"uvloop": ("-m", "sealgate"), "asyncio": WITHOUT_UVLOOP}


@dataclass(frozen=True)
class Served:
    """A running gateway."""

    program: Program
    bots: str
    admin: str

    @property
    def pid(self) -> int:
        """Its process."""
        return self.program.process.pid

    def bot(self) -> contextlib.AbstractAsyncContextManager[Bot]:
        """Connect a bot."""
        return _at(self.bots)

    async def ask(self, raw: bytes) -> Reply:
        """Send one request on a connection of its own."""
        async with self.bot() as bot:
            return await bot.ask(raw)

    async def ask_admin(self, path: str) -> Reply:
        """Read one page of the admin address."""
        async with _at(self.admin) as bot:
            return await bot.ask(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())

    async def status(self) -> dict[str, Any]:
        """Read `/status.json`."""
        return (await self.ask_admin("/status.json")).document()

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return the log lines with that event."""
        lines = (json.loads(line) for line in self.program.err if line.startswith("{"))
        return [line for line in lines if line["event"] == name]

    @property
    def descriptors(self) -> frozenset[int]:
        """The numbers of the files that it has open."""
        return frozenset(int(file.name) for file in Path(f"/proc/{self.pid}/fd").iterdir())


def _at(url: str) -> contextlib.AbstractAsyncContextManager[Bot]:
    host, _, port = url.removeprefix("http://").rpartition(":")
    return bot_at(host, int(port))


def environ(base_url: str, journal: Path | None = None, **more: str) -> dict[str, str]:
    """Return the configuration of a gateway before an upstream; `more` are names without SEALGATE_."""
    own = {f"SEALGATE_{name}": value for name, value in more.items()}
    if journal is not None:
        own["SEALGATE_JOURNAL__FILE"] = str(journal)
    return {**BASE, "SEALGATE_BASE_URL": base_url, **own}


@contextlib.asynccontextmanager
async def running_served(
    settings: Mapping[str, str], folder: Path, start: Sequence[str] = LOOPS["uvloop"]
) -> AsyncIterator[Served]:
    """Run a gateway as long as the block lasts; return when it is ready."""
    async with running_program("serve", environ=settings, folder=folder, start=start) as program:
        await program.line('"ready"')
        told = json.loads(await program.line('"listening"'))
        yield Served(program, told["bots"], told["admin"])


async def orders_in_doubt(settings: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return what `sealgate orders --json` lists."""
    result = await ended_command("orders", "--json", environ=settings)
    assert result.exit_code == 0, result.output
    orders: list[dict[str, Any]] = json.loads(result.stdout)["orders"]
    return orders


async def is_served_again(ask: Callable[[], Awaitable[Reply]]) -> None:
    """Connect until it is served: an accept may be held back for a moment."""
    async with asyncio.timeout(20):
        while True:
            with contextlib.suppress(Exception):
                if (await ask()).status == 200:
                    return
            await let_pass(0.05)
