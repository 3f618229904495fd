"""The demo from start to end: set the stage, let both teams play, watch, and tell how it went."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial

import aiohttp
import click
from rich.console import Console
from rich.live import Live

from sealgate.cli.demo import screen
from sealgate.cli.demo.bots import BOTS
from sealgate.cli.demo.gauges import Gateway, Journal
from sealgate.cli.demo.scene import Picture, Scene, Side
from sealgate.cli.demo.stage import LIMIT_REQUESTS, LIMIT_WINDOW_S, Ports, Stage, staged
from sealgate.cli.demo.summary import Summary, figures
from sealgate.cli.demo.teams import on_its_own, playing, through_sealgate
from sealgate.cli.loop import stop_event
from sealgate.gateway.platform.system import System

_LIVE_S, _PLAIN_S = 0.25, 1.0


async def show(ports: Ports, seconds: float | None, *, as_json: bool) -> None:
    """Run the demo for so many seconds, or until a signal. Raises ChildError."""
    stop = stop_event(ends_on_hangup=True)
    console = Console(stderr=as_json)
    weights = {name: bot.weight for name, bot in BOTS.items()}
    async with staged(ports, {**weights, screen.GUEST: 1}) as stage:
        screen.print_addresses(console, stage)
        summary = await _play(stage, console, partial(_until_end, stop, seconds, stage))
    if as_json:
        click.echo(screen.summary_json(summary))
    else:
        screen.print_summary(console, summary)


async def _until_end(stop: asyncio.Event, seconds: float | None, stage: Stage) -> None:
    """Return after the time or a signal. Raises ChildError where a program ends before."""
    stopped = asyncio.create_task(stop.wait())
    ends = [asyncio.create_task(child.ends()) for child in stage.children]
    try:
        await asyncio.wait([stopped, *ends], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            if end.done() and not stop.is_set():
                end.result()
    finally:
        for task in (stopped, *ends):
            task.cancel()


async def _play(stage: Stage, console: Console, until_end: Callable[[], Awaitable[None]]) -> Summary:
    system = System()
    async with (
        aiohttp.ClientSession() as session,
        playing(stage.bots_url, through_sealgate(stage.tokens), system) as through,
        playing(stage.other.base_url, on_its_own(stage.other, system), system) as alone,
    ):
        scene = Scene(
            system=system,
            started=system.now(),
            started_wall_s=system.wall(),
            gateway=Gateway(session, stage.admin_url),
            through=Side(through, Journal(session, stage.exchange.base_url, LIMIT_WINDOW_S)),
            alone=Side(alone, Journal(session, stage.other.base_url, LIMIT_WINDOW_S)),
        )
        async with _shown(scene, console):
            await until_end()
        # The exchanges' counts end here; the bots still get the answers that they wait for.
        last = await scene.picture()
    return _summary(last)


def _summary(last: Picture) -> Summary:
    through, alone = (
        figures(column.count, last.windows, LIMIT_WINDOW_S, column.tallies)
        for column in (last.through, last.alone)
    )
    return Summary(round(last.elapsed_s, 3), LIMIT_REQUESTS, LIMIT_WINDOW_S, through, alone)


@asynccontextmanager
async def _shown(scene: Scene, console: Console) -> AsyncIterator[None]:
    """Show the scene until the block ends: live on a terminal, else in lines."""
    is_live = console.is_terminal and not console.is_dumb_terminal
    showing = asyncio.create_task((_show_live if is_live else _show_lines)(scene, console))
    try:
        yield
    finally:
        showing.cancel()
        with suppress(asyncio.CancelledError):
            await showing


async def _show_live(scene: Scene, console: Console) -> None:
    with Live(console=console, auto_refresh=False, transient=True) as view:
        while True:
            view.update(screen.live(await scene.picture()), refresh=True)
            await scene.system.sleep(_LIVE_S)


async def _show_lines(scene: Scene, console: Console) -> None:
    for number in itertools.count(1):
        # Counted from the start, so that no second is skipped however long a line takes.
        await scene.system.sleep(scene.started + number * _PLAIN_S - scene.system.now())
        line = screen.plain(await scene.picture())
        console.print(line, markup=False, highlight=False, soft_wrap=True)
