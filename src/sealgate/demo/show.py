"""The demo from start to end: set the stage, let both teams play, watch, and tell how it went."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from functools import partial

import aiohttp
import click
from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sealgate.demo.bots import BOTS
from sealgate.demo.scene import Picture, Scene, Side, on_its_own, playing, through_sealgate
from sealgate.demo.stage import LIMIT_REQUESTS, LIMIT_WINDOW_S, SKEW_MS, Ports, Stage, staged
from sealgate.demo.tally import DemoKey, Gateway, Journal, Summary, Tally, figures, in_a_sentence, rows
from sealgate.machine.loop import stop_event
from sealgate.machine.system import System

GUEST = "you"  # a bot of the user's own, for the curl line
THROUGH, ALONE = "through Sealgate", "each on its own"
CAPTION = "Each try that met a 429 counts; a wait lasts until the request is answered."
_LIVE_S, _PLAIN_S = 0.25, 1.0


def print_addresses(console: Console, stage: Stage) -> None:
    """Print where everything is, and a line to try."""
    host = stage.bots_url.removeprefix("http://")
    lines = (
        f"Four bots share one API key and its limit of {LIMIT_REQUESTS} requests in {LIMIT_WINDOW_S} s.",
        f"The exchange's clock is {SKEW_MS / 1000:g} s off, as some are.",
        f"  bots      {stage.bots_url}",
        f"  live page {stage.admin_url}/",
        f"  metrics   {stage.admin_url}/metrics",
        f"  exchange  {stage.exchange.base_url}/openapi.json",
        "Try it, while it runs (the gateway signs it):",
        f"  curl http://{GUEST}:{stage.tokens[GUEST]}@{host}/v1/trade/symbols/list",
        "",
    )
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def live(picture: Picture) -> Group:
    """Return the live view."""
    table = _table("bot")
    table.add_column("does", style="dim", no_wrap=True)
    for title in ("requests", "accepted", "429s", "wait p50", "max"):
        table.add_column(title, justify="right", no_wrap=True)
    weights = "weights " + ":".join(str(bot.weight) for bot in BOTS.values())
    for title, about, column in ((THROUGH, weights, picture.through), (ALONE, "", picture.alone)):
        table.add_section()
        table.add_row(Text(title, style="bold"), about)
        for row in _rows(column.tallies):
            table.add_row(*row)
    # A short last line, so that the ^C that a terminal echoes does not wrap.
    caption, end = Text(CAPTION, style="dim"), Text("Ctrl-C ends it", style="dim")
    return Group(_state_line(picture), table, caption, end)


def _table(first: str) -> Table:
    """Return a table that fits into 80 columns; its first column's title is given."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False, show_edge=False)
    table.add_column(first, no_wrap=True)
    return table


def _rows(tallies: Mapping[str, Tally]) -> Iterator[tuple[str | Text, ...]]:
    for name, tally in tallies.items():
        yield (
            f"  {name}",
            BOTS[name].does,
            str(tally.requests),
            str(tally.accepted),
            Text(str(tally.limited), style="red" if tally.limited else ""),
            _seconds(tally.usual_wait_s),
            _seconds(tally.longest_wait_s),
        )


def _state_line(picture: Picture) -> Text:
    key = picture.key
    line = Text(f"{picture.elapsed_s:4.0f} s   ")
    line.append(f"key paused {key.pause_s:.2f} s", style="yellow" if key.pause_s else "")
    line.append(f"   requests waiting {key.waiting:<3}   {_clock(key)}")
    return line


def plain(picture: Picture) -> str:
    """Return one line for a log."""
    key, through, alone = picture.key, picture.through.count, picture.alone.count
    return (
        f"{picture.elapsed_s:4.0f} s  accepted {through.accepted}  429s {through.limited}"
        f"  pause {key.pause_s:.2f} s  waiting {key.waiting}  {_clock(key)}"
        f"  | on its own: accepted {alone.accepted}  429s {alone.limited}"
    )


def _clock(key: DemoKey) -> str:
    if key.offset_s is None or key.error_s is None:
        return "clock not synced yet"
    return f"clock {key.offset_s * 1000:+.1f} ms \u00b1 {key.error_s * 1000:.1f} ms"


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"


def print_summary(console: Console, summary: Summary) -> None:
    """Print the contrast as a table."""
    table = _table(f"four bots, {summary.seconds:.1f} s")
    for title in (THROUGH, ALONE):
        table.add_column(title, justify="right", min_width=18)
    for row in rows(summary):
        table.add_row(*row)
    console.print(table, Text(), Text(in_a_sentence(summary)), sep="\n")


def summary_json(summary: Summary) -> str:
    """Return the contrast for programs."""
    return json.dumps(asdict(summary))


async def show(ports: Ports, seconds: float | None, *, as_json: bool) -> None:
    """Run the demo for so many seconds, or until a signal. Raises ChildError."""
    stop = stop_event(ends_on_hangup=True)
    console = Console(stderr=as_json)
    weights = {name: bot.weight for name, bot in BOTS.items()}
    async with staged(ports, {**weights, GUEST: 1}) as stage:
        print_addresses(console, stage)
        summary = await _play(stage, console, partial(_until_end, stop, seconds, stage))
    if as_json:
        click.echo(summary_json(summary))
    else:
        print_summary(console, summary)


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
            view.update(live(await scene.picture()), refresh=True)
            await scene.system.sleep(_LIVE_S)


async def _show_lines(scene: Scene, console: Console) -> None:
    for number in itertools.count(1):
        # Counted from the start, so that no second is skipped however long a line takes.
        await scene.system.sleep(scene.started + number * _PLAIN_S - scene.system.now())
        line = plain(await scene.picture())
        console.print(line, markup=False, highlight=False, soft_wrap=True)
