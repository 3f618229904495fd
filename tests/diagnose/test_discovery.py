"""`discover` against the sandbox in every scheme that the configuration allows, in virtual time."""

import asyncio
import base64
import contextlib
import hmac
import itertools
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, cast, get_args

import pytest

from rig.station import make_config
from rig.upstream import Act, Received, Script, Upstream, hold_until, running_upstream, say, say_and_close
from rig.wire import OK, reply
from sealgate.diagnose.probe import Discovery, ProbeSpec, direct_upstream, read
from sealgate.diagnose.schemes import End, ProbeResult, SearchEnd
from sealgate.exchange.answer import Answer
from sealgate.exchange.failure import Failure, FailureKind
from sealgate.exchange.pool import Upstream as Pool
from sealgate.machine.system import System
from sealgate.sandbox import system as sandbox_system
from sealgate.sandbox.models.control import JournalEntry, JournalQuery
from sealgate.sandbox.server import Sandbox, running_sandbox
from sealgate.sandbox.settings import SandboxSettings, SecretIs, SignatureEncoding, SignedTarget

SPACING_S = 0.5
# Each way with one of the targets; tests/diagnose/test_schemes.py has all of them.
WAYS = itertools.product(get_args(SignatureEncoding), get_args(SecretIs))
SCHEMES = [(*way, target) for way, target in zip(WAYS, itertools.cycle(get_args(SignedTarget)))]
FIRST_MS = 1_790_000_000_000
PATH = "/v1/trade/symbols/list"


@dataclass
class Time:
    """One time for both sides; it passes only where the search pauses."""

    now: float = 0.0
    pauses: list[float] = field(default_factory=list)


class SearchHost(System):
    def __init__(self, time: Time) -> None:
        super().__init__()
        self.time = time

    def now(self) -> float:
        return self.time.now

    def wall(self) -> float:
        return FIRST_MS / 1000 + self.time.now

    async def sleep(self, seconds: float) -> None:
        self.time.pauses.append(seconds)
        self.time.now += seconds


class ExchangeSystem(sandbox_system.System):
    def __init__(self, time: Time) -> None:
        super().__init__()
        self.time = time

    def wall_ms(self) -> int:
        return FIRST_MS + round(self.time.now * 1000)

    def steady_s(self) -> float:
        return self.time.now


@dataclass
class Rehearsal:
    sandbox: Sandbox
    time: Time

    async def search(self, path: str = PATH, **tables: Any) -> tuple[SearchEnd, list[ProbeResult]]:
        sandbox = self.sandbox
        key = {"api_key": sandbox.api_key, "secret": "env:SECRET"} | tables.pop("key", {})
        config = make_config(sandbox.base_url, keys={"main": key}, **tables)
        path, _, query = path.partition("?")
        spec = ProbeSpec("main", path, query or "limit=1", SPACING_S)
        discovery = Discovery(config, spec, {"SECRET": sandbox.api_secret}, SearchHost(self.time))
        async with direct_upstream(config) as upstream:
            *heard, finding = [step async for step in discovery.run(upstream)]
        return cast("SearchEnd", finding), cast("list[ProbeResult]", heard)

    @property
    def journal(self) -> list[JournalEntry]:
        journal = self.sandbox.exchange.journal
        return journal.since(cast("Any", Query(JournalQuery(since=0)))).entries


@dataclass
class Query:
    input: JournalQuery


@contextlib.asynccontextmanager
async def rehearsal(**settings: Any) -> AsyncIterator[Rehearsal]:
    time = Time()
    async with running_sandbox(SandboxSettings(**settings), system=ExchangeSystem(time)) as sandbox:
        yield Rehearsal(sandbox, time)


@pytest.mark.parametrize(("number", "scheme"), list(enumerate(SCHEMES)))
async def test_every_scheme(number: int, scheme: tuple[str, str, str]) -> None:
    """Also with a clock that is far off and a limit that is hardly more than the search needs."""
    async with rehearsal(
        **dict(zip(("signature_encoding", "secret_is", "signed_target"), scheme, strict=True)),
        check_first=("timestamp", "signature")[number % 2],
        skew_ms=-86_400_000,
        limit_kind="sliding_log",
        limit_requests=3,
        limit_window_s=1.0,
        limit_by="all",
    ) as there:
        finding, heard = await there.search()
        assert finding.end is End.FOUND
        assert finding.way is not None
        assert (*finding.way, finding.target) == scheme
        assert len(there.journal) == len(heard) + 1 <= 20
        assert {entry.method for entry in there.journal} == {"GET"}
        assert {entry.target for entry in there.journal} <= {"/v1/trade/time", PATH, f"{PATH}?limit=1"}
        assert {entry.verdict for entry in there.journal} <= {"ok", "signature_invalid", "validation"}
        assert set(there.time.pauses) == {SPACING_S}


@pytest.mark.parametrize(
    ("window_s", "requests", "end", "limited"), [(4.0, 3, End.FOUND, 1), (5.0, 1, End.LIMITED, 3)]
)
async def test_a_429_is_waited_out_but_not_for_ever(
    window_s: float, requests: int, end: End, limited: int
) -> None:
    async with rehearsal(
        limit_kind="fixed_from_first",
        limit_requests=requests,
        limit_window_s=window_s,
        limit_by="all",
        signature_encoding="base64",
    ) as there:
        finding, heard = await there.search()
        statuses = [entry.status for entry in there.journal]
    assert finding.end is end
    assert statuses.count(429) == limited
    waited = zip(heard, there.time.pauses[1:], strict=False)
    assert all(pause_s >= (one.retry_after_s or 0.0) for one, pause_s in waited)


@pytest.mark.parametrize(
    ("settings", "path", "tables", "end"),
    [
        ({"public_symbols": True}, PATH, {}, End.PATH_OPEN),
        ({}, "/v1/trade/nowhere", {}, End.PATH_CLOSED),
        ({}, PATH, {"key": {"api_key": "ak-of-nobody"}}, End.KEY_UNKNOWN),
        ({}, PATH, {"signing": {"header_prefix": "X-OTHER-"}}, End.HEADERS_UNKNOWN),
        ({}, PATH, {"clock": {"path": "/v1/trade/nowhere"}}, End.FOUND),
        ({"skew_ms": 60_000}, PATH, {"clock": {"path": "/v1/trade/nowhere"}}, End.FOUND),
        ({"clock_limit_ms": 1, "skew_ms": 60_000}, PATH, {"clock": {"path": "/v1/trade/nowhere"}}, End.FOUND),
        ({"signed_target": "path_and_query"}, f"{PATH}?a=%2C", {}, End.FOUND),
    ],
)
async def test_ends(settings: dict[str, Any], path: str, tables: dict[str, Any], end: End) -> None:
    async with rehearsal(**settings) as there:
        finding, _ = await there.search(path, **tables)
    assert finding.end is end


async def test_an_address_that_is_not_the_keys_tells_as_much() -> None:
    """The exchange looks at the address after the signature."""
    async with rehearsal(secret_is="hex") as there:
        finding, _ = await there.search("/v1/trade/user/0xabc/positions")
    assert (finding.end, finding.words) == (End.FOUND, "403 Address mismatch")


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
            found = await search_at(upstream.base_url, Time(second), {"encoding": configured})
            assert found.end is End.FOUND
            assert found.way is not None
            assert found.way.encoding == encoding


async def search_at(
    base_url: str, time: Time | None = None, signing: dict[str, str] | None = None
) -> SearchEnd:
    config = make_config(base_url, signing=signing or {})
    spec = ProbeSpec("main", PATH, "limit=1", SPACING_S)
    discovery = Discovery(config, spec, {"EXCHANGE_SECRET": "s"}, SearchHost(time or Time()))
    async with direct_upstream(config) as upstream:
        steps = [step async for step in discovery.run(upstream)]
    return cast("SearchEnd", steps[-1])


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
    async with direct_upstream(make_config(upstream.base_url)) as pool:
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
    config = make_config(upstream.base_url)
    with pytest.raises(LookupError):  # noqa: PT012 - it is the block that matters
        async with direct_upstream(config) as pool:
            asking = asyncio.create_task(read(pool, TARGET))
            await upstream.until_received(1)
            raise LookupError
    answer = await asking
    assert isinstance(answer, Failure)
