"""What a gateway tells of its streams: counts, the list of those that are open, and what it refused."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientWebSocketResponse, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.test_utils import unused_port
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from rig.stream_lab import TOKENS, Lab, running_lab
from rig.stream_venue import HOST
from rig.wire import until
from sealgate.machine.system import System
from sealgate.observe.live import Live
from sealgate.observe.metrics import Metrics
from sealgate.orders.outcome import Conclusion

PRIVATE = f"{HOST}/private"
LOGIN = {"op": "login"}


@pytest.fixture
async def lab(tmp_path: Path) -> AsyncIterator[Lab]:
    async with running_lab(tmp_path) as lab:
        yield lab


@pytest.fixture
def metrics(lab: Lab) -> Metrics:
    metrics = Metrics(lab.gateway.status)
    lab.gateway.reporter.add(metrics)
    return metrics


def figures(lab: Lab, metrics: Metrics) -> dict[str, dict[str, float]]:
    """Return the values of each metric by what its labels are."""
    lab.gateway.reporter.flush()
    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(metrics.snapshot()().decode()):
        for sample in family.samples:
            labels = " ".join(value for _, value in sorted(sample.labels.items()))
            found.setdefault(sample.name.removeprefix("sealgate_"), {})[labels] = sample.value
    return found


async def asked(stream: ClientWebSocketResponse, **message: Any) -> Any:
    await stream.send_json(message)
    return await stream.receive_json()


async def test_openings_logins_orders_and_what_is_carried(lab: Lab, metrics: Metrics) -> None:
    stream = await lab.open()
    await asked(stream, op="login", fails=True)
    await asked(stream, **LOGIN)
    await asked(stream, op="order.place", id="1")
    await asked(stream, op="order.cancel", id="2", status=400)
    other = await lab.open("/other.lab.example:8443", bot="EYE")
    counted = figures(lab, metrics)
    assert counted["streams"] == {f"grid lab {PRIVATE}": 1, f"eye lab {PRIVATE}": 1}
    assert counted["streams_opened_total"] == {
        f"grid lab opened {PRIVATE}": 1,
        f"eye lab opened {PRIVATE}": 1,
    }
    assert counted["stream_logins_total"] == {"lab main ok": 1, "lab main failed": 1}
    assert counted["stream_orders_total"] == {"grid lab done": 1, "grid lab refused": 1}
    assert counted["stream_messages_total"]["grid to_bot lab"] == 4
    assert counted["stream_messages_total"]["grid to_exchange lab"] == 4
    carried = counted["stream_bytes_total"]
    assert carried["grid to_exchange lab"] > carried["grid to_bot lab"] > 100
    assert counted["requests_total"][f"grid lab main GET {PRIVATE} 101"] == 1
    assert counted["requests_total"][f"grid lab main WS {PRIVATE} order.place 200"] == 1
    for one in (stream, other):
        await one.close()
    await until(lambda: len(lab.gateway.streams) == 0)
    after = figures(lab, metrics)
    assert after["streams"] == {f"grid lab {PRIVATE}": 0, f"eye lab {PRIVATE}": 0}
    assert after["stream_messages_total"] == counted["stream_messages_total"]


async def test_an_opening_has_its_result_and_a_strangers_has_none(lab: Lab, metrics: Metrics) -> None:
    assert (await lab.refused("/nowhere.example/x"))[1] == "unknown_stream"
    assert (await lab.refused(f"/{HOST}/private", ""))[1] == "bot_unauthenticated"
    lab.exchange.answer = lambda: web.Response(status=403)
    assert (await lab.refused(f"/{HOST}/private"))[0] == 403
    assert (await lab.refused(f"/{HOST}/signed/me"))[0] == 403
    counted = figures(lab, metrics)
    assert counted["streams_opened_total"] == {
        "grid lab unknown_stream other": 1,
        f"grid lab refused {PRIVATE}": 1,
        f"grid lab refused {HOST}/signed/{{account}}": 1,
    }
    assert counted["stream_logins_total"] == {"lab main failed": 1}  # that of the signed upgrade
    assert counted["refusals_total"]["unknown lab bot_unauthenticated"] == 1
    assert counted["refusals_total"]["grid lab unknown_stream"] == 1


async def test_the_signed_upgrade_is_a_login(lab: Lab, metrics: Metrics) -> None:
    stream = await lab.open(f"/{HOST}/signed/me")
    assert figures(lab, metrics)["stream_logins_total"] == {"lab main ok": 1, "lab main failed": 0}
    await stream.close()


async def test_an_opening_that_the_exchange_refuses_is_among_its_errors(lab: Lab, metrics: Metrics) -> None:
    live = Live(lab.gateway.status, System())
    lab.gateway.reporter.add(live)
    lab.exchange.answer = lambda: web.Response(status=429, headers={"Retry-After": "7"})
    await lab.refused(f"/{HOST}/private")
    counted = figures(lab, metrics)
    assert counted["upstream_errors_total"] == {"lab main rate_limited": 1}
    assert counted["retry_after_seconds_sum"] == {"lab main": 7}
    assert [(one["kind"], one["bot"]) for one in live.document()["errors"]] == [("rate_limited", "grid")]


async def test_a_place_of_streams_that_nobody_answers_at_is_an_error_of_the_exchange(tmp_path: Path) -> None:
    async with running_lab(tmp_path, upstream={"streams": f"ws://127.0.0.1:{unused_port()}"}) as lab:
        await lab.refused(f"/{HOST}/private")
        record = await lab.outcomes.until(1)
        assert [error.kind for error in record.upstream_errors] == ["unreachable"]
        assert (record.reason, record.conclusion, record.attempts) == (
            "upstream_unreachable",
            Conclusion.NOT_SENT,
            1,
        )


async def test_an_exchange_that_vanishes_within_the_handshake(lab: Lab) -> None:
    class Gone(web.Response):
        async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
            assert request.transport is not None
            request.transport.abort()
            return await super().prepare(request)

    lab.exchange.answer = Gone
    await lab.refused(f"/{HOST}/private")
    record = await lab.outcomes.until(1)
    assert [error.kind for error in record.upstream_errors] == ["lost"]
    assert (record.reason, record.attempts) == ("upstream_broken", 1)


async def test_a_bot_that_does_not_wait_for_its_stream(lab: Lab, metrics: Metrics) -> None:
    has_left = asyncio.Event()

    class Late(web.Response):
        async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
            await has_left.wait()
            return await super().prepare(request)

    lab.exchange.answer = Late
    opening = asyncio.ensure_future(lab.open())
    await until(lambda: len(lab.exchange.opened) == 1)
    opening.cancel()
    await until(lambda: bool(lab.gateway.streams.desk.tally.opened))
    has_left.set()
    assert figures(lab, metrics)["streams_opened_total"] == {f"grid lab hung_up {PRIVATE}": 1}


async def test_an_open_stream_is_listed_until_it_is_over(lab: Lab) -> None:
    live = Live(lab.gateway.status, System())
    stream = await lab.open()
    await asked(stream, **LOGIN)
    [listed] = live.document()["streams"]
    told = {name: listed[name] for name in ("bot", "exchange", "key", "stream", "is_logged_in")}
    assert told == {
        "bot": "grid",
        "exchange": "lab",
        "key": "main",
        "stream": PRIVATE,
        "is_logged_in": True,
    }
    assert (listed["to_bot"]["messages"], listed["to_exchange"]["messages"]) == (1, 1)
    assert abs(listed["since_ms"] - System().wall() * 1000) < 60_000
    json.dumps(live.document())
    await stream.close()
    await until(lambda: live.document()["streams"] == [])


@pytest.mark.parametrize(
    ("bot", "message", "reason"),
    [
        pytest.param("EYE", '{"op": "order.place", "id": "1"}', "bot_forbidden", id="may not trade"),
        pytest.param("GRID", "no message", "bad_request", id="not clear"),
        pytest.param(
            "GRID",
            f'{{"op": "ping", "args": "{TOKENS["GRID"]}"}}',
            "bot_forbidden",
            id="has the token",
        ),
    ],
)
async def test_a_message_that_is_refused_is_among_what_the_gateway_refused(
    lab: Lab, metrics: Metrics, bot: str, message: str, reason: str
) -> None:
    """It is no order, and not counted as one, but it is listed, as its bot loses its stream by it."""
    live = Live(lab.gateway.status, System())
    lab.gateway.reporter.add(live)
    with capture_logs() as logs:
        stream = await lab.open(bot=bot)
        await stream.send_str(message)
        await stream.receive()
        await stream.close()
        await until(lambda: len(lab.gateway.streams) == 0)
    record = await lab.outcomes.until(2)
    assert (record.method, record.route.split()[0], record.reason) == ("WS", PRIVATE, reason)
    assert (record.conclusion, record.attempts, record.key) == (Conclusion.NOT_SENT, 0, "main")
    counted = figures(lab, metrics)
    assert counted["refusals_total"][f"{bot.lower()} lab {reason}"] == 1
    assert "stream_orders_total" not in counted
    assert [one["reason"] for one in live.document()["refusals"]] == [reason]
    told = {one["event"]: one for one in logs if one["event"].startswith("stream_")}
    assert list(told) == ["stream_opened", "stream_message_refused", "stream_closed"]
    assert len({one["request_id"] for one in told.values()}) == 1
    assert (told["stream_closed"]["closed_by"], told["stream_closed"]["code"]) == ("gateway", 1008)
    assert told["stream_message_refused"]["detail"] == record.detail
