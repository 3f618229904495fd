"""What a new configuration brings is tried: which keys, which sessions, and what each answer says."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from rig.admitted import answer
from rig.generation import Scripted, backend_of
from rig.hand_host import HandHost
from sealgate.config import Config
from sealgate.errors import Refusal
from sealgate.exchange.answer import Answer
from sealgate.keys.key_health import BreakerState
from sealgate.server.reload import Trial, TrialError
from sealgate.venues.replies import Means

URL = "http://127.0.0.1:9"
ENVIRON = {"ONE": "secret one", "TWO": "secret two", "S1": "tok-1", "S2": "tok-2"}
READ, LIST = "/v1/trade/symbols/list", "/v1/trade/api-keys"
OK = answer(200, b"{}")
LISTED = answer(200, b'{"keys": [{"api_key": "ak-1"}]}')
INVALID = answer(401, b'{"detail": "Invalid API key"}')
MISMATCH = answer(401, b'{"detail": "Invalid HMAC signature"}')
ENDED = answer(401, b'{"detail": "Invalid session token"}')


def key(number: int = 1, secret: str = "ONE", session: str | None = None) -> dict[str, Any]:
    made = {"api_key": f"ak-{number}", "secret": f"env:{secret}"}
    return made if session is None else made | {"session": f"env:{session}"}


def config_of(url: str = URL, **keys: Any) -> Config:
    return Config.model_validate({"base_url": url, "keys": keys})


OLD = config_of(main=key(session="S1"))


@contextlib.asynccontextmanager
async def trial(new: Config, *answers: Answer | Exception) -> AsyncIterator[tuple[Trial, Scripted]]:
    host = HandHost()
    async with backend_of(OLD, host, ENVIRON) as before, backend_of(new, host, ENVIRON) as after:
        pipeline = Scripted(after, answers)
        yield Trial(pipeline, before, host), pipeline


TRIED: dict[str, tuple[Config, list[tuple[str, str]]]] = {
    "the same": (OLD, []),
    "another alias for it": (config_of(other=key(session="S1")), []),
    "another secret": (config_of(main=key(secret="TWO", session="S1")), [("main", READ)]),
    "another key": (config_of(main=key(2, session="S1")), [("main", READ), ("main", LIST)]),
    "another session": (config_of(main=key(session="S2")), [("main", LIST)]),
    "no session any more": (config_of(main=key()), []),
    "one more key": (config_of(main=key(session="S1"), alt=key(2)), [("alt", READ)]),
    "another exchange": (
        config_of("http://localhost:9", main=key(session="S1"), alt=key(2)),
        [("main", READ), ("alt", READ), ("main", LIST)],
    ),
}


@pytest.mark.parametrize(("new", "asked"), TRIED.values(), ids=TRIED)
async def test_what_is_tried(new: Config, asked: list[tuple[str, str]]) -> None:
    listed = answer(200, b'{"keys": [{"api_key": "ak-1"}, {"api_key": "ak-2"}]}')
    async with trial(new, *[OK if target == READ else listed for _, target in asked]) as (one, pipeline):
        assert await one.run() == []
        assert pipeline.asked == asked


DOUBTS: dict[str, tuple[Answer | Exception, str]] = {
    "another answer": (answer(404), "keys.main: a signed read was answered 404"),
    "a limit": (answer(429), "keys.main: a signed read was answered 429"),
    "the timestamp": (
        answer(401, b'{"detail": "Invalid timestamp"}'),
        "keys.main: a signed read was answered 401",
    ),
    "nobody there": (
        Refusal("upstream_unreachable", "The exchange gave no answer: nobody there."),
        "keys.main could not be tested: The exchange gave no answer: nobody there.",
    ),
}


@pytest.mark.parametrize(("reply", "doubt"), DOUBTS.values(), ids=DOUBTS)
async def test_what_says_nothing_of_a_key_is_told(reply: Answer | Exception, doubt: str) -> None:
    async with trial(config_of(main=key(secret="TWO", session="S1")), reply) as (one, _):
        assert await one.run() == [doubt]


REFUSED = {
    "an invalid key": (INVALID, "the exchange calls it invalid"),
    "a signature": (MISMATCH, "the exchange refuses the signature"),
    "an address": (
        answer(403, b'{"detail": "IP not in API key whitelist"}'),
        "this machine's IP address is not on its whitelist",
    ),
}


@pytest.mark.parametrize(("reply", "cause"), REFUSED.values(), ids=REFUSED)
async def test_what_speaks_against_a_key_is_an_error_with_its_fix(reply: Answer, cause: str) -> None:
    async with trial(config_of(main=key(secret="TWO")), reply) as (one, _):
        with pytest.raises(TrialError) as refused:
            await one.run()
    assert str(refused.value) == (
        f"keys.main: a signed read was answered {reply.status}: {cause};"
        " correct keys.main.api_key, its secret or [signing]"
    )


async def test_a_key_that_may_less_than_the_one_before_it_is_an_error() -> None:
    """Some exchanges answer so where they do not know a key at all."""
    denied = answer(403, b'{"detail": "API key lacks read permission"}')
    assert denied.verdict.means is Means.PERMISSION
    async with trial(config_of(main=key(2)), denied, denied) as (one, _):
        assert one._old is not None
        assert await one.run() == ["keys.main: a signed read was answered 403"]
        one._old.exchange.live_keys["main"].breaker.state = BreakerState(is_proven=True)
        with pytest.raises(
            TrialError, match="this key lacks a permission that the former key had; correct keys"
        ):
            await one.run()


NOT_LISTED = "keys.main.session: the exchange's list lacks the key; use a session token of the key's user"
SESSIONS: dict[str, tuple[Answer | Exception, list[str]]] = {
    "a list with the key": (LISTED, []),
    "a list without it": (answer(200, b'{"keys": []}'), [NOT_LISTED]),
    "no list": (answer(200, b"\xff"), [NOT_LISTED]),
    "another answer": (answer(500), ["keys.main.session: the list of keys was answered 500"]),
    "no time": (
        Refusal("deadline_exceeded", "The deadline of this request has passed."),
        ["keys.main.session could not be tested: The deadline of this request has passed."],
    ),
}


@pytest.mark.parametrize(("reply", "doubts"), SESSIONS.values(), ids=SESSIONS)
async def test_a_session_is_tried_by_the_list_of_keys(reply: Answer | Exception, doubts: list[str]) -> None:
    async with trial(config_of(main=key(session="S2")), reply) as (one, _):
        assert await one.run() == doubts


async def test_a_session_that_has_ended_is_an_error_with_its_fix() -> None:
    async with trial(config_of(main=key(session="S2")), ENDED) as (one, _):
        with pytest.raises(
            TrialError, match=r"401: the exchange refuses the token; store the token of a session that"
        ):
            await one.run()
