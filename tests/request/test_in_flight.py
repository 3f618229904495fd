"""Requests in flight: which of them can be stopped, and who is waited for."""

import asyncio

from rig.wire import PATIENCE_S, let_pass
from sealgate.errors import Refusal
from sealgate.request.context import InFlightRequests, RequestContext, Stage

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


async def test_only_what_waits_in_the_gateway_is_stopped_and_once() -> None:
    in_flight, tasks = InFlightRequests(), {}
    for stage in Stage:
        context = RequestContext(stage.name, 0.0, "POST")
        tasks[stage] = asyncio.create_task(waiting(context, stage))
        in_flight.begin(context)
    await let_pass(0)
    assert [in_flight.stop(lambda _: REFUSAL) for _ in range(2)] == [2, 0]
    stopped, going_on = await asyncio.wait(tasks.values(), timeout=0)
    for task in going_on:
        task.cancel()
    await asyncio.gather(*going_on, return_exceptions=True)
    assert {stage for stage, task in tasks.items() if task in stopped} == {Stage.QUEUE, Stage.UPSTREAM}


async def test_a_bot_that_hangs_up_as_it_is_stopped_is_not_answered() -> None:
    context = RequestContext("1", 0.0, "POST")
    task = asyncio.create_task(waiting(context, Stage.QUEUE))
    await let_pass(0)
    assert context.stop(REFUSAL)
    context.hang_up()
    await asyncio.wait({task})
    assert task.cancelled()


async def test_an_old_upstream_is_waited_for_and_not_the_new_one() -> None:
    in_flight = InFlightRequests()
    first, second = (RequestContext(name, 0.0, "GET") for name in "12")
    first.carrier, second.carrier = "old", "new"
    in_flight.begin(first)
    in_flight.begin(second)
    old = asyncio.create_task(in_flight.wait_until_idle(None, "old"))
    everything = asyncio.create_task(in_flight.wait_until_idle(None))
    await let_pass(0)
    await in_flight.wait_until_idle(0.001)  # the time is over
    in_flight.end(first)
    await asyncio.wait_for(old, PATIENCE_S)
    assert not everything.done()
    in_flight.end(second)
    await everything
