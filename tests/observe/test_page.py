"""A real browser loads the live page: no error, nothing from elsewhere, and the values change."""

from typing import Any

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
        last = "grid,stream.example.com/v5/private,25.2/s,not logged in"
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


# Each text whose contrast with what is behind it is too low for its size (WCAG 2.2, 1.4.3).
TOO_FAINT = """(() => {
  const channels = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (value) => ((value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const luminance = ([r, g, b]) => 0.2126 * light(r) + 0.7152 * light(g) + 0.0722 * light(b);
  const ratio = (one, other) => {
    const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const ground = channels(getComputedStyle(at).backgroundColor);
      if (ground.length === 3) return ground;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const element of document.querySelectorAll('body *')) {
    const parts = [...element.childNodes].filter((one) => one.nodeType === 3);
    const text = parts.map((one) => one.data.trim()).join('');
    if (!text || !element.checkVisibility() || element.closest('.unseen, svg')) continue;
    const style = getComputedStyle(element);
    const size = parseFloat(style.fontSize);
    const least = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
    const measured = ratio(channels(style.color), behind(element));
    const isFaint = measured < least || style.opacity < 1;
    if (isFaint) found.push(`${measured.toFixed(2)} ${element.className}: ${text}`);
  }
  return found;
})()"""

# Each part that the keyboard reaches without an outline that can be seen (WCAG 2.2, 2.4.7 and 1.4.11).
UNSEEN_FOCUS = """(() => {
  const found = [];
  const all = 'a[href], button, select, summary, [tabindex="0"]';
  for (const element of document.querySelectorAll(all)) {
    if (!element.checkVisibility()) continue;
    element.focus({focusVisible: true, preventScroll: true});
    const { outlineStyle, outlineWidth } = getComputedStyle(element);
    if (outlineStyle !== 'solid' || parseFloat(outlineWidth) < 2) found.push(element.outerHTML);
  }
  document.activeElement.blur();
  return found;
})()"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_each_text_can_be_read_and_each_focus_be_seen(
    station: Station, blank: Page, scheme: str
) -> None:
    station.upstream.answers.append(say(reply(b"401 Unauthorized", b'{"detail": "Invalid HMAC signature"}')))
    async with running_feed(station) as feed:
        await blank.show(1280, scheme)
        await blank.open(feed.url)
        await blank.call("Emulation.setFocusEmulationEnabled", enabled=True)
        await station.ask(request(b"POST", b"/v1/trade/order", body=b"{}"))
        await blank.until("!document.querySelector('#last-card').hidden")
        await blank.read("document.querySelector('#inspector summary').click()")
        await blank.until("document.querySelectorAll('#requests tbody tr').length > 0")
        for feed.change, words in STATES.values():
            await blank.until(says(words))
            assert await blank.read(TOO_FAINT) == []
            assert await blank.read(UNSEEN_FOCUS) == []


async def test_each_part_that_the_keyboard_reaches_has_a_name(station: Station, blank: Page) -> None:
    async with running_feed(station) as feed:
        await blank.open(feed.url)
        await station.ask(request(b"POST", b"/v1/trade/order", body=b"{}"))
        feed.change, words = STATES["fifty bots"]
        await blank.until(says(words))
        await blank.call("Accessibility.enable")
        nodes = (await blank.call("Accessibility.getFullAXTree"))["nodes"]

    def is_reached(node: dict[str, Any]) -> bool:
        return any(one["name"] == "focusable" and one["value"]["value"] for one in node.get("properties", []))

    reached = [node for node in nodes if not node["ignored"] and is_reached(node)]
    assert len(reached) > 10
    assert [node for node in reached if not node["name"]["value"]] == []
    images = [node for node in nodes if not node["ignored"] and node["role"]["value"] == "image"]
    assert len(images) >= 3  # the charts
    assert [image for image in images if not image["name"]["value"]] == []


async def test_a_screen_reader_is_told_of_a_notice_once(station: Station, blank: Page) -> None:
    async with running_feed(station) as feed:
        await blank.open(feed.url)
        feed.change, _ = STATES["a ban"]
        await blank.until("document.querySelector('#news').textContent.includes('banned by the exchange')")
        await blank.read(
            "new MutationObserver(() => (window.again = true)).observe("
            "document.querySelector('#news'), {childList: true, characterData: true, subtree: true})"
        )
        feed.change, _ = STATES["a ban for less"]
        await blank.until(
            "document.querySelector('#notices').textContent.includes('nothing is sent for 13 min')"
        )
        assert not await blank.read("window.again")


async def test_the_title_names_the_exchange_and_its_state(station: Station, blank: Page) -> None:
    async with running_feed(station) as feed:
        await blank.open(feed.url)
        await blank.until("document.title === 'service: ready · Sealgate'")
        icon = "document.querySelector('#icon').getAttribute('href')"
        assert await blank.read(icon) == "page/icon.svg"
        feed.change, _ = STATES["ten exchanges"]
        await blank.read("location.hash = 'okx'")
        await blank.until("document.title === 'okx: key refused (3 others not ready) · Sealgate'")
        assert await blank.read(icon) == "page/icon-bad.svg"
    await blank.until("document.title.startsWith('okx: reconnecting')")


async def test_a_text_that_is_selected_stays_and_so_does_the_focus(station: Station, blank: Page) -> None:
    async with running_feed(station) as feed:
        await blank.open(feed.url)
        feed.change, _ = STATES["doubts"]
        await blank.until("!!document.querySelector('#doubts .do code')")
        await blank.read(
            "window.row = document.querySelector('#doubts .do'); getSelection().selectAllChildren(row)"
        )
        feed.change, _ = STATES["ready"]
        await blank.until("document.querySelector('#doubts-card').hidden")
        feed.change, _ = STATES["fifty bots"]
        await blank.until("!document.querySelector('#doubts-card').hidden")
        assert await blank.read("row.isConnected")
        await blank.read("document.querySelectorAll('#exchanges a')[2].focus()")
        await blank.until("document.querySelectorAll('#exchanges tbody tr').length === 10")
        assert await blank.read("document.activeElement.textContent") == "binanceusdm"


async def test_a_bot_chooses_its_latest_requests(station: Station, page: Page) -> None:
    await station.ask(request(b"POST", b"/v1/trade/order", body=b"{}"))
    await page.until("!!document.querySelector('#last button')")
    await page.read("document.querySelector('#last button').click()")
    await page.until("document.querySelectorAll('#requests tbody tr').length === 1")
    assert await page.read("document.querySelector('#of-bot').value") == "local"
