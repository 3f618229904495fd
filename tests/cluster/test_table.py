"""What goes to Redis and comes back, and what is said of a Redis that is of no use."""

from typing import Any

import pytest
from redis.exceptions import AuthenticationError, RedisError, ResponseError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from rig.hand_host import HandHost
from sealgate.cluster.messages import MessageError
from sealgate.cluster.redis_group import Sharer, read_answer, shared_scheduler, words
from sealgate.keys.key import Secret
from sealgate.limits.pacer import PacerSettings

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


def sharer_of(subject: str, host: HandHost) -> Any:
    sharing = shared_scheduler("main", subject, URL, PacerSettings(), host).sharing
    assert isinstance(sharing, Sharer)
    return sharing


async def test_redis_is_told_no_key_and_nobody_its_password() -> None:
    sharer = sharer_of("https://a ak-public-1", HandHost())
    assert "ak-public-1" not in sharer._group._name
    assert "s3cret" not in repr(URL)
