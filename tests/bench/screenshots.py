"""The pictures of docs/observing.md: the demo runs, and a headless Chromium looks at its live page."""

import argparse
import asyncio
import json
from pathlib import Path

from bench.pages import DOCS
from rig.chromium import Page, running_chromium
from rig.program import running_program

WAYS = [(width, scheme) for width in (1280, 390) for scheme in ("light", "dark")]


async def take(page: Page, folder: Path) -> None:
    for width, scheme in WAYS:
        await page.show(width, scheme)
        await asyncio.sleep(1.2)
        (folder / f"observing-{width}-{scheme}.png").write_bytes(await page.picture())


async def main(seconds: float, folder: Path) -> None:
    async with running_program("demo") as demo, running_chromium() as page:
        line = await demo.line("live page")
        url = line.split()[-1]
        await page.show(*WAYS[0])
        await page.open(url)
        await asyncio.sleep(seconds)
        await take(page, folder)
        if page.said:
            print(json.dumps(page.said, indent=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Take screenshots of the live page.")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the demo runs before")
    parser.add_argument("--folder", type=Path, default=DOCS)
    options = parser.parse_args()
    asyncio.run(main(options.seconds, options.folder))
