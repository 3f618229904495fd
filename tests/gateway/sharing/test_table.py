"""What goes to Redis and comes back, and what is said of a Redis that is of no use."""

from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
from redis.exceptions import AuthenticationError, RedisError, ResponseError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from sealgate.core.sharing.notes import MessageError
from sealgate.core.sharing.seat import Visit, VisitAnswer
from sealgate.gateway.sharing import SCRIPT, Session, Table, arguments, read_answer, words


def test_a_visit_in_microseconds_with_its_grants_at_the_end() -> None:
    visit = Visit(3, 0.25, "note", "beat", (("one", "g1"), ("two", "g2")))
    assert arguments("", "me", visit, 6.0) == [
        "",
        "me",
        3,
        6_000_000,
        1_500_000,
        250_000,
        31_622_401_000_000,
        "note",
        "beat",
        "one",
        "g1",
        "two",
        "g2",
    ]


def test_what_the_script_returns() -> None:
    found = [b"me", 3, 250_000, 2, b"beat", [b"me", b"other"]]
    assert read_answer(found) == VisitAnswer("me", 3, 0.25, 2, "beat", ("me", "other"))


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
    "refused without a word": (ResponseError(""), "Redis refuses (no reason given)"),
    "not there": (RedisConnectionError("redis://:s3cret@localhost"), "Redis cannot be reached"),
    "not let in": (AuthenticationError("s3cret is wrong"), "Redis cannot be reached"),
    "the network": (OSError(113, "No route to host"), "Redis cannot be reached"),
    "anything": (RedisError("s3cret"), "Redis cannot be reached"),
}


@pytest.mark.parametrize(("error", "said"), WORDS.values(), ids=WORDS)
def test_why_redis_is_of_no_use(error: Exception, said: str) -> None:
    assert words(error) == said


def test_the_script_is_there() -> None:
    assert "redis.call" in SCRIPT


async def test_all_gateways_of_a_key_meet_at_one_name_in_one_slot() -> None:
    """Redis Cluster keeps together what has the same text between braces."""
    assert Table("redis://localhost", "tag", "me")._name == "{sealgate:tag}"


class Channel:
    """A subscription that hears this, and then ends."""

    def __init__(self, *heard: dict[str, Any]) -> None:
        self._heard = heard

    async def listen(self) -> AsyncIterator[dict[str, Any]]:
        for one in self._heard:
            yield one


async def test_only_what_was_said_is_passed_on() -> None:
    client: Any = SimpleNamespace(register_script=lambda _: None)
    channel: Any = Channel({"type": "subscribe", "data": 1}, {"type": "message", "data": b"said"})
    heard: list[bytes] = []
    await Session(client, channel, "{sealgate:tag}", "me").listen(heard.append)
    assert heard == [b"said"]
