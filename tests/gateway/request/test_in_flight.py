"""Requests under way: who is waited for, and which of them can be stopped."""

import asyncio

from sealgate.errors import Refusal
from sealgate.gateway.request.context import InFlightRequests, RequestContext, Stage

REFUSAL = Refusal("halted", "Orders are halted.")


async def waiting(context: RequestContext, stage: Stage) -> bool:
    """Wait in a stage for ever; return whether it was stopped rather than cancelled."""
    context._task = asyncio.current_task()
    context.enter(stage, 0.0)
    try:
        await asyncio.get_running_loop().create_future()
    except asyncio.CancelledError:
        if not context.take_back_stop():
            raise
    return True


async def test_only_what_waits_in_the_gateway_is_stopped() -> None:
    contexts = {stage: RequestContext(stage.name, 0.0, "POST") for stage in Stage}
    tasks = {stage: asyncio.create_task(waiting(context, stage)) for stage, context in contexts.items()}
    await asyncio.sleep(0)  # noqa: TID251 - let them begin
    in_flight = InFlightRequests()
    for context in contexts.values():
        in_flight.begin(context, None)
    assert in_flight.stop(lambda _: REFUSAL) == 2
    assert in_flight.stop(lambda _: REFUSAL) == 0  # once is enough
    assert await tasks[Stage.QUEUE]
    assert await tasks[Stage.UPSTREAM]
    for stage in (Stage.OWN, Stage.BOT):
        assert not tasks[stage].done()
        tasks[stage].cancel()
    await asyncio.gather(*tasks.values(), return_exceptions=True)


async def test_a_bot_that_hangs_up_is_not_answered_because_it_was_stopped_too() -> None:
    context = RequestContext("1", 0.0, "POST")
    task = asyncio.create_task(waiting(context, Stage.QUEUE))
    await asyncio.sleep(0)  # noqa: TID251 - let it begin
    assert context.stop(REFUSAL)
    context.hang_up()
    await asyncio.wait({task})
    assert task.cancelled()


async def test_waiting_for_one_carrier_or_for_all() -> None:
    in_flight, first, second = (
        InFlightRequests(),
        RequestContext("1", 0.0, "GET"),
        RequestContext("2", 0.0, "GET"),
    )
    await in_flight.wait_until_idle(None)
    in_flight.begin(first, "old")
    in_flight.begin(second, "new")
    old = asyncio.create_task(in_flight.wait_until_idle(None, "old"))
    everything = asyncio.create_task(in_flight.wait_until_idle(None))
    await asyncio.sleep(0)  # noqa: TID251 - let them begin
    await in_flight.wait_until_idle(0.001)  # the time is over
    in_flight.end(first)
    await old
    assert not everything.done()
    in_flight.end(second)
    await everything
    assert len(in_flight) == 0
