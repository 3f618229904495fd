"""The fuzz targets hold for a short run."""

from bench import fuzz_body, fuzz_segment
from bench.fuzz_target import Fuzz
from rig.compiled import needs_sources

SEED = 19


async def test_nothing_is_found_in_a_short_run() -> None:
    run = Fuzz(SEED, 1, lambda number: number < 40)
    await run.run()
    assert run.figures["requests arrived"] > run.figures["connections"] / 10


async def test_no_request_reaches_an_exchange_that_its_bot_did_not_name() -> None:
    run = fuzz_segment.Fuzz(SEED)
    await run.run(lambda number: number < 1_000)
    assert min(run.figures["arrived at spot"], run.figures["arrived at perp"]) > 20


@needs_sources  # it stops the clock
async def test_no_bot_gets_a_value_of_its_own_into_the_place_of_the_gateways() -> None:
    run = fuzz_body.Fuzz(SEED)
    for first in range(0, run.places * fuzz_body.IN_A_ROW, fuzz_body.IN_A_ROW):
        await run.run(first, (first + 30).__gt__)
    assert run.figures["arrived"] > run.places
