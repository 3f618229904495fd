"""The scheduler of a key that others use, too: who meets whom, and what Redis is told of it."""

from typing import Any

from gateway.clock.test_kept import HandHost
from sealgate.core.limits.pacer import PacerSettings
from sealgate.gateway.keys.key import Secret
from sealgate.gateway.sharing import Sharer, shared_scheduler

URL = Secret("redis://:s3cret@localhost/0")


def sharer_of(subject: str, host: HandHost) -> Any:
    sharing = shared_scheduler("main", subject, URL, PacerSettings(), host).sharing
    assert isinstance(sharing, Sharer)
    return sharing


async def test_the_same_subject_is_the_same_table_whatever_the_gateway() -> None:
    one, same, other = (
        sharer_of(subject, HandHost()) for subject in ("https://a ak-1", "https://a ak-1", "https://a ak-2")
    )
    assert one._table._name == same._table._name != other._table._name
    assert one._table._me != same._table._me


async def test_redis_is_told_no_key_and_nobody_its_password() -> None:
    sharer = sharer_of("https://a ak-public-1", HandHost())
    assert "ak-public-1" not in sharer._table._name
    assert "s3cret" not in repr(URL)


async def test_at_first_it_goes_alone_and_says_so() -> None:
    status = sharer_of("https://a ak-1", HandHost()).status()
    assert (status.replicas, status.is_lead, status.degraded) == (1, False, "Redis was not reached yet")
