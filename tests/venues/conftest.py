import json
from urllib.parse import urlsplit

import pytest

from venues.calls import GONE, VENUES
from venues.through import HERE, Call, Case, is_at, load, printed_by

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
        calls = found.setdefault(row["venue"], [])
        if is_at(row["venue"], row["host"]):
            calls.append(Call(row["method"], row["path"], row["is_signed"]))
    return found


@pytest.fixture(scope="session")
def asked_by_ccxt() -> dict[str, list[Case]]:
    """Return what ccxt's own methods send to each venue."""
    return {
        name: [request for request in requests if is_at(name, urlsplit(request["url"]).netloc)]
        for name, requests in load(printed_by("venues.unified")).items()
    }


@pytest.fixture(scope="session")
def by_verb() -> dict[str, dict[str, set[Call]]]:
    """Return what ccxt's own methods that create, edit and cancel orders send, by venue and verb."""
    found: dict[str, dict[str, set[Call]]] = {}
    names = [name for name in VENUES if name not in GONE]
    for row in map(json.loads, printed_by("venues.oracle", "unified", *names).splitlines()):
        verbs = found.setdefault(row["venue"], {"create": set(), "edit": set(), "cancel": set()})
        if is_at(row["venue"], row["host"]):
            verbs[row["verb"]].add(Call(row["method"], row["path"], is_signed=True))
    return found


@pytest.fixture(scope="session")
def unified(by_verb: dict[str, dict[str, set[Call]]]) -> dict[str, set[Call]]:
    """Return what ccxt's cancelOrder, cancelAllOrders, cancelOrders and the like send, by venue."""
    return {venue: verbs["cancel"] for venue, verbs in by_verb.items()}


@pytest.fixture(scope="session")
def orders(by_verb: dict[str, dict[str, set[Call]]]) -> dict[str, set[Call]]:
    """Return what ccxt's createOrder, editOrder and the like send, by venue."""
    return {venue: verbs["create"] | verbs["edit"] for venue, verbs in by_verb.items()}
