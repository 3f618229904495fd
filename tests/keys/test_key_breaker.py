"""One key as the exchange takes it or not: who passes, who is refused, and what is told once."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from rig.admitted import ticket
from rig.hand_host import HandHost
from rig.verdicts import judged
from rig.wire import let_pass
from sealgate.errors import Refusal
from sealgate.keys.key_breaker import KeyBreaker
from sealgate.keys.key_health import FIRST_GAP_S, KeyFault
from sealgate.request.context import InFlightRequests, RequestContext, Stage

INVALID = (401, b'{"detail": "Invalid API key"}')
MISMATCH = (401, b'{"detail": "Invalid HMAC signature"}')
TAKEN = (200, b"{}")


@pytest.fixture
def host() -> HandHost:
    return HandHost()


@pytest.fixture
def breaker(host: HandHost) -> KeyBreaker:
    return KeyBreaker("spot", "main", InFlightRequests().stop_signed, host)


def observe(
    breaker: KeyBreaker, reply: tuple[int, bytes], sent_at: float = 100.0
) -> Sequence[Mapping[str, Any]]:
    """Take a reply in; return what was logged."""
    with capture_logs() as logs:
        breaker.observe(reply[0], judged(*reply), sent_at)
    return logs


def disable(breaker: KeyBreaker, host: HandHost) -> Sequence[Mapping[str, Any]]:
    """Let the gateway's own read be refused; return what was logged."""
    observe(breaker, INVALID, host.boot)
    with capture_logs() as logs:
        breaker.conclude(judged(*INVALID), host.boot)
    return logs


def test_a_reply_to_a_bot_disables_nothing(host: HandHost, breaker: KeyBreaker) -> None:
    assert observe(breaker, INVALID, host.boot) == []
    breaker.check()


def test_a_disabled_key_lets_nobody_pass_and_says_when_it_is_tried(
    host: HandHost, breaker: KeyBreaker
) -> None:
    disable(breaker, host)
    for wait_s in (FIRST_GAP_S, 0.0, 0.0):
        with pytest.raises(Refusal) as refused:
            breaker.check()
        assert refused.value.retry_after_s == wait_s
        host.move(FIRST_GAP_S, FIRST_GAP_S, FIRST_GAP_S)
    assert (breaker.try_again(), breaker.try_again()) == (True, False)


def test_a_late_reply_to_what_was_sent_before_ends_no_rest(host: HandHost, breaker: KeyBreaker) -> None:
    disable(breaker, host)
    assert observe(breaker, TAKEN, host.boot - 1.0) == []
    assert breaker.state.fault is KeyFault.INVALID


def test_a_permission_that_its_own_read_lacks_shows_that_the_key_is_known(
    host: HandHost, breaker: KeyBreaker
) -> None:
    """Else a key that may trade and not read would stay disabled for ever."""
    disable(breaker, host)
    lacking = judged(403, b'{"detail": "API key lacks \'read\' permission"}')
    with capture_logs() as logs:
        breaker.conclude(lacking, host.boot)
    assert [one["event"] for one in logs] == ["key_enabled"]
    breaker.check()


def test_refused_signatures_are_told_when_they_are_many(breaker: KeyBreaker) -> None:
    logs = [observe(breaker, MISMATCH) for _ in range(4)]
    assert [len(one) for one in logs] == [0, 0, 1, 0]
    (told,) = logs[2]
    assert (told["event"], told["cause"]) == (
        "signatures_refused",
        "the exchange refused its last 3 signatures",
    )
    breaker.check()


def test_the_gateways_own_read_tells_enough(breaker: KeyBreaker) -> None:
    observe(breaker, MISMATCH)
    with capture_logs() as logs:
        breaker.conclude(judged(*MISMATCH), 0.0)
        breaker.conclude(judged(*MISMATCH), 0.0)
    assert [one["cause"] for one in logs] == ["the exchange refused its last signature"]


async def test_what_waits_with_this_key_is_refused_and_nothing_else(host: HandHost) -> None:
    in_flight = InFlightRequests()
    breaker, other = (
        KeyBreaker("spot", "main", in_flight.stop_signed, host),
        KeyBreaker("spot", "alt", in_flight.stop_signed, host),
    )
    waiting = {
        "signed": ("POST /order", breaker),
        "by session": ("GET /api-keys", breaker),
        "another's": ("POST /order", other),
        "not admitted yet": (None, breaker),
    }
    tasks, contexts = [], {}
    for name, (call, owner) in waiting.items():
        tasks.append(asyncio.create_task(let_pass(3600.0)))
        context = contexts[name] = RequestContext(name, 0.0, "POST", tasks[-1])
        context.breaker, context.ticket = owner, None if call is None else ticket(call)
        context.enter(Stage.QUEUE, 0.0)
        in_flight.begin(context)
    (told,) = disable(breaker, host)
    assert told["refused"] == 1
    refused = {name: context.refusal.slug for name, context in contexts.items() if context.refusal}
    assert refused == {"signed": "key_disabled"}
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
