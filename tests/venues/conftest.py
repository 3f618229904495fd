import json

import pytest

from venues.calls import GONE, VENUES
from venues.through import HERE, Call, Case, load, printed_by

SEED, ROUNDS = "1", "6"


@pytest.fixture(scope="session")
def cases() -> dict[str, list[Case]]:
    """Return what ccxt signed, by venue: now, and for venues that it has no more, when it had them."""
    return load(printed_by("venues.oracle", SEED, ROUNDS)) | load(
        (HERE / "recorded.jsonl").read_text("utf-8")
    )


@pytest.fixture(scope="session")
def every_call() -> dict[str, list[Call]]:
    """Return what ccxt knows of each venue."""
    found: dict[str, list[Call]] = {}
    names = [name for name in VENUES if name not in GONE]
    for row in map(json.loads, printed_by("venues.oracle", "calls", *names).splitlines()):
        found.setdefault(row["venue"], []).append(Call(row["method"], row["path"], row["is_signed"]))
    return found


@pytest.fixture(scope="session")
def asked_by_ccxt() -> dict[str, list[Case]]:
    """Return what ccxt's own methods send to each venue."""
    return load(printed_by("venues.unified"))


@pytest.fixture(scope="session")
def unified() -> dict[str, set[Call]]:
    """Return what ccxt's cancelOrder, cancelAllOrders, cancelOrders and the like send, by venue."""
    return _unified("cancel")


@pytest.fixture(scope="session")
def orders() -> dict[str, set[Call]]:
    """Return what ccxt's createOrder, editOrder and the like send, by venue."""
    return _unified("create", "edit")


def _unified(*verbs: str) -> dict[str, set[Call]]:
    found: dict[str, set[Call]] = {}
    names = [name for name in VENUES if name not in GONE]
    for row in map(json.loads, printed_by("venues.oracle", "unified", *names).splitlines()):
        calls = found.setdefault(row["venue"], set())
        if row["verb"] in verbs:
            calls.add(Call(row["method"], row["path"], is_signed=True))
    return found
