"""Halts as values: whom they stop, what lifts them, and which routes they leave alone."""

import pytest

from sealgate.config.venues import built_in_venue
from sealgate.orders.halts import Halt, Halts, Origin, Scope, is_stoppable
from sealgate.venues.routes import RouteTable

GRID, MAIN = Scope("grid"), Scope(None, "main")
BOTH = Scope("grid", "main")
SPOT, GRID_AT_SPOT = Scope(exchange="spot"), Scope("grid", exchange="spot")


def halted(*scopes: Scope) -> Halts:
    halts = Halts()
    for at_ms, scope in enumerate(scopes, 1):
        halts = halts.extended(scope, at_ms)
    return halts


@pytest.mark.parametrize(
    ("scope", "stops_grid_main", "stops_grid_alt", "stops_maker_main"),
    [
        (Scope(), True, True, True),
        (GRID, True, True, False),
        (MAIN, True, False, True),
        (BOTH, True, False, False),
        (Scope("maker", "alt"), False, False, False),
        (SPOT, True, True, True),
        (GRID_AT_SPOT, True, True, False),
        (Scope("grid", "main", "spot"), True, False, False),
        (Scope(exchange="perp"), False, False, False),
        (Scope("grid", "main", "perp"), False, False, False),
    ],
)
def test_whom_a_halt_stops(
    scope: Scope,
    stops_grid_main: bool,
    stops_grid_alt: bool,
    stops_maker_main: bool,
) -> None:
    halts = halted(scope)
    pairs = (("grid", "main"), ("grid", "alt"), ("maker", "main"))
    found = [halts.find(*pair, "spot") is not None for pair in pairs]
    assert found == [stops_grid_main, stops_grid_alt, stops_maker_main]


def test_the_widest_halt_is_named() -> None:
    assert halted(BOTH, GRID, Scope()).find("grid", "main", "spot") == Halt(Scope(), 3)
    assert halted(BOTH, GRID).find("grid", "main", "spot") == Halt(GRID, 2)
    assert halted(GRID_AT_SPOT, SPOT).find("grid", "main", "spot") == Halt(SPOT, 2)
    assert halted(SPOT, GRID).find("grid", "main", "spot") == Halt(SPOT, 1)
    assert halted(SPOT, GRID).find("grid", "main", "perp") == Halt(GRID, 2)


def test_a_second_halt_of_the_same_keeps_who_and_why_of_the_first() -> None:
    first = Halts().extended(GRID, 1, Origin(1000, 7, "a bad day"))
    assert list(first.extended(GRID, 2, Origin(0, 8, "another"))) == [
        Halt(GRID, 1, Origin(1000, 7, "a bad day"))
    ]


@pytest.mark.parametrize(
    ("origin", "who"),
    [
        (Origin(), "an unknown user"),
        (Origin(0), "user 0"),
        (Origin(1000, 7, "a bad day"), "user 1000, process 7"),
    ],
)
def test_who_it_was_in_words(origin: Origin, who: str) -> None:
    assert origin.who == who


@pytest.mark.parametrize(
    ("resumed", "left"),
    [
        (Scope(), []),
        (GRID, [Scope(), MAIN, SPOT]),
        (MAIN, [Scope(), GRID, SPOT, GRID_AT_SPOT]),
        (BOTH, [Scope(), GRID, MAIN, SPOT, GRID_AT_SPOT]),
        (Scope("maker"), [Scope(), GRID, MAIN, BOTH, SPOT, GRID_AT_SPOT]),
        (SPOT, [Scope(), GRID, MAIN, BOTH]),
        (GRID_AT_SPOT, [Scope(), GRID, MAIN, BOTH, SPOT]),
        (Scope(exchange="perp"), [Scope(), GRID, MAIN, BOTH, SPOT, GRID_AT_SPOT]),
    ],
)
def test_what_is_within_the_scope_is_resumed_and_nothing_wider(resumed: Scope, left: list[Scope]) -> None:
    before = halted(Scope(), GRID, MAIN, BOTH, SPOT, GRID_AT_SPOT)
    halts = before.without(resumed)
    assert [halt.scope for halt in halts] == left
    assert {*halts, *before.within(resumed)} == {*before}
    assert len(list(before.within(resumed))) == len(list(before)) - len(left)
    assert bool(halts) is bool(left)


def test_halts_are_values() -> None:
    assert halted(GRID, MAIN) == Halts(Halt(MAIN, 2), Halt(GRID, 1))
    assert len({halted(GRID, MAIN), Halts(Halt(MAIN, 2), Halt(GRID, 1))}) == 1
    assert halted(GRID) != "grid"


@pytest.mark.parametrize(
    ("scope", "words", "resume"),
    [
        (Scope(), "all bots", "sealgate resume"),
        (GRID, "bot grid", "sealgate resume --bot grid"),
        (MAIN, "key main", "sealgate resume --key main"),
        (BOTH, "bot grid with key main", "sealgate resume --bot grid --key main"),
        (SPOT, "all bots at spot", "sealgate resume --exchange spot"),
        (
            Scope("grid", "main", "spot"),
            "bot grid with key main at spot",
            "sealgate resume --bot grid --key main --exchange spot",
        ),
    ],
)
def test_a_scope_in_words(scope: Scope, words: str, resume: str) -> None:
    assert (scope.words, scope.resume) == (words, resume)


@pytest.mark.parametrize(
    ("venue", "method", "path", "stoppable"),
    [
        ("service", "POST", "/order", True),
        ("service", "POST", "/order/modify", True),
        ("service", "PUT", "/anything", True),
        ("service", "POST", "/order/cancel", False),
        ("service", "DELETE", "/order/1", False),
        ("service", "POST", "/orders/1/cancel", False),
        ("service", "POST", "/cancel", True),
        ("binance", "DELETE", "/api/v3/anything", True),
        ("binance", "POST", "/api/v3/order/1/cancel", True),
        ("service", "GET", "/symbols/list", False),
        ("service", "GET", "/time", False),
        ("service", "GET", "/api-keys", False),
        ("binance", "POST", "/api/v3/order", True),
        ("binance", "POST", "/sapi/v1/capital/withdraw/apply", True),
        ("binance", "POST", "/sapi/v1/capital/Withdraw/apply.json", True),
        ("binance", "PUT", "/sapi/v1/capital/withdraw/apply", True),
        ("binance", "POST", "/sapi/v1/broker/subAccountApi", True),
        ("binance", "DELETE", "/sapi/v1/broker/subAccountApi", True),
        ("binance", "GET", "/sapi/v1/broker/subAccountApi", False),
        ("binance", "DELETE", "/api/v3/order", False),
        ("deribit", "POST", "/api/v2", True),
        ("deribit", "POST", "/api/v2/private/buy", True),
        ("deribit", "GET", "/api/v2/private/buy", True),
        ("deribit", "GET", "/api/v2/private/withdraw", True),
        ("deribit", "GET", "/api/v2/private/cancel_all", False),
        ("deribit", "GET", "/api/v2/private/get_positions", False),
        ("kraken", "POST", "/0/private/Withdraw", True),
        ("kraken", "GET", "/0/private/Withdraw", True),
        ("bitmex", "GET", "/api/v1/apiKey/disable", True),
        ("bitmex", "GET", "/api/v1/apiKey", False),
    ],
)
def test_a_halt_leaves_only_reads_and_cancels_alone(
    venue: str, method: str, path: str, stoppable: bool
) -> None:
    routes = RouteTable(built_in_venue(venue).routes)
    assert is_stoppable(routes.find(method, path)) is stoppable
