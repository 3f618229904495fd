"""The pools that a key's requests pass: which are told, and what goes on while one is closed."""

from dataclasses import replace

import pytest

from rig.key_pools import ACCOUNT, ADDRESS, KEY, all_of, member, place, pool
from sealgate.limits.pool import SHUT_OUT
from sealgate.limits.status import LimitStatus, PacerStatus, PoolStatus
from sealgate.observe.pools import (
    MOST_TOLD,
    KeyPool,
    PoolState,
    closed_in_words,
    open_pools_of,
    pools_of,
    state_in_words,
)
from sealgate.observe.status import key_status
from sealgate.venues.limit_rules import ALL, PoolRule
from sealgate.venues.replies import Scope
from sealgate.venues.routes import Auth, Lane, Permission, Route

LIMIT = LimitStatus(
    20.0, 1.0, 0.5, 0, is_foreign_use=False, words="20 per 1 s", low=20.0, high=20.0, next_step=""
)
WEIGHT = PoolRule("weight", Scope.ADDRESS)
ORDERS = PoolRule("orders", Scope.ACCOUNT, lanes=frozenset({Lane.ORDER}))
PATH = PoolRule("path", Scope.KEY, per="route")
PUBLIC = PoolRule("public", Scope.ADDRESS, is_open=True)
BINANCE = member(WEIGHT, ORDERS)
AT_ORDERS, AT_WEIGHT = place("orders", ACCOUNT), place("weight", ADDRESS)


def at(**pools: PoolStatus) -> PacerStatus:
    places = {"orders": AT_ORDERS, "weight": AT_WEIGHT, "ban": place(SHUT_OUT, ADDRESS), "all": place(ALL)}
    return PacerStatus({}, {places[name]: status for name, status in pools.items()})


def test_a_refusal_of_orders_closes_their_pool_and_not_the_key() -> None:
    status = at(orders=PoolStatus(6.5, (LIMIT,)), weight=PoolStatus(limits=(LIMIT,)))
    key = key_status("main", "spot", status, BINANCE)
    pools = all_of(key.pools)
    assert (pools["orders"].state, pools["orders"].pause_s) == (PoolState.CLOSED, 6.5)
    assert (pools["weight"].state, pools["weight"].pause_s) == (PoolState.OPEN, 0.0)
    assert (key.pause_s, key.spent_s, key.has_pools) == (0.0, 0.0, True)
    assert closed_in_words(key.pools) == "orders: closed for 7 s; cancels and reads go on"


def test_the_key_is_paused_where_all_its_requests_pass_the_closed_pool() -> None:
    key = key_status("main", "spot", at(weight=PoolStatus(3.0)), BINANCE)
    assert key.pause_s == 3.0
    assert closed_in_words(key.pools) == "weight: closed for 3 s"
    spent = key_status("main", "spot", at(weight=PoolStatus(spent_s=3.0)), BINANCE)
    assert (spent.pause_s, spent.spent_s) == (0.0, 3.0)
    assert closed_in_words(spent.pools) == "weight: nothing left for 3 s"


def test_a_ban_closes_all_pools_of_whom_it_shuts_out() -> None:
    key = key_status("main", "spot", at(ban=PoolStatus(840.0), orders=PoolStatus(900.0)), BINANCE)
    assert [(one.state, one.pause_s) for one in key.pools] == [
        (PoolState.BANNED, 900.0),
        (PoolState.BANNED, 840.0),
    ]
    assert key.pause_s == 840.0
    assert [state_in_words(one) for one in key.pools] == ["banned for 15 min", "banned for 14 min"]


def test_a_ban_of_an_only_pool_says_so() -> None:
    (found,) = pools_of(at(all=PoolStatus(60.0, is_banned=True)), member()).told
    assert (found.state, found.passes, found.is_whole) == (PoolState.BANNED, "all requests", True)


@pytest.mark.parametrize(
    ("rule", "passes"),
    [
        (WEIGHT, "all requests"),
        (ORDERS, "orders"),
        (PUBLIC, "requests without a key"),
        (PoolRule("signed", Scope.KEY, is_signed=True), "signed requests"),
        (PoolRule("x", Scope.KEY, lanes=frozenset({Lane.ORDER, Lane.CANCEL})), "cancels and orders"),
        (PoolRule("x", Scope.KEY, lanes=frozenset(Lane)), "cancels, orders and reads"),
        (PoolRule("x", Scope.KEY, routes=frozenset({("GET", "/a"), ("HEAD", "/a")})), "requests to /a"),
        (PoolRule("x", Scope.KEY, routes=frozenset({("GET", "/a"), ("PUT", "/b")})), "requests to 2 paths"),
        (
            PoolRule("x", Scope.KEY, routes=frozenset({("GET", "/v1/a/{id}"), ("PUT", "/v1/b")})),
            "requests to 2 paths below /v1",
        ),
        (
            PoolRule("x", Scope.KEY, is_signed=True, outside=frozenset({("GET", "/v1/a/{id}")})),
            "all signed requests except those to /v1/a/{id}",
        ),
        (
            PoolRule("x", Scope.KEY, outside=frozenset({("GET", "/a"), ("GET", "/b")})),
            "all requests except those to 2 paths",
        ),
    ],
)
def test_which_requests_pass_a_pool_in_words(rule: PoolRule, passes: str) -> None:
    found = pools_of(PacerStatus({}, {}), member(rule, is_open=rule.is_open)).told
    assert [one.passes for one in found] == [passes]


def route(template: str) -> Route:
    return Route(template, Permission.READ, Auth.SIGNED, Lane.READ)


def test_a_request_that_no_pool_is_about_has_one_of_its_own() -> None:
    membership = member(ORDERS)
    membership.pools_of("GET", route("/balance"))
    assert [one.passes for one in pools_of(PacerStatus({}, {}), membership).told] == [
        "orders",
        "all other requests",
    ]


def test_of_many_parts_those_with_most_to_tell_are_told_and_the_others_counted() -> None:
    membership, seen = member(PATH, ORDERS), {}
    for number in range(MOST_TOLD + 20):
        (at_path,) = membership.pools_of("GET", route(f"/{number}"))
        seen[at_path] = PoolStatus(limits=(replace(LIMIT, used_ratio=number / 100),))
    membership.pools_of("GET", route("/unused"))  # of which the pacer tells nothing
    first, *_ = seen
    seen[first] = PoolStatus(2.0)
    told, more = pools_of(PacerStatus({}, seen), membership)
    labels = [one.label for one in told]
    assert labels[0] == "path GET /0"  # it is closed; the others are those that are fullest, in their order
    assert labels[1:] == [f"path GET /{number}" for number in range(21, MOST_TOLD + 20)]
    assert more == 20 + 2


def test_a_part_stops_nothing_else() -> None:
    paths = [pool(pool="path", of=f"GET /{name}", pause_s=2.0) for name in "abcde"]
    assert closed_in_words(paths[:1]) == "path GET /a: closed for 2 s; everything else goes on"
    assert closed_in_words(paths) == (
        "path GET /a: closed for 2 s; path GET /b: closed for 2 s; path GET /c: closed for 2 s; "
        "2 more pools closed; everything else goes on"
    )


def test_a_pool_of_some_paths_is_told_with_which_requests_pass_it() -> None:
    some = pool(pool="orders", passes="requests to 9 paths", pause_s=7.0)
    assert closed_in_words([some]) == (
        "orders (requests to 9 paths): closed for 7 s; everything else goes on"
    )


def lanes(name: str, *of: str) -> KeyPool:
    return pool(pool=name, lanes=of, pause_s=1.0)


def test_nothing_goes_on_if_each_lane_is_closed() -> None:
    both = lanes("trade", "cancel", "order"), lanes("reads", "read")
    assert closed_in_words(both) == "trade: closed for 1 s; reads: closed for 1 s"
    assert closed_in_words([pool()]) == ""


def test_pools_of_requests_without_a_key_are_told_where_no_key_has_them() -> None:
    of_key, of_open = member(WEIGHT, PUBLIC), member(WEIGHT, PUBLIC, is_open=True)
    known = PacerStatus({}, {place("public", ADDRESS): PoolStatus(limits=(LIMIT,))})
    assert [one.pool for one in open_pools_of(known, of_open, [of_key])] == ["public"]
    assert open_pools_of(PacerStatus({}, {}), of_open, [of_key]) == ()


def test_a_pool_that_requests_without_a_key_only_might_pass_is_not_told() -> None:
    of_key, of_open = member(ORDERS, PATH), member(ORDERS, PATH, is_open=True)
    (at_path,) = of_open.pools_of("GET", route("/book"))
    known = {place("orders", ADDRESS): PoolStatus(limits=(LIMIT,)), at_path: PoolStatus(limits=(LIMIT,))}
    assert open_pools_of(PacerStatus({}, known), of_open, [of_key]) == ()
    closed = known | {at_path: PoolStatus(2.0)}
    assert [one.label for one in open_pools_of(PacerStatus({}, closed), of_open, [of_key])] == [
        "path GET /book"
    ]


def test_the_only_pool_of_requests_without_a_key_is_told_once_it_was_met() -> None:
    of_key, of_open = member(), member(is_open=True)

    def told(status: PoolStatus) -> list[str]:
        pacer = PacerStatus({}, {place(ALL, ADDRESS): status})
        return [one.pool for one in open_pools_of(pacer, of_open, [of_key])]

    assert told(PoolStatus(limits=(LIMIT,))) == []
    assert told(PoolStatus(limits=(replace(LIMIT, seen=1),))) == ["all"]
    assert told(PoolStatus(1.0)) == ["all"]


def test_a_pool_of_the_address_is_the_same_for_all_keys() -> None:
    shared = all_of(pools_of(at(), BINANCE).told)
    assert (shared["weight"].is_shared, shared["orders"].is_shared) == (True, False)
    assert KEY in BINANCE.subjects
