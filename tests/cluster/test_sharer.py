"""A sharer without Redis: each heartbeat is answered, or fails, by a script, and time goes on by hand."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from redis.exceptions import AuthenticationError, RedisError, ResponseError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError
from structlog.testing import capture_logs

from rig.hand_host import HandHost
from rig.wire import PATIENCE_S
from sealgate.cluster import redis_group as sharer_module
from sealgate.cluster.member import Heartbeat, HeartbeatReply, Member
from sealgate.cluster.messages import Message, MessageError, SharedLimits, write
from sealgate.cluster.redis_group import Sharer, read_answer, shared_scheduler, words
from sealgate.keys.key import Secret
from sealgate.limits.pacer import Pacer
from sealgate.limits.pools import PacerSettings
from sealgate.limits.scheduler import RateScheduler

GONE = RedisConnectionError("redis://:s3cret@localhost")
FULL = ResponseError("OOM command not allowed")
LEADS = HeartbeatReply("me", 1, {}, 1)
FOLLOWS = HeartbeatReply("other", 1, {}, 2, write(Message(1, limits=SharedLimits()), 0.0))

Answer = HeartbeatReply | Exception
Step = Exception | Sequence[Answer]  # Redis is not reached, or a session that answers so


@pytest.fixture(autouse=True)
def _sleeps_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharer_module, "LONGEST_SLEEP_S", 0.0)


class Ticking(HandHost):
    """Each look at it takes a tenth of a second."""

    def now(self) -> float:
        self.move(0.1, 0.1, 0.1)
        return self.boot


class Redis:
    """A table whose sessions go by a script; when it is over, who sits there is stopped."""

    def __init__(self, script: Sequence[Step]) -> None:
        self._script = [*script]
        self._answers: list[Answer] = []
        self.said: list[bytes] = []
        self.heartbeats: list[Heartbeat] = []
        self.left: list[Exception | None] = []
        self.leaving: Exception | None = None
        self.sitter: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator["Redis"]:
        if not self._script:
            raise asyncio.CancelledError
        step = self._script.pop(0)
        if isinstance(step, Exception):
            raise step
        self._answers = [*step]
        yield self

    async def heartbeat(self, heartbeat: Heartbeat) -> HeartbeatReply:
        self.heartbeats.append(heartbeat)
        if not self._answers:
            assert self.sitter is not None
            self.sitter.cancel()
            await asyncio.Event().wait()
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def listen(self, receive: Callable[[bytes], None]) -> None:
        for message in self.said:
            receive(message)
        await asyncio.Event().wait()

    async def leave(self) -> None:
        self.left.append(self.leaving)
        if self.leaving is not None:
            raise self.leaving


class Scene:
    """A sharer of its own at a table that goes by a script."""

    def __init__(self, *script: Step) -> None:
        host = Ticking()
        self.redis = Redis(script)
        pacer = Pacer(PacerSettings(), lambda: 0.0)
        scheduler = RateScheduler(pacer, host)
        self.member = member = Member(pacer, "me", lambda: 0.0)
        group: Any = self.redis
        self.sharer = scheduler.sharing = Sharer(member, group, scheduler, host)

    async def run(self) -> list[tuple[str, object]]:
        """Share until the script is over; return what was logged."""
        task = self.redis.sitter = asyncio.create_task(self.sharer.run())
        with capture_logs() as logs:
            async with asyncio.timeout(PATIENCE_S):
                await asyncio.wait((task,))
        assert task.cancelled()
        return [(line["event"], line.get("cause", line.get("leads"))) for line in logs]


TROUBLES: dict[str, tuple[Step, str]] = {
    "not there": (GONE, "Redis cannot be reached"),
    "slow": (TimeoutError(), "Redis did not answer within 100 ms"),
    "full": ([FULL], "Redis refuses (OOM command not allowed)"),
    "of another version": ([MessageError()], "the data in Redis cannot be understood"),
}


@pytest.mark.parametrize(("step", "why"), TROUBLES.values(), ids=TROUBLES)
async def test_what_fails_is_told_once_and_tried_again(step: Step, why: str) -> None:
    one = Scene(step, step, step)
    assert await one.run() == [("limit_sharing_degraded", why)]


async def test_another_trouble_is_told_and_so_is_the_same_after_it_worked() -> None:
    one = Scene(GONE, TimeoutError(), [LEADS, GONE], TimeoutError())
    assert await one.run() == [
        ("limit_sharing_degraded", "Redis cannot be reached"),
        ("limit_sharing_degraded", "Redis did not answer within 100 ms"),
        ("limit_shared", True),
        ("limit_sharing_degraded", "Redis cannot be reached"),
        ("limit_sharing_degraded", "Redis did not answer within 100 ms"),
    ]


async def test_who_leads_is_told_when_it_changes() -> None:
    one = Scene([FOLLOWS, FOLLOWS, replace(LEADS, epoch=2), replace(LEADS, epoch=2)])
    assert await one.run() == [("limit_shared", False), ("limit_shared", True)]


async def test_who_is_stopped_takes_leave_and_goes_alone() -> None:
    one = Scene([LEADS])
    await one.run()
    assert one.redis.left == [None]
    assert one.member.status().degraded == "the gateway has stopped sharing"


async def test_a_leave_that_fails_keeps_nobody() -> None:
    one = Scene([LEADS])
    one.redis.leaving = GONE
    await one.run()
    assert one.redis.left == [GONE]


async def test_a_listener_that_fails_ends_the_sitting() -> None:
    one = Scene([LEADS])

    async def listen(_: object) -> None:
        raise GONE

    async def heartbeat(_: object) -> None:
        await asyncio.Event().wait()

    one.redis.__dict__ |= {"listen": listen, "heartbeat": heartbeat}
    assert await one.run() == [("limit_sharing_degraded", "Redis cannot be reached")]
    assert one.redis.left == []


async def test_a_subscription_that_ends_is_begun_again() -> None:
    one = Scene([LEADS] * 50, [])

    async def listen(_: object) -> None:
        one.redis.__dict__.pop("listen", None)

    one.redis.__dict__["listen"] = listen
    assert await one.run() == [("limit_shared", True)]
    assert one.redis._script == [], "there was a second sitting"


async def test_a_message_that_makes_no_sense_is_told_and_passed_over() -> None:
    one = Scene([FOLLOWS, FOLLOWS])
    one.redis.said = [b"\xff", b"[1]", b"{}"]
    told = await one.run()
    assert ("limit_sharing_message_ignored", None) in told
    assert ("limit_shared", False) in told


@pytest.mark.parametrize("where", ["receive", "acknowledged"])
async def test_a_fault_of_the_program_is_not_put_down_to_redis(where: str) -> None:
    """It ends the work, which says so and begins anew; meanwhile the gateway goes alone."""
    one = Scene([FOLLOWS, FOLLOWS])
    one.redis.said = [b"{}"]

    def fault(*_: object) -> None:
        raise KeyError(where)

    one.member.__dict__[where] = fault
    with capture_logs() as logs, pytest.raises(KeyError, match=where):
        async with asyncio.timeout(PATIENCE_S):
            await one.sharer.run()
    assert [line["event"] for line in logs if line["event"] != "limit_shared"] == []
    assert one.member.status().degraded == "the gateway has stopped sharing"


async def test_a_cancellation_that_the_client_forgot_is_obeyed() -> None:
    """redis-py loses one where a call succeeds in the same moment."""
    one = Scene([LEADS])
    opened = one.redis.opened

    @contextlib.asynccontextmanager
    async def forgetful() -> AsyncIterator[Redis]:
        async with opened() as session:
            assert one.redis.sitter is not None
            one.redis.sitter.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            yield session

    one.redis.__dict__["opened"] = forgetful
    await one.run()
    assert one.redis.heartbeats == []


NONSENSE = {
    "too short": [b"me", 3],
    "no names": [5, 3, 0, 2, b"", []],
    "no numbers": [b"me", b"3", b"x", 2, b"", []],
    "no members": [b"me", 3, 0, 2, b"", None],
    "no UTF-8": [b"\xff", 3, 0, 2, b"", []],
    "a pause before now": [b"me", 3, -(2**63), 2, b"", []],
}


@pytest.mark.parametrize("found", NONSENSE.values(), ids=NONSENSE)
def test_what_another_script_would_return_is_what_the_sharer_expects_of_strangers(
    found: list[object],
) -> None:
    with pytest.raises(MessageError):
        read_answer(found)


WORDS = {
    "slow": (TimeoutError(), "Redis did not answer within 100 ms"),
    "slow, in its client's words": (
        RedisTimeoutError("Timeout reading"),
        "Redis did not answer within 100 ms",
    ),
    "refused": (ResponseError("OOM command not allowed"), "Redis refuses (OOM command not allowed)"),
    "refused in many lines": (ResponseError("ERR script\nat line 1"), "Redis refuses (ERR script)"),
    "refused at length": (ResponseError("x" * 200), f"Redis refuses ({'x' * 100})"),
    "refused in words that move a terminal's cursor": (
        ResponseError("ERR \x1b[2Jx"),
        "Redis refuses (ERR  [2Jx)",
    ),
    "refused without a word": (ResponseError(""), "Redis refuses (no reason given)"),
    "not there": (RedisConnectionError("redis://:s3cret@localhost"), "Redis cannot be reached"),
    "not let in": (AuthenticationError("s3cret is wrong"), "Redis cannot be reached"),
    "the network": (OSError(113, "No route to host"), "Redis cannot be reached"),
    "anything": (RedisError("s3cret"), "Redis cannot be reached"),
}


@pytest.mark.parametrize(("error", "said"), WORDS.values(), ids=WORDS)
def test_why_redis_is_of_no_use(error: Exception, said: str) -> None:
    assert words(error) == said


URL = Secret("redis://:s3cret@localhost/0")


def sharer_of(base_url: str, host: HandHost) -> Any:
    sharing = shared_scheduler("spot", base_url, URL, PacerSettings(), host).sharing
    assert isinstance(sharing, Sharer)
    return sharing


async def test_redis_is_told_no_key_and_nobody_its_password() -> None:
    sharer = sharer_of("https://a ak-public-1", HandHost())
    assert "ak-public-1" not in sharer._group._name
    assert "s3cret" not in repr(URL)
