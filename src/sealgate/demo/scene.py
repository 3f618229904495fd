"""The same four bots on two ways to the exchange, with Sealgate and without, and how they stand."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass

import aiohttp

from sealgate.config.venues import default_venue
from sealgate.demo.bots import BOTS, Bot, Client, Headers, Over, Setback, signed_by, with_token
from sealgate.demo.stage import LIMIT_WINDOW_S, Exchange
from sealgate.demo.tally import Count, DemoKey, Gateway, Journal, Tally, whole_windows
from sealgate.machine.system import System
from sealgate.venues.scheme import KeyMaterial

_FINISH_S = 5.0
_AFTER_SETBACK_S = 0.5


@dataclass(frozen=True, slots=True)
class Team:
    """Four running bots, each with a client of its own."""

    clients: Mapping[str, Client]
    over: asyncio.Event
    tasks: tuple[asyncio.Task[None], ...]

    @property
    def tallies(self) -> dict[str, Tally]:
        """What each bot counted so far."""
        return {name: client.tally for name, client in self.clients.items()}

    async def finish(self) -> None:
        """Let each bot have the answers that it waits for, and end."""
        self.over.set()
        done, late = await asyncio.wait(self.tasks, timeout=_FINISH_S)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        for task in done:
            task.result()  # a bot that failed is a fault of the demo


def through_sealgate(tokens: Mapping[str, str]) -> Callable[[str], Headers]:
    """Return what gives each bot its headers: its own token."""
    return lambda name: with_token(tokens[name])


def on_its_own(exchange: Exchange, system: System) -> Callable[[str], Headers]:
    """Return what gives each bot its headers: signatures, by the secret that every one of them must know."""
    material = KeyMaterial(exchange.api_key, bytearray(exchange.api_secret, "utf-8"))
    key = default_venue().sealer(material)
    return lambda _name: signed_by(key, system)


@asynccontextmanager
async def playing(base_url: str, headers_of: Callable[[str], Headers], system: System) -> AsyncIterator[Team]:
    """Run the four bots until the block ends."""
    over = asyncio.Event()
    async with AsyncExitStack() as stack:
        clients = {
            name: Client(
                await stack.enter_async_context(_session(base_url, name)), headers_of(name), system, over
            )
            for name in BOTS
        }
        tasks = [
            asyncio.create_task(_play(bot, clients[name]))
            for name, bot in BOTS.items()
            for _ in range(bot.at_once)
        ]
        team = Team(clients, over, tuple(tasks))
        try:
            yield team
        finally:
            await team.finish()


def _session(base_url: str, name: str) -> aiohttp.ClientSession:
    # The name is passed on by the gateway, so that the exchange's journal has it.
    return aiohttp.ClientSession(base_url, headers={"User-Agent": name})


async def _play(bot: Bot, client: Client) -> None:
    """Run a bot until it is over; after a setback it begins anew."""
    with suppress(Over):
        while True:
            with suppress(Setback):
                await bot.run(client)
            await client.rest(_AFTER_SETBACK_S)


@dataclass(frozen=True, slots=True)
class Column:
    """One team at one moment: what its bots counted, and what the exchange's journal says."""

    tallies: Mapping[str, Tally]
    count: Count


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything that is shown at one moment, `elapsed_s` after the start.

    `windows` of the limit are over by then, and were not yet begun at the start.
    """

    elapsed_s: float
    key: DemoKey
    through: Column
    alone: Column
    windows: range = range(0)


@dataclass(frozen=True, slots=True)
class Side:
    """A team and the journal of its exchange."""

    team: Team
    journal: Journal

    def column(self) -> Column:
        """Return its part of the picture."""
        by_window = dict(self.journal.by_window)
        return Column(self.team.tallies, Count(sum(by_window.values()), self.journal.limited, by_window))


@dataclass(frozen=True, slots=True)
class Scene:
    """What the pictures are taken of; the start is a reading of `host.now`, and one of `host.wall`."""

    system: System
    started: float
    started_wall_s: float
    gateway: Gateway
    through: Side
    alone: Side

    async def picture(self) -> Picture:
        """Ask everybody, and put the answers together."""
        elapsed_s, wall_s = self.system.now() - self.started, self.system.wall()
        await asyncio.gather(self.gateway.read(), self.through.journal.read(), self.alone.journal.read())
        return Picture(
            elapsed_s=elapsed_s,
            key=self.gateway.key,
            through=self.through.column(),
            alone=self.alone.column(),
            windows=whole_windows(self.started_wall_s, wall_s, LIMIT_WINDOW_S),
        )
