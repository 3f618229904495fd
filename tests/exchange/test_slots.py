"""Who gets a connection to the upstream when there are not enough of them."""

import asyncio

import pytest

from rig.wire import let_pass
from sealgate.exchange.pool import ConnectionSlots
from sealgate.venues.routes import Lane

LONG_S = 30.0


def fill(slots: ConnectionSlots, lane: Lane) -> int:
    """Take all places that a lane can have, and return how many there were."""
    count = 0
    while slots.enter_at_once(lane):
        count += 1
    return count


@pytest.mark.parametrize(
    ("size", "reads", "orders", "cancels"), [(32, 24, 8, 4), (4, 3, 1, 1), (2, 1, 1, 1), (1, 1, 0, 1)]
)
def test_each_lane_leaves_room_for_the_more_urgent(size: int, reads: int, orders: int, cancels: int) -> None:
    slots = ConnectionSlots(size)
    assert (fill(slots, Lane.READ), fill(slots, Lane.ORDER), fill(slots, Lane.CANCEL)) == (
        reads,
        orders,
        cancels,
    )


@pytest.mark.parametrize(("size", "orders", "reads"), [(32, 28, 4), (4, 3, 1), (2, 1, 1), (1, 1, 0)])
def test_orders_leave_some_room_for_reads(size: int, orders: int, reads: int) -> None:
    slots = ConnectionSlots(size)
    assert (fill(slots, Lane.ORDER), fill(slots, Lane.READ)) == (orders, reads)


def test_cancels_can_have_it_all() -> None:
    slots = ConnectionSlots(32)
    assert fill(slots, Lane.CANCEL) == 36
    assert not slots.enter_at_once(Lane.ORDER)


async def test_a_place_goes_to_the_most_urgent_that_waits() -> None:
    slots, served = ConnectionSlots(1), list[Lane]()
    assert fill(slots, Lane.CANCEL) == 2

    async def wait(lane: Lane) -> None:
        await slots.enter(lane, LONG_S)
        served.append(lane)
        slots.leave(lane)

    async with asyncio.timeout(LONG_S), asyncio.TaskGroup() as tasks:
        for lane in (Lane.READ, Lane.ORDER, Lane.CANCEL):
            tasks.create_task(wait(lane))
        await let_pass(0)
        assert dict(slots.waiting) == {Lane.READ: 1, Lane.ORDER: 1, Lane.CANCEL: 1}
        slots.leave(Lane.CANCEL)
        slots.leave(Lane.CANCEL)
    assert served[0] is Lane.CANCEL
    assert set(served) == set(Lane)
    assert not any(slots.waiting.values())


async def test_who_waits_in_vain_leaves_nothing_behind() -> None:
    slots = ConnectionSlots(1)
    fill(slots, Lane.READ)
    with pytest.raises(TimeoutError):
        await slots.enter(Lane.READ, 0.0)
    gone = asyncio.ensure_future(slots.enter(Lane.READ, LONG_S))
    await let_pass(0)
    gone.cancel()
    slots.leave(Lane.READ)  # in the same turn of the loop
    with pytest.raises(asyncio.CancelledError):
        await gone
    assert fill(slots, Lane.READ) == 1
    assert not any(slots.waiting.values())


async def test_who_goes_as_the_place_comes_gives_it_back() -> None:
    slots = ConnectionSlots(1)
    fill(slots, Lane.READ)
    gone = asyncio.ensure_future(slots.enter(Lane.READ, LONG_S))
    await let_pass(0)
    slots.leave(Lane.READ)
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    assert fill(slots, Lane.READ) == 1
