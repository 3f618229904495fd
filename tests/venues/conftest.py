import subprocess
import sys

import pytest

from venues.through import HERE, Case, load

SEED, ROUNDS = "1", "6"


@pytest.fixture(scope="session")
def cases() -> dict[str, list[Case]]:
    """Return what ccxt signed, by venue: now, and for venues that it has no more, when it had them."""
    oracle = [sys.executable, "-m", "venues.oracle", SEED, ROUNDS]
    signed = subprocess.run(oracle, cwd=HERE.parent, check=True, capture_output=True, text=True).stdout
    return load(signed) | load((HERE / "recorded.jsonl").read_text("utf-8"))
