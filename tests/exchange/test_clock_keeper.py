"""The keeper of the clock: what each reply of `/time` does to it, what is said once, and how it rests."""

import asyncio
import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from rig.admitted import answer, remainder
from rig.hand_host import EPOCH, HandHost
from sealgate.exchange.answer import Answer
from sealgate.exchange.clock_keeper import ClockKeeper, TimeSource, time_in
from sealgate.exchange.failure import Failure, FailureKind
from sealgate.exchange.kept_clock import ClockNeeds, KeptClock
from sealgate.limits.claims import ONLY
from sealgate.limits.membership import Membership, Subjects
from sealgate.limits.pacer import Pacer
from sealgate.limits.pools import PacerSettings
from sealgate.limits.scheduler import Gates, RateScheduler
from sealgate.venues.limit_rules import PoolRule
from sealgate.venues.replies import Scope
from sealgate.venues.routes import Lane
from sealgate.venues.server_time import UnreadableTimeError

PATH = "/v1/trade/time"
ROUND_TRIP_S = 0.02
DATE = (b"Date", b"Mon, 21 Sep 2026 14:13:20 GMT")  # EPOCH
UNREACHED = Failure(FailureKind.UNREACHABLE, "nobody there")
LOST = Failure(FailureKind.LOST, "the reply was cut off")


def time_reply(since_ms: int = 0) -> Answer:
    return answer(200, b'{"serverTime": %d}' % (EPOCH * 1000 + since_ms))


class Exchange:
    """An upstream and the connections to it: what it says next, and what it was asked."""

    destination = SimpleNamespace(total_timeout_s=10.0)

    def __init__(self, host: HandHost, replies: Sequence[Answer | Failure | Exception]) -> None:
        self._host = host
        self._replies = [*replies]
        self.asked: list[bytes] = []
        self.is_closed = False

    async def connect(self, lane: Lane, timeout_s: float) -> "Exchange | Failure":
        assert (lane, timeout_s) == (Lane.CANCEL, 10.0)
        if self._replies[0] is not UNREACHED:
            return self
        self._replies.pop(0)
        return UNREACHED

    def head(self, method: str, target: str) -> bytes:
        return f"{method} {target} HTTP/1.1\r\n".encode()

    async def exchange(self, data: bytes, timeout_s: float, *, is_head: bool) -> Answer | Failure:
        assert (timeout_s, is_head) == (10.0, False)
        self.asked.append(data)
        self._host.move(ROUND_TRIP_S, ROUND_TRIP_S, ROUND_TRIP_S)
        reply = self._replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def close(self) -> None:
        self.is_closed = True

    @property
    def is_silent(self) -> bool:
        return not self._replies


class Restless(HandHost):
    """Who would sleep goes on at once, and is stopped when the exchange has nothing more to say."""

    exchange: Exchange
    clock: KeptClock

    def __init__(self) -> None:
        super().__init__()
        self.rests: list[float] = []
        self.longest_s = math.inf

    async def sleep(self, seconds: float) -> None:
        self.rests.append(seconds)
        if not self.exchange.asked:
            self.move(seconds, seconds, seconds)
        if self.exchange.is_silent or sum(self.rests) > self.longest_s:
            raise asyncio.CancelledError
        self.clock.due.set()


OPEN = Membership((PoolRule("all", Scope.ADDRESS),), Subjects("here", "here", "here"), is_open=True)


class Kept:
    """A clock after the keeper took these replies in."""

    def __init__(self, *replies: Answer | Failure | Exception, field: str = "", path: str = PATH) -> None:
        self.host = Restless()
        self.clock = KeptClock(
            "spot", ClockNeeds(is_required=True, grace_s=10.0, recv_window_ms=5000), self.host
        )
        self.exchange = Exchange(self.host, replies)
        self.host.clock, self.host.exchange = self.clock, self.exchange
        self._field, self._path = field, path
        self.gate = RateScheduler(Pacer(PacerSettings(), lambda: 0.0), self.host)
        self.logs: Sequence[Any] = []

    async def run(self) -> "Kept":
        upstream: Any = self.exchange
        source = TimeSource(self._path, self._field, 30.0)
        keeper = ClockKeeper(source, self.clock, upstream, Gates(self.gate, (), OPEN, ONLY), self.host)
        with capture_logs() as self.logs, pytest.raises(asyncio.CancelledError):
            await keeper.run()
        return self

    @property
    def told(self) -> list[tuple[str, str | None]]:
        return [(line["event"], line.get("cause")) for line in self.logs]


async def test_a_good_reply_sets_the_clock_and_its_connection_is_closed_in_the_end() -> None:
    kept = await Kept(time_reply()).run()
    assert kept.clock.offset_s() == pytest.approx(0.0, abs=ROUND_TRIP_S)
    assert kept.clock.trouble is None
    assert kept.exchange.asked == [b"GET /v1/trade/time HTTP/1.1\r\n\r\n"]
    assert kept.exchange.is_closed
    assert kept.told == [("clock_synced", None)]
    assert kept.logs[0]["field"] == "/serverTime"


async def test_what_stays_as_it_is_is_not_told_again() -> None:
    kept = await Kept(time_reply(), time_reply(20), LOST, LOST, time_reply(80)).run()
    assert kept.told == [
        ("clock_synced", None),
        ("clock_trouble", "the reply was cut off"),
        ("clock_synced", None),
    ]
    assert kept.logs[1]["meanwhile"] == "signing continues with the known time"


TROUBLES = {
    "nobody there": (UNREACHED, "nobody there"),
    "no whole reply": (LOST, "the reply was cut off"),
    "another status": (answer(503), f"{PATH}: the answer was 503"),
    "no time in it": (answer(200, b"{}"), f"{PATH}: "),
    "bytes that are no UTF-8": (answer(200, b'{"serverTime": "\xff"}'), f"{PATH}: "),
    "a fault of ours": (
        RuntimeError("out of cheese"),
        "a reply of the exchange could not be processed",
    ),
}


BLOCKED = "access from your country is blocked"
COUNTRY = f"the exchange does not serve this IP address (because of its country?): 403 {BLOCKED}"


@pytest.mark.parametrize("path", [PATH, ""], ids=["a path for the time", "the Date of any reply"])
async def test_a_country_that_is_not_served_is_named_and_its_date_is_not_the_exchanges(path: str) -> None:
    """The Date would be that of the network in front of it, and a gateway that has it would be ready."""
    kept = Kept(answer(403, BLOCKED.encode(), DATE), path=path)
    await kept.run()
    assert kept.clock.offset_s() == 0.0
    assert kept.clock.trouble == (f"{path}: {COUNTRY}" if path else COUNTRY)
    assert kept.clock.not_ready == f"clock not synchronized: {kept.clock.trouble}"
    [line] = kept.logs
    assert line["fix"] == "ask the exchange whether it serves your country and network"


@pytest.mark.parametrize(("reply", "trouble"), TROUBLES.values(), ids=TROUBLES)
async def test_a_sample_that_fails_is_no_end(reply: Answer | Failure | Exception, trouble: str) -> None:
    kept = Kept(reply)
    await kept.run()
    assert kept.clock.trouble is not None
    assert kept.clock.trouble.startswith(trouble)
    assert kept.clock.not_ready == f"clock not synchronized: {kept.clock.trouble}"
    after = await Kept(reply, time_reply()).run()
    assert after.clock.trouble is None


async def test_until_a_sample_comes_a_date_will_do() -> None:
    kept = await Kept(answer(404, b"", DATE)).run()
    assert kept.clock.offset_s() == pytest.approx(0.5, abs=0.1)
    assert kept.clock.trouble == f"{PATH}: the answer was 404"


@pytest.mark.parametrize("date", [b"yesterday", b"\xff"], ids=["no date", "no UTF-8"])
async def test_a_date_that_is_none_is_none(date: bytes) -> None:
    kept = await Kept(answer(404, b"", (b"Date", date))).run()
    assert kept.clock.error_s() is None


async def test_a_429_is_obeyed() -> None:
    kept = await Kept(answer(429, b"", (b"Retry-After", b"7"))).run()
    assert kept.gate.status().pools["all"].pause_s == pytest.approx(7.0, abs=0.01)
    assert len(kept.exchange.asked) == 1


async def test_nothing_is_asked_while_a_pause_lasts() -> None:
    kept = Kept(time_reply())
    kept.gate.shut_out("here", kept.host.now() + 900.0)
    kept.host.longest_s = 899.0
    await kept.run()
    assert kept.exchange.asked == []
    assert kept.told == [("clock_trouble", "not asked: the exchange has blocked this IP address or key")], (
        "once, as nothing is known of the time yet"
    )


async def test_the_field_that_is_set_is_read() -> None:
    body = b'{"serverTime": 1, "data": {"now": %d}}' % (EPOCH * 1000)
    kept = await Kept(answer(200, body), field="/data/now").run()
    assert kept.clock.offset_s() == pytest.approx(0.0, abs=ROUND_TRIP_S)


async def test_of_a_reply_that_is_far_too_large_the_rest_is_not_read() -> None:
    ends: list[str] = []
    large = answer(200, b"{", remainder=remainder(ends))
    kept = await Kept(large).run()
    assert ends == ["closed"]
    assert kept.clock.error_s() is None


async def test_while_somebody_waits_for_a_sample_it_does_not_sleep_to_the_end() -> None:
    """The first ones come in a burst; nothing is asked for in a shorter distance than that."""
    kept = await Kept(*[time_reply()] * 3).run()
    assert kept.host.rests == [kept.host.rests[0]] * 3
    assert kept.host.rests[0] > 0
    assert not kept.clock.due.is_set()


def test_the_time_in_a_reply() -> None:
    assert time_in(time_reply(), "").seconds == EPOCH
    with pytest.raises(UnreadableTimeError, match="the answer was 204"):
        time_in(answer(204), "")
