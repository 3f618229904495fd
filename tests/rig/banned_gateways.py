"""A gateway with three bots before an exchange that shuts it out at a random moment, in virtual time."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from random import Random  # noqa: TID251 - seeded

from rig.bot import bot_at, request
from rig.leaping import START, run_leaping
from rig.scripted_exchanges import EXCHANGES, SECRETS, Closure, ScriptedExchange
from rig.station import make_config
from rig.upstream import Upstream, running_upstream
from rig.wire import let_pass
from sealgate.config import Config
from sealgate.machine.system import System
from sealgate.server.gateway import Gateway, running_gateway

BOTS = ("maker", "taker", "watcher")
_AFTER_S = 20.0  # for which it goes on after the closure
_TOKENS = {f"TOKEN_{name.upper()}": f"token-of-{name}" for name in BOTS}


@dataclass(frozen=True)
class Figures:
    """What came of one run: requests that were sent into the wait, and beside the first one after it."""

    refused: int
    of_bots: int
    of_gateway: int
    beside_the_first: int
    went_on: int


def run_through_ban(
    venue: str, closure: Closure, seed: int, journal: Path | None = None, *, restarts: bool = False
) -> Figures:
    """Run a gateway through one closure; with `restarts` it is killed in it and starts again."""
    random = Random(f"{venue} {closure.name} {seed}")
    lasts_s, waits_s = random.uniform(*closure.lasts_s), random.uniform(3.0, 40.0)
    script = ScriptedExchange(EXCHANGES[venue], closure, START + waits_s, lasts_s)
    at = random.uniform(0.1, 0.9) if restarts else 0.0
    return run_leaping(lambda system: _run(venue, script, random, system, journal, at))


async def _run(  # noqa: PLR0913, PLR0917 - all that differs
    venue: str,
    script: ScriptedExchange,
    random: Random,
    system: System,
    journal: Path | None,
    restarts_at: float,
) -> Figures:
    """Run to the end; `restarts_at` is that part of the closure, 0 for never."""
    begins, ends = script.begins, script.ends
    async with running_upstream() as upstream:
        upstream.script = script.act
        config = _config(upstream, venue, journal)
        if restarts_at:
            async with _running(config, system, script, random):
                await let_pass(begins + restarts_at * (ends - begins) - system.now())
        async with _running(config, system, script, random):
            await let_pass(ends - system.now())
            await let_pass(script.ends + _AFTER_S - system.now())  # it began with the first refusal
    return Figures(
        sum(one.is_refused for one in script.arrivals),
        script.into_the_wait(("bot",)),
        script.into_the_wait(("clock", "gateway")),
        script.beside_the_first(),
        sum(one.at > script.ends and one.whose == "bot" for one in script.arrivals),
    )


def _config(upstream: Upstream, venue: str, journal: Path | None) -> Config:
    key = {"api_key": "ak", "secret": "env:SECRET", **EXCHANGES[venue].key}
    bots = {name: {"token": f"env:TOKEN_{name.upper()}", "key": "main"} for name in BOTS}
    more = {} if journal is None else {"journal": {"file": str(journal)}}
    return make_config(upstream.base_url, venue=venue, keys={"main": key}, bots=bots, **more)


@contextlib.asynccontextmanager
async def _running(
    config: Config, system: System, script: ScriptedExchange, random: Random
) -> AsyncIterator[Gateway]:
    async with running_gateway(config, (), {**SECRETS, **_TOKENS}, system=system) as gateway:
        asks = EXCHANGES[config.venue.name].asks
        bots = [
            asyncio.create_task(_trade(gateway, name, asks, script, Random(random.random()))) for name in BOTS
        ]
        try:
            yield gateway
        finally:
            for bot in bots:
                bot.cancel()
            await asyncio.gather(*bots, return_exceptions=True)


async def _trade(
    gateway: Gateway,
    name: str,
    asks: tuple[tuple[str, str, str], ...],
    script: ScriptedExchange,
    random: Random,
) -> None:
    """Ask for this and that, often while something happens, and without patience."""
    loop = asyncio.get_running_loop()
    head = (f"Authorization: Bearer token-of-{name}".encode(), b"X-Gateway-Deadline-Ms: 3000")
    while True:
        method, target, body = random.choice(asks)
        kind = b"Content-Type: application/" + (b"json" if body.startswith("{") else b"x-www-form-urlencoded")
        fields = (*head, kind) if body else head
        raw = request(method.encode(), target.encode(), *fields, body=body.encode() if body else None)
        async with bot_at(gateway.address.host, gateway.address.port) as bot:
            await bot.ask(raw)
        now = loop.time()
        is_lively = min(abs(now - script.begins), abs(now - script.ends)) < 8.0
        idle_s = random.expovariate(5.0 if is_lively else 0.2)
        await let_pass(min(idle_s, script.begins - now) if now < script.begins else idle_s)


def closures() -> list[tuple[str, Closure]]:
    """Return all ways in which all exchanges shut somebody out."""
    return [(venue, closure) for venue, exchange in EXCHANGES.items() for closure in exchange.closures]
