"""A real browser loads the live page: no error, nothing from elsewhere, and the values change."""

import pytest

from rig.admin import Admin, running_admin
from rig.bot import request
from rig.chromium import Page
from rig.page_states import STATES, running_feed
from rig.station import Station
from rig.upstream import say
from rig.wire import reply
from sealgate.observe.metrics import Metrics

pytestmark = pytest.mark.needs("chromium")

TEXT = "document.body.innerText"


def says(text: str) -> str:
    return f"{TEXT}.includes({text!r})"


async def test_from_empty_to_an_error_with_its_advice(station: Station, admin: Admin, page: Page) -> None:
    assert await page.read(says("No bot has sent a request yet"))
    assert await page.read(says("No bot has met an error or a refusal since the start"))
    station.upstream.answers.append(say(reply(b"401 Unauthorized", b'{"detail": "Invalid HMAC signature"}')))
    await station.ask(request())
    await page.until(says("most likely the secret belongs to another key"))
    await page.until(says("1 in "))
    assert not await page.read(says("No bot has sent a request yet"))
    assert await page.read("document.querySelectorAll('canvas').length") == 3
    assert await page.read("document.querySelector('#errors a').getAttribute('href')") == (
        "errors#signature_invalid"
    )
    assert page.said == []
    own = f"http://127.0.0.1:{admin.port}/"
    assert [url for url in page.requested if not url.startswith(own)] == []
    assert len(page.requested) > 10


async def test_what_a_gateway_says_cannot_become_markup(station: Station, page: Page) -> None:
    evil = b"X-Gateway-Request-Id: <img-src=x>"
    await station.ask(request(b"GET", b"/v1/trade/%3Cscript%3E", evil))
    await page.until(says(" in "))
    assert await page.read("document.querySelectorAll('main img, main script').length") == 0


async def test_freezing(station: Station, page: Page) -> None:
    await page.read("document.querySelector('#freeze').click()")
    await page.until("document.querySelector('#state').textContent === 'frozen'")
    await station.ask(request())
    await page.read("document.querySelector('#freeze').click()")
    await page.until(says("1 in "))


async def test_a_gateway_that_goes_and_comes_back(station: Station, blank: Page) -> None:
    status = station.gateway.status
    async with running_admin(status, Metrics(status)) as admin:
        await blank.open(f"http://127.0.0.1:{admin.port}/")
        await blank.until("document.querySelector('#state')?.textContent === 'ready'")
    await blank.until("document.querySelector('#state').textContent === 'reconnecting'")
    assert await blank.read(says("The gateway does not answer"))
    async with running_admin(status, Metrics(status), port=admin.port):
        await blank.until("document.querySelector('#state').textContent === 'ready'")


async def test_each_state_says_so_and_fits(station: Station, blank: Page) -> None:
    async with running_feed(station) as feed:
        await blank.open(feed.url)
        for feed.change, words in STATES.values():
            await blank.until(says(words))
            for width in (1280, 390):
                await blank.show(width)
                await blank.until(f"document.documentElement.scrollWidth <= {width}")
        assert blank.said == []


async def test_a_stranger_is_shown_with_its_address_and_program(station: Station, page: Page) -> None:
    program = b"User-Agent: evil/1 <img src=x onerror=alert(1)>"
    reply_here = await station.ask(
        request(b"GET", b"/v1/trade/order", program, b"Origin: http://evil.example")
    )
    assert reply_here.reason == "browser_refused"
    await page.until(says("the last: evil/1 <img src=x onerror=alert(1)>, 127.0.0.1"))
    assert await page.read(says("refused by the gateway: stranger, any request"))
    assert await page.read("document.querySelectorAll('img[onerror]').length") == 0
    await page.read("document.querySelector('#inspector summary').click()")
    await page.until("document.querySelector('#requests td .dim')?.textContent.startsWith('evil/1 <img')")


async def test_open_streams_have_a_section_and_without_any_there_is_none(
    station: Station, blank: Page
) -> None:
    async with running_feed(station) as feed:
        await blank.open(feed.url)
        await blank.until(
            f"{says('No bot has met an error')} && document.querySelector('#streams-card').hidden"
        )
        feed.change, _ = STATES["streams"]
        all_but_age = "#streams tbody tr:last-child td:not(:nth-child(3))"
        cells = f"[...document.querySelectorAll('{all_but_age}')]"
        last = "grid,stream.example.com/v5/private,25.2 /s,not logged in"
        await blank.until(f"{cells}.map((cell) => cell.textContent).join() === '{last}'")
        feed.change, _ = STATES["ready"]
        await blank.until("document.querySelector('#streams-card').hidden")


async def test_while_no_limit_is_known_the_chart_shows_what_is_sent(station: Station, page: Page) -> None:
    assert await page.read(says("Nothing was sent in the last five minutes"))
    await station.ask(request())
    await page.until(f"{says('sent per second')} && !{says('Nothing was sent in the last')}")


async def test_it_fits(page: Page) -> None:
    for width in (1280, 390):
        for scheme in ("light", "dark"):
            await page.show(width, scheme)
            await page.until(f"document.documentElement.scrollWidth <= {width}")
            ground = await page.read("getComputedStyle(document.body).backgroundColor")
            assert (ground == "rgb(16, 21, 28)") == (scheme == "dark")
