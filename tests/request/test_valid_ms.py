"""X-Gateway-Valid-Ms: the exchange itself refuses an order that reaches it too late, on real sockets."""

import asyncio
import math
from collections.abc import Iterator
from itertools import repeat

import pytest

from rig.acts import Act, Wire
from rig.backends import only
from rig.bot import met, request, told
from rig.station import Station
from rig.upstream import Received, Script, say, say_and_close
from rig.wire import OK, let_pass, reply

ORDER = b"/v1/trade/order"
WINDOW_MS = 5000
ROUNDING_MS = 3
LATE = b'{"detail": "Timestamp outside recv_window (5000ms). Server time: %d"}'


def order(valid_ms: object, body: bytes = b"{}", *fields: bytes) -> bytes:
    return request(b"POST", ORDER, f"X-Gateway-Valid-Ms: {valid_ms}".encode(), *fields, body=body)


def stamp(received: Received) -> int:
    return int(received.head.value(b"X-SERVICE-TIMESTAMP") or 0)


def exchange(station: Station, delays: Iterator[float]) -> Script:
    """Execute an order once a delay is over, if its timestamp is still within the window then."""

    def script(received: Received) -> Act:
        delay_s = next(delays)

        async def act(wire: Wire) -> None:
            await let_pass(delay_s)
            now_ms = station.upstream.now_ms()
            is_in_time = abs(now_ms - stamp(received)) <= WINDOW_MS
            await wire.write(OK if is_in_time else reply(b"401 Unauthorized", LATE % now_ms))

        return act

    return script


def bound_ms(station: Station) -> float:
    return (only(station.gateway.generation).exchange.clock.error_s() or 0.0) * 1000


async def test_a_late_order_is_no_fault_of_the_clock(station: Station) -> None:
    """It is sent once, the exchange's own words come back, and no sample is asked for."""
    valid_ms = math.ceil(100 + 2 * bound_ms(station))  # a busy machine has a wide bound
    station.upstream.script = exchange(station, repeat(2 * valid_ms / 1000))
    answer = await station.ask(order(valid_ms))
    assert met(answer) == (401, "refused", None, 1)
    assert b"recv_window" in answer.body
    clock = station.gateway.status().clock
    assert (clock.refusals, clock.trouble) == (0, None)


async def test_the_window_ends_when_it_should(station: Station) -> None:
    await station.ask(order(1000))
    (received,) = station.upstream.received
    end_ms = stamp(received) + WINDOW_MS
    error_ms = bound_ms(station)
    assert end_ms - 1000 <= received.at_ms + 1
    assert end_ms >= received.at_ms + 1000 - 2 * error_ms - ROUNDING_MS - 200


async def test_a_resend_goes_within_what_is_left_and_not_after(station: Station) -> None:
    limited = reply(b"429 Too Many Requests", b"{}", b"Retry-After: 0.05")
    station.upstream.answers.append(say(limited))
    assert (await station.ask(order(2000))).attempts == 2
    first, second = map(stamp, station.upstream.received)
    assert first - ROUNDING_MS <= second <= first, "both end together, whenever they were sent"
    station.upstream.answers.append(say(reply(b"429 Too Many Requests", b"{}", b"Retry-After: 30")))
    answer = await station.ask(order(500))
    assert (answer.outcome, answer.attempts) == ("refused", 1)
    assert answer.reason in ("rate_limited", "deadline_exceeded")


@pytest.mark.parametrize(("step_ms", "attempts"), [(-3000, 2), (3000, 3)])
async def test_a_clock_that_is_set_between_two_attempts_extends_nothing(
    station: Station, step_ms: int, attempts: int
) -> None:
    """Where it was set forward, the exchange takes the order for late once, and then it is stamped anew."""

    async def limit(wire: Wire) -> None:
        station.upstream.skew_ms = step_ms
        clock = only(station.gateway.generation).exchange.clock
        clock.due.set()
        await station.until(lambda: clock.status().steps == 1)
        await wire.write(reply(b"429 Too Many Requests", b"{}", b"Retry-After: 0.01"))

    judge = exchange(station, repeat(0.0))
    station.upstream.answers.append(limit)
    station.upstream.script = lambda received: (
        station.upstream.answers.popleft() if station.upstream.answers else judge(received)
    )
    assert met(await station.ask(order(800))) == (200, "done", None, attempts)
    last, started = station.upstream.received[-1], (await station.outcomes.until(1)).started
    ends_ms = stamp(last) + WINDOW_MS - last.at_ms  # from its arrival on
    arrived = station.gateway.system.now() - (asyncio.get_running_loop().time() - last.at)
    assert ends_ms <= (started - arrived) * 1000 + 800 + bound_ms(station) + ROUNDING_MS


async def test_the_fence_follows(station: Station) -> None:
    station.upstream.answers.append(say_and_close())
    answer = await station.ask(order(300))
    assert answer.outcome == "unknown"
    fence_ms, error_ms = int(answer.text("X-Gateway-Fence-Ms") or 0), bound_ms(station)
    end_ms = stamp(station.upstream.received[0]) + WINDOW_MS
    assert end_ms <= fence_ms <= end_ms + error_ms + ROUNDING_MS


async def test_the_time_behind_another_request_counts(station: Station) -> None:
    """Both heads are read at once; the second is served when the first is answered."""
    station.upstream.script = exchange(station, iter((0.4, 0.0)))
    async with station.bot() as bot:
        await bot.send(order(2000, b'{"n":1}') + order(200, b'{"n":2}'))
        first, second = await bot.reply(b"POST"), await bot.reply(b"POST")
    assert first.status == 200
    assert told(second) == (504, "not_sent", "deadline_exceeded")
    assert len(station.upstream.received) == 1
