"""The care for one key: when it asks, and what it says of each answer."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from rig.admitted import answer
from rig.generation import Scripted, backend_of
from rig.hand_host import EPOCH, Leaping
from rig.station import ENVIRON, KEY, make_config
from sealgate.config.venues import default_venue, venue_source
from sealgate.errors import Refusal
from sealgate.exchange.answer import Answer
from sealgate.exchange.clock import Sample
from sealgate.keys.key_health import FIRST_GAP_S
from sealgate.keys.key_records import KeyRecord
from sealgate.request.key_care import KeyCare

READ, LIST = "/v1/trade/symbols/list", "/v1/trade/api-keys"
INVALID = answer(401, b'{"detail": "Invalid API key"}')
DAY_S = 86_400


class Scene:
    """The care for the key `main`, which is known to be good unless a test says otherwise."""

    def __init__(self, pipeline: Scripted, host: Leaping) -> None:
        self.pipeline = pipeline
        self.host = host
        self.untried: set[tuple[str, str]] = set()
        self.breaker = pipeline.backend.exchange.live_keys["main"].breaker
        self._care = KeyCare(pipeline, ("service", "main"), self.untried, host)
        # Known to a second: good enough for as long as these tests look.
        pipeline.backend.exchange.clock.observe(Sample(host.boot - 0.01, host.boot, EPOCH, 0.001))

    async def look(self, times: int) -> Sequence[Mapping[str, Any]]:
        """Look so often, once a second; return what was logged."""
        self.host.left = times
        with capture_logs() as logs, pytest.raises(asyncio.CancelledError):
            await self._care.run()
        return logs


@contextlib.asynccontextmanager
async def scene(*answers: Answer | Exception, session: bool = True, **tables: Any) -> AsyncIterator[Scene]:
    host = Leaping()
    key = {**KEY, "session": "env:SESSION"} if session else KEY
    config = make_config("http://127.0.0.1:9", keys={"main": key}, **tables)
    async with backend_of(config, host, {**ENVIRON, "SESSION": "tok-1"}) as tree:
        yield Scene(Scripted(tree, answers), host)


def listed(expires_at: str | None = None, *, is_active: bool = True) -> Answer:
    end = "null" if expires_at is None else f'"{expires_at}"'
    body = '{"keys": [{"api_key": "ak-public-1", "expires_at": %s, "is_active": %s}]}'
    return answer(200, (body % (end, "true" if is_active else "false")).encode())


async def test_the_list_is_read_after_a_while_and_then_once_an_hour() -> None:
    async with scene(listed(), listed()) as one:
        await one.look(4)
        assert one.pipeline.asked == []
        await one.look(2)
        assert one.pipeline.asked == [("main", LIST)]
        await one.look(3598)
        assert len(one.pipeline.asked) == 1
        await one.look(2)
        assert len(one.pipeline.asked) == 2


async def test_without_a_session_there_is_nothing_to_read() -> None:
    async with scene(session=False) as one:
        await one.look(60)
        assert one.pipeline.asked == []


RECORDS: dict[str, tuple[Answer, KeyRecord, str | None]] = {
    "good": (listed(), KeyRecord(None, is_active=True), None),
    "not good much longer": (
        listed("2026-09-24T14:13:20Z"),
        KeyRecord(EPOCH + 3 * DAY_S, is_active=True),
        "key_expires_soon",
    ),
    "over": (listed("2026-09-20T14:13:20Z"), KeyRecord(EPOCH - DAY_S, is_active=True), "key_expired"),
    "inactive": (listed(is_active=False), KeyRecord(None, is_active=False), "key_inactive"),
}


@pytest.mark.parametrize(("reply", "record", "event"), RECORDS.values(), ids=RECORDS)
async def test_what_the_list_says_is_kept_and_told(
    reply: Answer, record: KeyRecord, event: str | None
) -> None:
    async with scene(reply) as one:
        logs = await one.look(6)
        assert one.breaker.record == record
    assert [line["event"] for line in logs] == ([] if event is None else [event])


UNREAD: dict[str, tuple[Answer | Exception, str, str]] = {
    "without the key": (
        answer(200, b'{"keys": []}'),
        "key_not_listed",
        "the exchange's list does not have it",
    ),
    "no UTF-8": (answer(200, b"\xff"), "key_not_listed", "the exchange's list does not have it"),
    "another status": (answer(503), "key_not_asked_about", "the answer was 503"),
    "no answer": (
        Refusal("upstream_broken", "The exchange gave no answer: cut."),
        "key_not_asked_about",
        "The exchange gave no answer: cut.",
    ),
}


@pytest.mark.parametrize(("reply", "event", "cause"), UNREAD.values(), ids=UNREAD)
async def test_a_list_that_cannot_be_read_is_told_and_changes_nothing(
    reply: Answer | Exception, event: str, cause: str
) -> None:
    async with scene(reply) as one:
        one.breaker.record = before = KeyRecord(EPOCH, is_active=True)
        logs = await one.look(6)
        assert one.breaker.record is before
    assert [(line["event"], line["cause"]) for line in logs] == [(event, cause)]


def disable(one: Scene) -> None:
    """Let the gateway's own read have been refused."""
    one.breaker.observe(INVALID.status, INVALID.verdict, one.host.boot)
    one.breaker.conclude(INVALID.verdict, one.host.boot)


async def test_a_key_that_rests_is_tried_when_it_is_due_and_once_for_each_gap() -> None:
    silent = Refusal("upstream_unreachable", "The exchange gave no answer: nobody there.")
    async with scene(silent, silent, session=False) as one:
        disable(one)
        await one.look(int(FIRST_GAP_S) - 1)
        assert one.pipeline.asked == []
        logs = await one.look(2)
        assert one.pipeline.asked == [("main", READ)]
        assert [(line["event"], line["path"]) for line in logs] == [("key_not_asked_about", READ)]
        await one.look(int(FIRST_GAP_S))
        assert len(one.pipeline.asked) == 2


RETRIED: dict[str, tuple[Answer, str, str]] = {
    "refused again": (INVALID, "key_still_disabled", "the exchange calls it invalid"),
    "refused for another reason": (
        answer(403, b'{"detail": "IP not in API key whitelist"}'),
        "key_still_disabled",
        "this machine's IP address is not on its whitelist",
    ),
    "an answer that says nothing": (answer(503), "key_not_asked_about", "the answer was 503"),
}


@pytest.mark.parametrize(("reply", "event", "cause"), RETRIED.values(), ids=RETRIED)
async def test_what_comes_of_trying_a_key_again_is_told(reply: Answer, event: str, cause: str) -> None:
    async with scene(reply, session=False) as one:
        disable(one)
        (told,) = await one.look(int(FIRST_GAP_S))
    assert (told["event"], told["log_level"], told["cause"]) == (event, "warning", cause)


DOUBTED: dict[str, tuple[Answer, str, str, str]] = {
    "refused": (INVALID, "key_disabled", "error", "the exchange calls it invalid"),
    "an answer that says nothing": (answer(503), "key_not_asked_about", "warning", "the answer was 503"),
}


@pytest.mark.parametrize(("reply", "event", "level", "cause"), DOUBTED.values(), ids=DOUBTED)
async def test_a_key_that_a_reply_calls_invalid_is_asked_about_at_once(
    reply: Answer, event: str, level: str, cause: str
) -> None:
    async with scene(reply, session=False) as one:
        one.breaker.observe(INVALID.status, INVALID.verdict, one.host.boot)
        (told,) = await one.look(2)
        assert one.pipeline.asked == [("main", READ)]
        assert (one.breaker.state.fault is not None) is (reply is INVALID)
    assert (told["event"], told["log_level"], told["cause"]) == (event, level, cause)


async def test_a_key_that_no_read_can_be_sent_with_stays_in_use(tmp_path: Path) -> None:
    text = venue_source(default_venue())
    assert text.count("\nsigned = ") == 1
    (tmp_path / "readless.toml").write_text(text.replace("\nsigned = ", "\n# "), "utf-8")
    async with scene(session=False, venue=str(tmp_path / "readless.toml")) as one:
        one.breaker.observe(INVALID.status, INVALID.verdict, one.host.boot)
        told = await one.look(2)
        one.breaker.check()
        assert one.pipeline.asked == []
    (line,) = told
    assert (line["event"], line["log_level"]) == ("key_refused", "error")
    assert "reads.signed" in line["cause"]


FIRST: dict[str, tuple[Answer | Exception, str]] = {
    "taken": (answer(200), "key_tried"),
    "an answer that says nothing": (answer(404), "key_not_proven"),
    "no answer": (Refusal("upstream_broken", "cut"), "key_not_proven"),
    "a fault": (INVALID, "key_disabled"),
}


@pytest.mark.parametrize(("reply", "event"), FIRST.values(), ids=FIRST)
async def test_a_key_of_which_nothing_is_known_is_tried_once(reply: Answer | Exception, event: str) -> None:
    async with scene(reply, session=False) as one:
        one.untried.add(("service", "main"))
        logs = await one.look(9)
        assert (one.pipeline.asked, one.untried) == ([("main", READ)], set())
    assert [line["event"] for line in logs] == [event]
