"""The pictures of docs/live-page.md: the demo runs, and a headless Chromium looks at its live page.

With `--states FOLDER` each other state of the page is shown and taken, to be looked at before a release.
"""

import argparse
import asyncio
import json
from pathlib import Path

from bench.pages import DOCS
from rig.bot import request
from rig.chromium import Page, new_page, running_chromium
from rig.page_states import STATES, Feed, half_a_second, running_feed
from rig.program import running_program
from rig.station import Station, running_station
from rig.upstream import Upstream, running_upstream, say
from rig.wire import reply
from sealgate.machine.system import System

WAYS = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]
KEPT = [(1280, "light"), (390, "dark")]  # what the docs show
_SETTLED_S = 1.2  # two pictures of the stream
_READ, _ORDER = request(), request(b"POST", b"/v1/trade/order", body=b"{}")
_UNSIGNED = reply(b"401 Unauthorized", b'{"detail": "Invalid HMAC signature"}')


async def take(page: Page, folder: Path, name: str, ways: list[tuple[int, str]]) -> None:
    for width, scheme in ways:
        await page.show(width, scheme)
        await asyncio.sleep(_SETTLED_S)
        (folder / f"{name}-{width}-{scheme}.png").write_bytes(await page.picture())


async def take_demo(seconds: float, folder: Path, chromium: int) -> None:
    async with running_program("demo") as demo, new_page(chromium) as page:
        line = await demo.line("live page")
        await page.show(*WAYS[0])
        await page.open(line.split()[-1])
        await asyncio.sleep(seconds)
        await take(page, folder, "live-page", KEPT)
        tell(page)


def tell(page: Page) -> None:
    if page.said:
        print(json.dumps(page.said, indent=1))


async def take_states(folder: Path, chromium: int) -> None:
    async with (
        running_upstream() as upstream,
        running_station(upstream, limits={"known": ["20/1s"]}) as station,
        new_page(chromium) as page,
    ):
        async with running_feed(station) as feed:
            await page.show(*WAYS[0])
            await page.open(feed.url)
            await asyncio.sleep(_SETTLED_S)
            await take(page, folder, "empty", WAYS)
            await work(station, 8.0)
            for name, (change, _) in STATES.items():
                feed.change = change
                if name == "fifty bots":
                    feed.live(half_a_second(feed.status(), System().now()))
                await take(page, folder, name.replace(" ", "-"), WAYS)
            await take_failing(page, folder, feed, station)
        await take(page, folder, "reconnecting", WAYS)
        tell(page)


async def work(station: Station, seconds: float) -> None:
    """Send for so long, and let one be refused."""
    station.upstream.answers.append(say(_UNSIGNED))
    ends_at = asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < ends_at:
        await asyncio.gather(station.ask(_READ), station.ask(_ORDER))


async def take_failing(page: Page, folder: Path, feed: Feed, station: Station) -> None:
    feed.change, _ = STATES["ready"]
    shut(station.upstream)
    await station.ask(_READ)
    await take(page, folder, "failing", WAYS)


def shut(upstream: Upstream) -> None:
    upstream.door.shut()
    upstream.cut_all()


async def main(seconds: float, folder: Path, states: Path | None) -> None:
    with running_chromium() as chromium:
        if states is None:
            await take_demo(seconds, folder, chromium)
        else:
            await take_states(states, chromium)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Take screenshots of the live page.")
    parser.add_argument("--seconds", type=float, default=150.0, help="how long the demo runs before")
    parser.add_argument("--folder", type=Path, default=DOCS)
    parser.add_argument(
        "--states",
        type=Path,
        metavar="FOLDER",
        help="take the page's states instead, into this folder that is there",
    )
    options = parser.parse_args()
    asyncio.run(main(options.seconds, options.folder, options.states))
