"""The rules and the dashboard: Prometheus' own tool takes them, and they name only metrics that there are."""

import asyncio
import json
import re
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer
from prometheus_client.process_collector import ProcessCollector

from rig.admin import running_admin
from rig.bot import request
from rig.programs import path_of
from rig.prometheus import Prometheus, running_prometheus
from rig.station import Station, running_station
from rig.two_exchanges import GRID, two_exchanges
from rig.upstream import Upstream, running_upstream, say, say_and_close
from rig.wire import OK, reply
from sealgate.observe.metrics import Metrics

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "prometheus"
BOARD = json.loads((ROOT / "deploy" / "grafana" / "sealgate.json").read_text())
NAMED = re.compile(r"(?<![:\w])(?:sealgate|process)_\w+")
PARTS = re.compile(r"_(?:bucket|sum|count)$")


def queries() -> list[str]:
    """Return all that the dashboard asks for."""
    panels = [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]
    return panels + [one["expr"] for one in BOARD["annotations"]["list"]]


def documented() -> set[str]:
    return set(
        re.findall(
            r"^\| `((?:sealgate|process)_\w+)` \|", (ROOT / "docs/metrics.md").read_text(), re.MULTILINE
        )
    )


def named(text: str) -> set[str]:
    known = documented()
    return {name if name in known else PARTS.sub("", name) for name in NAMED.findall(text)}


@pytest.mark.needs("promtool")
@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "config", "prometheus.yml"),
        ("check", "rules", "recording.yml", "alerts.yml"),
        ("test", "rules", "tests.yml"),
    ],
    ids=" ".join,
)
def test_promtool_takes_it(arguments: tuple[str, ...]) -> None:
    done = subprocess.run(
        [path_of("promtool"), *arguments], cwd=FOLDER, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("file", ["recording.yml", "alerts.yml", "tests.yml"])
def test_rules_name_metrics_that_there_are(file: str) -> None:
    recorded = {"sealgate_alerts", "sealgate_recording"}
    assert named((FOLDER / file).read_text()) - recorded <= documented()


def test_the_dashboard_names_metrics_that_there_are() -> None:
    used = named(json.dumps(queries()) + json.dumps(BOARD["templating"]))
    assert used <= documented()
    assert len(used) > 15


def test_rules_use_what_is_recorded() -> None:
    recorded = set(re.findall(r"record: (\S+)", (FOLDER / "recording.yml").read_text()))
    used = set(re.findall(r"\b\w+:sealgate_\w+:\w+\b", (FOLDER / "alerts.yml").read_text()))
    assert used <= recorded


def test_each_alert_has_a_case_and_a_runbook() -> None:
    alerts = re.findall(r"- alert: (\w+)", (FOLDER / "alerts.yml").read_text())
    runbooks = re.findall(r'runbook: "docs/runbook\.md#(\w+): .+"', (FOLDER / "alerts.yml").read_text())
    assert runbooks == [name.lower() for name in alerts]
    cases = (FOLDER / "tests.yml").read_text()
    headings = re.findall(r"^### (\w+)$", (ROOT / "docs/runbook.md").read_text(), re.MULTILINE)
    assert sorted(headings) == sorted(alerts)
    for name in alerts:
        assert f"alertname: {name}}}" in cases  # it stays silent
        assert f"name: {name} fires" in cases


def test_each_panel_is_about_the_chosen_exchanges() -> None:
    """Except those of the process, which serves them all."""
    for query in queries():
        chosen = query.count('exchange=~"$exchange"')
        assert chosen == len(NAMED.findall(query)) or "process_" in query, query
    lines = [
        target for panel in BOARD["panels"] if panel["type"] == "timeseries" for target in panel["targets"]
    ]
    assert all("{{exchange}}" in one["legendFormat"] or "process_" in one["expr"] for one in lines)


def test_the_dashboard_can_be_provisioned() -> None:
    assert BOARD["uid"] == "sealgate-gateway"
    sources = {json.dumps(panel["datasource"]) for panel in BOARD["panels"]}
    assert sources == {json.dumps({"type": "prometheus", "uid": "${source}"})}
    numbers = [panel["id"] for panel in BOARD["panels"]]
    assert len(set(numbers)) == len(numbers)
    assert BOARD["templating"]["list"][0]["type"] == "datasource"


# With a real Prometheus.

ORDER = request(b"POST", b"/v1/trade/order", body=b"{}")
VARIABLES = {
    "$__rate_interval": "5s",
    "$__interval": "5s",
    "$instance": ".*",
    "$exchange": ".*",
    "$key": ".*",
}


def filled(query: str) -> str:
    for name, value in VARIABLES.items():
        query = query.replace(name, value)
    return query


def _checked(exposition: bytes) -> "subprocess.CompletedProcess[bytes]":
    command = [path_of("promtool"), "check", "metrics"]
    return subprocess.run(
        command, input=exposition, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )


async def _echo(request: web.Request) -> web.WebSocketResponse:
    stream = web.WebSocketResponse()
    await stream.prepare(request)
    async for message in stream:
        await stream.send_str(message.data)
    return stream


async def _use_stream(station: Station) -> None:
    """Open a stream and log in; what echoes it confirms it."""
    url = f"http://{station.gateway.address}/stream.example.com/v1/stream"
    async with ClientSession() as client, client.ws_connect(url) as stream:
        await stream.send_json({"op": "login", "args": {}, "success": True})
        assert (await stream.receive_json())["success"]


@asynccontextmanager
async def scraped_station() -> AsyncIterator[tuple[Upstream, Station, Metrics, Prometheus]]:
    """Run a gateway whose metrics a real Prometheus has read once."""
    app = web.Application()
    app.router.add_get("/v1/stream", _echo)
    async with (
        running_upstream() as upstream,
        TestServer(app) as streams,
        running_station(upstream, upstream={"streams": f"ws://127.0.0.1:{streams.port}"}) as station,
    ):
        metrics = Metrics(station.gateway.status, ProcessCollector(registry=None))
        station.gateway.reporter.add(metrics)
        async with (
            running_admin(station.gateway.status, metrics) as admin,
            running_prometheus(admin.port) as prometheus,
        ):
            await prometheus.until("sealgate_build_info")
            yield upstream, station, metrics, prometheus


@pytest.mark.needs("prometheus", "promtool")
async def test_a_real_prometheus_answers_every_query_of_the_dashboard() -> None:
    async with scraped_station() as (upstream, station, metrics, prometheus):
        limited = say(reply(b"429 Too Many Requests", b"{}", b"Retry-After: 0.05"))
        for _ in range(2):  # a rate needs a first value and a later one
            upstream.answers.extend([limited, say(OK), say_and_close(), say(OK)])
            for raw in (ORDER, request(), request(b"GET", b"/v1/wallet")):
                await station.ask(raw)
            await _use_stream(station)
            await prometheus.until("sealgate_retries_total")
        checked = await asyncio.to_thread(_checked, metrics.snapshot()())
        assert checked.returncode == 0, checked.stdout
        for query in queries():
            assert await prometheus.until(filled(query)), query
        assert await prometheus.ask('up{job="sealgate"} == 1')
        assert await prometheus.ask('process_resident_memory_bytes{job="sealgate"} > 0')


@pytest.mark.needs("prometheus")
async def test_a_real_prometheus_tells_two_exchanges_apart() -> None:
    """The table has a row for each; with one chosen, no panel shows the other."""
    (table,) = [panel for panel in BOARD["panels"] if panel["type"] == "table"]
    columns = [target["expr"] for target in table["targets"] if "sealgate_streams" not in target["expr"]]
    async with two_exchanges(limits={"known": ["100/1s"]}) as two:
        metrics = Metrics(two.gateway.status)
        two.gateway.reporter.add(metrics)
        async with (
            running_admin(two.gateway.status, metrics) as admin,
            running_prometheus(admin.port) as prometheus,
        ):
            limited = say(reply(b"429 Too Many Requests", b"{}", b"Retry-After: 0.05"))
            for _ in range(2):  # a rate needs a first value and a later one
                two.perp.answers.extend([limited, say(OK)])
                for path in (b"/spot", b"/perp"):
                    await two.ask(request(b"POST", path + b"/v1/trade/order", GRID, body=b"{}"))
                await prometheus.until('sealgate_retries_total{exchange="perp"}')
            for query in columns:
                found = await prometheus.until(filled(query))
                assert {one["metric"]["exchange"] for one in found} == {"spot", "perp"}, query
            for query in queries():
                of_one = filled(query.replace("$exchange", "perp"))
                exchanges = {one["metric"].get("exchange", "perp") for one in await prometheus.ask(of_one)}
                assert exchanges <= {"perp"}, query


@pytest.mark.needs("prometheus")
async def test_a_real_prometheus_sees_what_comes_in_one_burst() -> None:
    """A burst between two scrapes, of a kind that was never seen before: strangers, and the first 429."""
    async with scraped_station() as (upstream, station, _, prometheus):
        upstream.answers.extend([say(reply(b"429 Too Many Requests", b"{}", b"Retry-After: 0.05")), say(OK)])
        await station.ask(request())
        page = request(b"GET", b"/v1/trade/symbols/list", b"Origin: https://example.com")
        await asyncio.gather(*(station.ask(page) for _ in range(40)))
        strangers = 'sum by (instance, reason) (increase(sealgate_refusals_total{bot="unknown"}[5m])) > 10'
        assert strangers in (FOLDER / "alerts.yml").read_text()
        assert await prometheus.until(strangers)
        assert await prometheus.until('increase(sealgate_rate_limited_total{origin="upstream"}[5m]) > 0')


def test_the_panel_of_who_spends_the_limit_shows_what_was_sent() -> None:
    """Refusals of the gateway spend nothing, and resends do."""
    (panel,) = [panel for panel in BOARD["panels"] if panel["title"] == "Who spends the limit"]
    assert all("sealgate_sent_total" in target["expr"] for target in panel["targets"])
