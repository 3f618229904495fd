"""Single reads past the gateway's line: what goes out, what comes back, and that the connections end."""

import asyncio

import pytest

from rig.station import make_config
from rig.upstream import Upstream, hold_until, say, say_and_close
from rig.wire import reply
from sealgate.core.attempts import Failure, FailureKind
from sealgate.gateway.probe import direct_upstream, read
from sealgate.gateway.upstream.answer import HELD_BYTES, Answer
from sealgate.gateway.upstream.pool import Upstream as Pool

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


async def test_nobody_there(upstream: Upstream) -> None:
    upstream.door.shut()
    answer, _ = await ask(upstream)
    assert isinstance(answer, Failure)
    assert (answer.kind, answer.is_unsent) == (FailureKind.UNREACHABLE, True)


async def test_a_reply_that_is_lost_is_not_asked_for_again(upstream: Upstream) -> None:
    upstream.answers.append(say_and_close())
    answer, _ = await ask(upstream)
    assert isinstance(answer, Failure)
    assert answer.kind is FailureKind.LOST
    assert len(upstream.received) == 1


async def test_of_a_reply_that_is_too_large_the_first_part_comes(upstream: Upstream) -> None:
    upstream.answers.append(say(reply(b"200 OK", b"x" * (4 * HELD_BYTES))))
    answer, _ = await ask(upstream)
    assert isinstance(answer, Answer)
    assert HELD_BYTES <= len(answer.body) < 4 * HELD_BYTES
    assert set(answer.body) == {ord("x")}


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
