"""docs/status.md: its tables have the fields of a real document, and no others."""

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

from rig.bot import request
from rig.page_states import STATES, running_feed
from rig.station import Station
from rig.upstream import say
from rig.wire import PATIENCE_S, let_pass, reply
from sealgate.limits.status import SharingStatus
from sealgate.observe.status import Status

PAGE = (Path(__file__).parents[2] / "docs" / "status.md").read_text()
TOLD = ("halted", "doubts", "policies", "streams", "many pools")
# What is described where another field of its shape is, and mappings with names as keys.
ALIKE = {"open_pools": "pools"}
NAMES = {"addresses", "bot_urls", "by_exchange", "reloads", "waiting", "waiting_by_bot", "to_bot"}
NAMES |= {"to_exchange", "words"}
FAILED = say(reply(b"500 Internal Server Error", b"{}"))


def tables() -> dict[str, set[str]]:
    """Return the fields that each part of the page names."""
    parts = re.split(r"^##+ (.+)$", PAGE, flags=re.MULTILINE)
    rows = {
        name: re.findall(r"^\| (`.+?`) \|", text, re.MULTILINE)
        for name, text in zip(parts[1::2], parts[2::2], strict=True)
    }
    return {name: set(re.findall(r"`([^`]+)`", " ".join(cells))) for name, cells in rows.items() if cells}


def fields(part: str, value: object) -> Iterator[tuple[str, str]]:
    """Yield each field with the part of the page that describes it."""
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, dict):
            for name, inner in one.items():
                yield part, name
                if name not in NAMES and not (part == "policies" and name == "refusals"):
                    yield from fields(ALIKE.get(str(name), str(name)), inner)


def everything(status: Status) -> Status:
    """Return a status in which each list has an entry."""
    told: Status = reduce(lambda changed, name: STATES[name][0](changed), TOLD, status)
    (one,) = told.exchanges
    key = replace(
        one.keys[0], sharing=SharingStatus(2, is_leader=True, degraded=None), waiting_by_bot={"grid": 1}
    )
    return replace(told, exchanges=(replace(one, keys=(key,)),))


async def test_every_field_is_documented_and_exists(station: Station) -> None:
    async with running_feed(station) as feed:
        feed.change = everything
        station.upstream.answers.extend([FAILED] * 12)
        for _ in range(3):
            await station.ask(request(b"POST", b"/v1/trade/order", body=b"{}"))
        await station.ask(request(b"GET", b"/v1/trade/symbols/list", b"Origin: https://example.com"))
        document: dict[str, Any] = {}
        async with asyncio.timeout(PATIENCE_S):
            while not all(map(document.get, ("errors", "refusals", "failing"))):
                await let_pass(0.05)
                document = json.loads((await feed.admin.ask("/status.json")).body)
        listed = json.loads((await feed.admin.ask("/requests.json")).body)
    found: dict[str, set[str]] = {}
    for part, name in (*fields("top level", document), *fields("`/requests.json`", listed["requests"])):
        found.setdefault(part, set()).add(name)
    documented = tables()
    del documented["`/events`"]  # of the charts, for the page
    assert documented == found
