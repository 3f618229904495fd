"""What the live page costs the browser that has it open: scripts/bench page_cost.

A headless Chromium shows ten exchanges and fifty bots, each of which uses two of them; 600 requests a second
end. Told are the milliseconds a second that the page's thread spends in scripts, in layout and styles, and in
all, as Chromium's own metrics count them.
"""

import argparse
import asyncio
import os

from bench.pages import machine, table
from rig.chromium import Page, new_page, running_chromium
from rig.page_states import STATES, Feed, half_a_second, running_feed
from rig.station import running_station
from rig.upstream import running_upstream
from sealgate.machine.system import System

NAMES = ("ScriptDuration", "LayoutDuration", "RecalcStyleDuration", "TaskDuration")
HEAD = ("width", "scripts ms/s", "layout ms/s", "styles ms/s", "in all ms/s")


async def metrics(page: Page) -> dict[str, float]:
    told = await page.call("Performance.getMetrics")
    return {one["name"]: one["value"] for one in told["metrics"]}


async def measure(page: Page, seconds: float) -> list[str]:
    before = await metrics(page)
    await asyncio.sleep(seconds)
    after = await metrics(page)
    elapsed = after["Timestamp"] - before["Timestamp"]
    return [f"{(after[name] - before[name]) / elapsed * 1000:.1f}" for name in NAMES]


async def work(feed: Feed) -> None:
    while True:
        feed.live(half_a_second(feed.status(), System().now()))
        await asyncio.sleep(0.5)


async def main(seconds: float, warm_s: float) -> None:
    async with running_upstream() as upstream, running_station(upstream) as station:
        with running_chromium() as chromium:
            async with running_feed(station) as feed, new_page(chromium) as page:
                feed.change, words = STATES["fifty bots"]
                working = asyncio.create_task(work(feed))
                await page.show(1280)
                await page.open(feed.url)
                await page.call("Performance.enable")
                await page.until(f"document.body.innerText.includes({words!r})")
                await asyncio.sleep(warm_s)  # the charts fill
                rows = []
                for width in (1280, 390):
                    await page.show(width)
                    await asyncio.sleep(2)
                    rows.append([str(width), *await measure(page, seconds)])
                working.cancel()
    print(f"{machine()} Load average {os.getloadavg()[0]:.1f}.\n\n{table(HEAD, rows)}\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="What the live page costs a browser.")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--warm", type=float, default=60.0, help="how many seconds the charts fill before")
    options = parser.parse_args()
    asyncio.run(main(options.seconds, options.warm))
