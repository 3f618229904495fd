"""The reads of `discover`: how they are sent, and when nothing more is. test_schemes.py has the search."""

import asyncio
import base64
import hmac

import pytest

from rig.backends import the_exchange
from rig.station import make_config
from rig.upstream import Act, Received, Script, Upstream, hold_until, running_upstream, say, say_and_close
from rig.wire import OK, reply
from sealgate.diagnose.probe import Discovery, ProbeSpec, direct_upstream, read
from sealgate.diagnose.schemes import End, SearchEnd
from sealgate.exchange.answer import Answer
from sealgate.exchange.failure import Failure, FailureKind
from sealgate.exchange.pool import Upstream as Pool
from sealgate.machine.system import System

SPACING_S = 0.5
FIRST_MS = 1_790_000_000_000
PATH = "/v1/trade/symbols/list"


class SearchHost(System):
    """A host whose time passes only where the search pauses."""

    def __init__(self, second: float) -> None:
        super().__init__()
        self.time = second

    def now(self) -> float:
        return self.time

    def wall(self) -> float:
        return FIRST_MS / 1000 + self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds


# How each alphabet is written; an exchange that compares without the padding cares for nothing else.
ALPHABETS = {"base64": base64.standard_b64encode, "base64url": base64.urlsafe_b64encode}


def lenient_exchange(encoding: str) -> Script:
    """Take signatures in this encoding, padded or not."""

    def answer(request: Received) -> Act:
        stamp, signature = (request.head.value(b"X-SERVICE-" + name) for name in (b"TIMESTAMP", b"SIGNATURE"))
        assert stamp is not None
        assert signature is not None
        signed = stamp + b"GET" + request.target.partition(b"?")[0].removeprefix(b"/v1/trade")
        expected = ALPHABETS[encoding](hmac.digest(b"s", signed, "sha256"))
        if signature.rstrip(b"=") == expected.rstrip(b"="):
            return say(OK)
        return say(reply(b"401 Unauthorized", b'{"detail": "Invalid HMAC signature"}'))

    return answer


@pytest.mark.parametrize("encoding", ALPHABETS)
@pytest.mark.parametrize("configured", ALPHABETS)
async def test_base64_is_never_taken_for_base64url_nor_the_reverse(encoding: str, configured: str) -> None:
    """One signature in four has no letter that tells the two apart; each of the 20 searches meets others."""
    async with running_upstream() as upstream:
        upstream.script = lenient_exchange(encoding)
        upstream.time = say(reply(b"404 Not Found", b"{}"))
        for second in range(20):
            found = await search_at(upstream.base_url, second, {"encoding": configured})
            assert found.end is End.FOUND
            assert found.way is not None
            assert found.way.encoding == encoding


async def search_at(base_url: str, second: float = 0, signing: dict[str, str] | None = None) -> SearchEnd:
    config = make_config(base_url, signing=signing or {})
    spec = ProbeSpec("main", PATH, "limit=1", SPACING_S)
    exchange = the_exchange(config)
    discovery = Discovery(config, exchange, spec, {"EXCHANGE_SECRET": "s"}, SearchHost(second))
    async with direct_upstream(exchange) as upstream:
        return await discovery.run(upstream, lambda _: None)


async def test_nobody_there() -> None:
    async with running_upstream() as upstream:
        url = upstream.base_url
    assert (await search_at(url)).end is End.UNREACHABLE


async def test_gone_after_the_time() -> None:
    async with running_upstream() as upstream:
        upstream.otherwise = say_and_close(b"")
        assert (await search_at(upstream.base_url)).end is End.TROUBLE


async def test_the_time_is_limited() -> None:
    async with running_upstream() as upstream:
        upstream.time = say(reply(b"429 Too Many Requests", b"{}"))
        assert (await search_at(upstream.base_url)).end is End.LIMITED


TARGET = "/v1/trade/symbols/list?a=%2C"


async def ask(upstream: Upstream) -> tuple[Answer | Failure, Pool]:
    async with direct_upstream(the_exchange(make_config(upstream.base_url))) as pool:
        return await read(pool, TARGET, b"X-A: 1\r\n"), pool


async def test_one_get_as_it_was_written(upstream: Upstream) -> None:
    answer, _ = await ask(upstream)
    assert isinstance(answer, Answer)
    assert (answer.status, answer.body) == (200, b'{"ok":true}')
    (received,) = upstream.received
    assert received.raw == (
        f"GET {TARGET} HTTP/1.1\r\nHost: 127.0.0.1:{upstream.port}\r\nX-A: 1\r\n\r\n".encode()
    )


async def test_a_reply_that_is_lost_is_not_asked_for_again(upstream: Upstream) -> None:
    upstream.answers.append(say_and_close())
    answer, _ = await ask(upstream)
    assert isinstance(answer, Failure)
    assert answer.kind is FailureKind.LOST
    assert len(upstream.received) == 1


async def test_the_connection_ends_with_the_block_also_where_that_is_left_by_an_error(
    upstream: Upstream,
) -> None:
    never = asyncio.Event()
    upstream.answers.append(hold_until(never, say(b"")))
    exchange = the_exchange(make_config(upstream.base_url))
    with pytest.raises(LookupError):  # noqa: PT012 - it is the block that matters
        async with direct_upstream(exchange) as pool:
            asking = asyncio.create_task(read(pool, TARGET))
            await upstream.until_received(1)
            raise LookupError
    answer = await asking
    assert isinstance(answer, Failure)
