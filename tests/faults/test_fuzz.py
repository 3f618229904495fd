"""The fuzz target holds for a short run."""

from bench.fuzz_target import Fuzz

SEED = 19


async def test_nothing_is_found_in_a_short_run() -> None:
    run = Fuzz(SEED, 1, lambda number: number < 40)
    await run.run()
    assert run.figures["requests arrived"] > run.figures["connections"] / 10
