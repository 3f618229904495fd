"""An exchange that says what it means in an HTTP 200: what bots are told, and what is sent again."""

import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from rig.acts import say
from rig.bot import Reply, request
from rig.faults import CODES
from rig.station import Station, running_station
from rig.upstream import Upstream
from rig.wire import OK, reply

READ = request(target=b"/v1/trade/symbols/list")
ORDER = request(b"POST", b"/v1/trade/order", body=b"{}")
KEYED = request(b"POST", b"/v1/trade/order", b"Idempotency-Key: k-1", body=b"{}")


@asynccontextmanager
async def coded(upstream: Upstream, folder: Path, **settings: Any) -> AsyncIterator[Station]:
    (folder / "coded.toml").write_text(CODES)
    async with running_station(upstream, venue=str(folder / "coded.toml"), **settings) as station:
        yield station


def code(code: str, **more: object) -> bytes:
    return reply(b"200 OK", json.dumps({"code": code, **more}).encode())


def met(answer: Reply) -> tuple[int, str | None, str | None, str | None]:
    return answer.status, answer.outcome, answer.reason, answer.text("X-Gateway-Attempts")


# what the exchange says, and the outcome of a read and of an order
SAID: dict[str, tuple[bytes, str, str]] = {
    "success": (code("0"), "done", "done"),
    "no code at all": (OK, "refused", "unknown"),
    "a timeout of its own": (code("50004"), "refused", "unknown"),
    "a refusal, compressed": (
        reply(b"200 OK", gzip.compress(b'{"code":"51000"}'), b"Content-Encoding: gzip"),
        "refused",
        "refused",
    ),
    "so long that it is passed on as it comes": (
        reply(b"200 OK", b'{"code":"51000"}'.ljust(400_000)),
        "done",
        "unknown",
    ),
}


@pytest.mark.parametrize(("said", "read", "order"), SAID.values(), ids=SAID)
async def test_the_outcome_goes_by_the_code(
    upstream: Upstream, tmp_path: Path, said: bytes, read: str, order: str
) -> None:
    async with coded(upstream, tmp_path) as station:
        for message, outcome in ((READ, read), (ORDER, order)):
            upstream.answers.append(say(said))
            answer = await station.ask(message)
            assert (answer.outcome, answer.reason) == (outcome, None)
            assert answer.body in said
            assert (answer.text("X-Gateway-Fence-Ms") is not None) is (outcome == "unknown")
    assert len(upstream.received) == 2


async def test_what_is_limited_by_a_code_is_sent_again_and_counted(
    upstream: Upstream, tmp_path: Path
) -> None:
    async with coded(upstream, tmp_path) as station:
        upstream.answers.extend([say(code("50011")), say(code("0"))])
        assert met(await station.ask(ORDER)) == (200, "done", None, "2")
        outcome = await station.outcomes.until(1)
    assert (outcome.resends, outcome.times_limited) == (("rate_limited",), 1)
    assert [error.kind for error in outcome.upstream_errors] == ["rate_limited"]


async def test_without_resends_it_is_passed_on_as_refused_and_spends_no_key(
    upstream: Upstream, tmp_path: Path
) -> None:
    async with coded(upstream, tmp_path, limits={"replay_429": "none"}) as station:
        upstream.answers.extend([say(code("50011")), say(code("0"))])
        assert met(await station.ask(KEYED)) == (200, "refused", None, "1")
        assert met(await station.ask(KEYED)) == (200, "done", None, "1")


async def test_a_ban_pauses_until_its_end_and_is_told_in_the_words_of_the_exchange(
    upstream: Upstream, tmp_path: Path
) -> None:
    async with coded(upstream, tmp_path) as station:
        words = f"IP banned until {upstream.now_ms() + 3_600_000}."
        upstream.answers.append(say(code("1", msg=words)))
        answer = await station.ask(ORDER)
        assert met(answer) == (429, "refused", "rate_limited", "1")
        assert f'The exchange says: "{words}".' in json.loads(answer.body)["detail"]
        assert 3_500 < int(answer.text("Retry-After") or 0) <= 3_601
        again = await station.ask(READ)
        assert met(again) == (429, "not_sent", "rate_limited", "0")
        assert words in json.loads(again.body)["detail"]


async def test_a_timestamp_that_a_code_refuses_goes_again_once(upstream: Upstream, tmp_path: Path) -> None:
    async with coded(upstream, tmp_path) as station:
        upstream.answers.extend([say(code("50102")), say(code("0"))])
        assert met(await station.ask(ORDER)) == (200, "done", None, "2")
        upstream.answers.extend([say(code("50102")), say(code("50102"))])
        assert met(await station.ask(ORDER)) == (200, "refused", None, "2")
        assert station.gateway.status().clock.trouble == "a timestamp was refused right after a resync"


async def test_a_key_that_a_code_calls_invalid_is_disabled(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sealgate.request.key_care._LOOK_S", 0.01)
    async with coded(upstream, tmp_path) as station:
        upstream.answers.extend([say(code("50111"))] * 2)  # the second to the gateway's own read
        assert met(await station.ask(ORDER)) == (200, "refused", None, "1")
        await station.until(lambda: not station.gateway.status().keys[0].is_active)
        assert met(await station.ask(ORDER)) == (503, "not_sent", "key_disabled", "0")


async def test_replies_come_in_a_coding_that_can_be_looked_into(upstream: Upstream, tmp_path: Path) -> None:
    async with coded(upstream, tmp_path) as station:
        await station.ask(request(b"POST", b"/v1/trade/order", b"Accept-Encoding: gzip, br", body=b"{}"))
    assert upstream.received[0].head.value(b"Accept-Encoding") == b"gzip"
