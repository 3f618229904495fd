"""A gateway before two exchanges: readiness of each, and that each metric and log line says which."""

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from cli.test_service_manager import Manager
from rig.admin import Admin, running_admin
from rig.bot import request
from rig.chromium import Page
from rig.program import BASE
from rig.served import running_served
from rig.two_exchanges import GRID, Two, two_exchanges
from rig.upstream import Upstream, say
from rig.wire import reply
from sealgate.keys.key_health import KeyFault
from sealgate.observe.live import Live
from sealgate.observe.metrics import Metrics

ORDER = b"/v1/trade/order"
# Product.md names these as the only ones that are about no exchange; the last two are about this machine.
OF_NONE = {
    "build_info",
    "reloads",
    "connections",
    "inflight",
    "journal_failing",
    "tls_cert_expires_timestamp",
}


@pytest.fixture
async def two() -> AsyncIterator[Two]:
    async with two_exchanges() as running:
        yield running


@pytest.fixture
async def admin(two: Two) -> AsyncIterator[Admin]:
    status, system = two.gateway.status, two.gateway.system
    metrics, live = Metrics(status), Live(status, system)
    two.gateway.reporter.add(metrics)
    two.gateway.reporter.add(live)
    async with running_admin(status, metrics, live) as running:
        yield running


async def text(admin: Admin, path: str) -> tuple[int, str]:
    answer = await admin.ask(path)
    return answer.status, answer.body.decode()


async def test_one_that_is_ready_is_enough_and_each_can_be_asked_about(two: Two, admin: Admin) -> None:
    assert await text(admin, "/-/ready") == (200, "ready\n")
    breaker = two.gateway.generation.backends["perp"].exchange.live_keys["swap"].breaker
    breaker.state = breaker.state.refused(KeyFault.INVALID, 0.0, two.gateway.system.now())
    reason = "the key swap is disabled: the exchange calls it invalid"
    assert await text(admin, "/-/ready") == (200, f"ready\nnote: perp is not ready: {reason}\n")
    assert await text(admin, "/-/ready?exchange=spot") == (200, "ready\n")
    assert await text(admin, "/-/ready?exchange=perp") == (503, f"not ready: {reason}\n")
    assert await text(admin, "/-/ready?exchange=swap") == (404, "no such exchange; known: spot, perp\n")


async def test_each_metric_says_which_exchange(two: Two, admin: Admin) -> None:
    two.perp.answers.append(say(reply(b"429 Too Many Requests", b"{}", b"Retry-After: 0.01")))
    for path in (b"/spot", b"/perp", b"/nowhere"):
        await two.ask(request(b"POST", path + ORDER, GRID, body=b"{}"))
    two.gateway.reporter.flush()
    _, exposition = await text(admin, "/metrics")
    for family in text_string_to_metric_families(exposition):
        name = family.name.removeprefix("sealgate_").removesuffix("_seconds")
        for sample in family.samples:
            assert ("exchange" in sample.labels) == (name not in OF_NONE), sample.name
    requests = 'sealgate_requests_total{bot="grid",exchange="%s"'
    assert all(requests % name in exposition for name in ("spot", "perp", ""))
    assert 'sealgate_rate_limited_total{exchange="perp",key="swap",origin="upstream"} 1.0' in exposition
    assert 'sealgate_rate_limited_total{exchange="spot",key="main",origin="upstream"} 0.0' in exposition


async def test_what_the_log_tells_of_keys_and_clocks_says_which_exchange(two: Two) -> None:
    with capture_logs() as logs:
        two.perp.skew_ms = 3_600_000
        two.gateway.generation.backends["perp"].exchange.clock.due.set()
        await two.until(lambda: any(one["event"] == "clock_stepped" for one in logs))
        two.perp.otherwise = say(reply(b"401 Unauthorized", b'{"detail": "Invalid HMAC signature"}'))
        for _ in range(3):
            await two.ask(request(b"POST", b"/perp" + ORDER, GRID, body=b"{}"))
    told = {one["event"]: one.get("exchange") for one in logs}
    assert {name: told[name] for name in ("clock_stepped", "signatures_refused")} == {
        "clock_stepped": "perp",
        "signatures_refused": "perp",
    }


async def test_the_status_has_each_exchange_and_where_bots_reach_it(two: Two, admin: Admin) -> None:
    _, document = await text(admin, "/status.json")
    status = json.loads(document)
    address = two.gateway.address
    assert [(one["name"], one["base_url"], one["urls"], one["keys"]) for one in status["exchanges"]] == [
        ("spot", two.spot.base_url, [f"http://{address}/spot"], ["main"]),
        ("perp", two.perp.base_url, [f"http://{address}/perp"], ["swap"]),
    ]
    assert status["base_url"] == f"{two.spot.base_url} {two.perp.base_url}"
    assert [(key["alias"], key["exchange"]) for key in status["keys"]] == [("main", "spot"), ("swap", "perp")]


FILE = """
clock.grace = 0.1
[exchanges.spot]
base_url = "%s"
[exchanges.perp]
base_url = "http://127.0.0.1:9"
[keys.main]
exchanges = ["spot", "perp"]
"""


async def test_a_start_tells_of_each_exchange(upstream: Upstream, tmp_path: Path) -> None:
    (tmp_path / "sealgate.toml").write_text(FILE % upstream.base_url)
    address = str(tmp_path / "notify")
    environ = {name: value for name, value in BASE.items() if name != "SEALGATE_BASE_URL"}
    environ["NOTIFY_SOCKET"] = address
    with contextlib.closing(Manager(address)) as manager:
        async with running_served(environ, tmp_path) as served:
            await served.program.line('"not_ready"')
            (unready,), (ready,) = served.events("not_ready"), served.events("ready")
            assert (unready["exchange"], ready["exchange"]) == ("perp", "spot")
            assert unready["reasons"].startswith("clock not synchronized: cannot connect to 127.0.0.1:9")
            serving = {one["exchange"]: (one["base_url"], one["bots"]) for one in served.events("serving")}
            assert serving == {
                "spot": (upstream.base_url, f"{served.bots}/spot"),
                "perp": ("http://127.0.0.1:9", f"{served.bots}/perp"),
            }
            assert (await served.ask_admin("/-/ready")).status == 200
            errors = (await served.ask_admin("/errors")).body.decode()
            assert all(f'<tr id="{name}/rate_limited"><td><code>rate_limited' in errors for name in serving)
            await manager.hears("STATUS=ready, but perp is not ready: clock not synchronized")


@pytest.mark.needs("chromium")
async def test_the_page_shows_every_exchange_at_a_glance_and_one_in_full(
    two: Two, admin: Admin, blank: Page
) -> None:
    for path in (b"/spot", b"/perp", b"/perp"):
        await two.ask(request(b"POST", path + ORDER, GRID, body=b"{}"))
    two.gateway.reporter.flush()
    await blank.open(f"http://127.0.0.1:{admin.port}/")
    keys = (
        "[...document.querySelectorAll('.key:not([hidden]) h2 span:first-child')].map((one) => one.innerText)"
    )
    await blank.until(f"{keys}.join() === 'Key main'")
    assert await blank.read("document.querySelectorAll('#exchanges tbody tr').length") == 2
    assert await blank.read("document.querySelector('#chosen').innerText.startsWith('spot')")
    await blank.read("document.querySelectorAll('#exchanges tbody tr')[1].click()")
    await blank.until(f"{keys}.join() === 'Key swap'")
    assert await blank.read("location.hash") == "#perp"
    await blank.until("document.querySelector('#tiles').innerText.includes('2 in ')")
    # A frozen page shows the other one as it was.
    await blank.read("document.querySelector('#freeze').click()")
    await blank.read("document.querySelector('#exchanges a').click()")
    await blank.until(f"{keys}.join() === 'Key main'")
    await blank.read("document.querySelector('#freeze').click()")
    await blank.read("document.querySelector('#inspector summary').click()")
    await blank.until("document.querySelectorAll('#requests tbody tr').length === 3")
    await blank.read(
        "(box => { box.value = 'perp'; box.dispatchEvent(new Event('change')); })"
        "(document.querySelector('#of-exchange'))"
    )
    assert await blank.read("document.querySelectorAll('#requests tbody tr').length") == 2
    for width in (1280, 390):
        await blank.show(width)
        await blank.until(f"document.documentElement.scrollWidth <= {width}")
    assert blank.said == []
