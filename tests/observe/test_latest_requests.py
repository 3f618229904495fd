"""The inspector: the latest requests, as the admin address has them, and as the page shows them."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from rig.admin import Client
from rig.bot import request
from rig.chromium import Page
from rig.station import ENVIRON, Station, running_station
from rig.upstream import Upstream, say

GRID, MAKER = (b"Authorization: Bearer token-of-%b" % name for name in (b"grid", b"maker"))
READ = (b"GET", b"/v1/trade/symbols/list")
LOST = say(b"")


@pytest.fixture
async def station(upstream: Upstream) -> AsyncIterator[Station]:
    bots = {"grid": {"token": "env:GRID"}, "maker": {"token": "env:MAKER"}}
    environ = {**ENVIRON, "GRID": "token-of-grid", "MAKER": "token-of-maker"}
    async with running_station(upstream, environ, bots=bots) as running:
        yield running


async def requests(station: Station, client: Client) -> list[dict[str, Any]]:
    station.gateway.reporter.flush()
    answer = await client.get("/requests.json")
    assert answer.status == 200
    rows: list[dict[str, Any]] = (await answer.json())["requests"]
    return rows


async def test_a_stranger_is_known_by_its_address_and_program(station: Station, client: Client) -> None:
    """What it calls itself is anybody's text: one line, not long, and nothing that a terminal acts on."""
    wrong = b"Authorization: Bearer nonsense"
    programs = {
        b"curl/8.5.0": "curl/8.5.0",
        b"a\tb\xe2\x80\xaec": "a b???c",
        b"x" * 5000: "x" * 100 + "…",
        b"": "",
        b"bot token=canary-1 Bearer canary-2": "bot token=*** Bearer ***",
    }
    for program in programs:
        assert (await station.ask(request(*READ, wrong, b"User-Agent: " + program))).status == 401
    rows = await requests(station, client)
    refused = [row for row in reversed(rows) if row["reason"] == "bot_unauthenticated"]
    told = [(row["client"], row["user_agent"]) for row in refused]
    assert told == [("127.0.0.1", text) for text in programs.values()]
    [refusals] = (await (await client.get("/status.json")).json())["refusals"]
    latest = "the last: bot token=*** Bearer ***, 127.0.0.1"
    words = f"stranger: 5 requests refused by the gateway (bot_unauthenticated; {latest})"
    assert refusals["words"] == words


async def test_no_token_query_or_body_is_in_it(station: Station, client: Client) -> None:
    target = b"/v1/trade/user/0xcanary/openOrders?canary=1"
    await station.ask(request(b"GET", target, GRID))
    await station.ask(request(b"POST", b"/v1/trade/order", GRID, body=b'{"canary": 1}'))
    station.gateway.reporter.flush()
    body = await (await client.get("/requests.json")).read()
    assert len(json.loads(body)["requests"]) == 2
    assert b"canary" not in body
    assert b"token-of" not in body


def lines(count: int) -> str:
    return f"document.querySelectorAll('#requests tbody tr').length === {count}"


KEYS = {"Enter": 13, "Tab": 9, "ArrowDown": 40, "Home": 36}


async def press(page: Page, *keys: str) -> None:
    """Press keys of a keyboard."""
    for key in keys:
        text = "\r" if key == "Enter" else ""
        values = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS[key]}
        await page.call("Input.dispatchKeyEvent", type="keyDown", text=text, **values)
        await page.call("Input.dispatchKeyEvent", type="keyUp", **values)


async def test_the_page_lists_them_filters_and_holds_them_by_keyboard_alone(
    station: Station, page: Page
) -> None:
    asked = "/requests.json"
    await station.ask(request(*READ, GRID))
    await station.ask(request(*READ, MAKER))
    await station.ask(request(*READ))
    assert not any(asked in url for url in page.requested), "a list that nobody opens costs nothing"
    await page.read("document.querySelector('#inspector summary').focus()")
    await press(page, "Enter")
    await page.until(lines(3))
    await press(page, "Tab")
    assert await page.read("document.activeElement.id") == "of-bot"
    await press(page, "ArrowDown", "ArrowDown")
    await page.until(lines(1))
    assert await page.read("document.querySelector('#requests').innerText.includes('GET /symbols/list')")
    await press(page, "Home")
    await page.until(lines(3))
    await press(page, "Tab")
    await press(page, "ArrowDown", "ArrowDown", "ArrowDown")
    await page.until(lines(1))
    assert await page.read("document.querySelector('#requests').innerText.includes('bot_unauthenticated')")
    await press(page, "Home")
    await press(page, "Tab", "Tab")
    assert await page.read("document.activeElement.id") == "requests"
    await page.until("document.querySelector('#held').textContent.endsWith('frozen while you look')")
    before = sum(asked in url for url in page.requested)
    await station.ask(request(*READ, GRID))
    await page.until("document.querySelector('#tiles').innerText.includes('4 in ')")
    assert await page.read(lines(3))
    assert sum(asked in url for url in page.requested) == before
    await page.read("document.activeElement.blur()")
    await page.until(lines(4))
    assert page.said == []


async def test_one_question_at_a_time_and_an_answer_that_is_cut_does_no_harm(
    station: Station, page: Page
) -> None:
    await station.ask(request(*READ, GRID))
    await page.read("window.gateway = fetch; window.asked = []")
    await page.read("window.fetch = () => new Promise((answer) => asked.push(answer))")
    await page.read("document.querySelector('#inspector').open = true")
    await page.until("asked.length === 1")
    await page.read("document.querySelector('#inspector').dispatchEvent(new Event('toggle'))")
    assert await page.read("asked.length") == 1
    await page.read("asked[0](new Response('{'))")
    await page.until("asked.length === 2")
    await page.read("window.fetch = gateway; asked[1](new Response('', { status: 503 }))")
    await page.until(lines(1))
    assert page.said == []


async def test_the_list_fits(station: Station, page: Page) -> None:
    station.upstream.answers.append(LOST)
    await station.ask(request(b"POST", b"/v1/trade/order", GRID, body=b"{}"))
    await station.ask(request(b"GET", b"/v1/trade/order", GRID, b"X-Gateway-Deadline-Ms: nonsense"))
    await page.read("document.querySelector('#inspector').open = true")
    await page.until(lines(2))
    ends = "[...document.querySelectorAll('#requests td')].map((one) => one.getBoundingClientRect().right)"
    for width in (1280, 390):
        await page.show(width)
        await page.until(f"document.documentElement.scrollWidth <= {width}")
        assert max(await page.read(ends)) <= width
