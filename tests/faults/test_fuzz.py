"""The fuzz target holds for a short run, and finds each hole that was mended here once it is open again."""

import pytest

from bench.fuzz_target import FoundError, Fuzz
from rig.compiled import needs_sources
from sealgate.http import headers

SEED = 19


async def finding() -> str:
    """Return what the fuzz finds first."""
    with pytest.raises(FoundError) as caught:
        await Fuzz(SEED, 1, lambda number: number < 500, closed_within_s=1.0).run()
    return str(caught.value)


async def test_nothing_is_found_in_a_short_run() -> None:
    run = Fuzz(SEED, 1, lambda number: number < 40)
    await run.run()
    assert run.figures["requests arrived"] > run.figures["connections"] / 10


@needs_sources
async def test_a_name_that_is_compared_with_one_mark_only_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headers, "_canonical", lambda name: name.lower().replace(b"_", b"-"))
    assert "arrived, the gateway's own name where" in await finding()
