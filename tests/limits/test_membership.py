"""Which pools a request passes."""

import pytest

from sealgate.limits.membership import Membership, Subjects
from sealgate.venues.limit_rules import PoolRule
from sealgate.venues.replies import Scope
from sealgate.venues.routes import Auth, Lane, Permission, Route

OF_KEY = Subjects("key", "account", "here")
OF_NOBODY = Subjects("here", "here", "here")
ORDER = Route("/order", Permission.TRADE, Auth.SIGNED, Lane.ORDER)
CANCEL = Route("/order", Permission.TRADE, Auth.SIGNED, Lane.CANCEL)
BALANCE = Route("/balance", Permission.READ, Auth.SIGNED, Lane.READ)
BOOK = Route("/book", Permission.READ, Auth.OPEN, Lane.READ)
HISTORY = Route("/history", Permission.READ, Auth.KEY, Lane.READ)


def pools_of(rule: PoolRule, method: str, route: Route, **request: object) -> tuple[str, ...]:
    whose = OF_NOBODY if route.auth is Auth.OPEN else OF_KEY
    member = Membership((rule,), whose, is_open=route.auth is Auth.OPEN)
    return member.pools_of(method, route, **request)  # type: ignore[arg-type] # a query and a body


@pytest.mark.parametrize(
    ("scope", "route", "place"),
    [
        (Scope.KEY, ORDER, "key | all"),
        (Scope.ACCOUNT, ORDER, "account | all"),
        (Scope.ADDRESS, ORDER, "here | all"),
        (Scope.KEY, BOOK, "here | all"),
        (Scope.ADDRESS, BOOK, "here | all"),
    ],
)
def test_a_pool_belongs_to_whom_it_counts(scope: Scope, route: Route, place: str) -> None:
    assert pools_of(PoolRule("all", scope), "GET", route) == (place,)


RULES = {
    "a lane": (PoolRule("p", Scope.KEY, lanes=frozenset({Lane.ORDER})), {ORDER}),
    "a route": (PoolRule("p", Scope.KEY, routes=frozenset({("GET", "/balance")})), {BALANCE}),
    "a lane and a route": (
        PoolRule("p", Scope.KEY, lanes=frozenset({Lane.READ}), routes=frozenset({("GET", "/order")})),
        set(),
    ),
    "what is outside": (
        PoolRule("p", Scope.KEY, outside=frozenset({("GET", "/order")})),
        {BALANCE, BOOK, HISTORY},
    ),
    "what is open": (PoolRule("p", Scope.ADDRESS, is_open=True), {BOOK}),
    "what is not": (PoolRule("p", Scope.KEY, is_signed=True), {ORDER, CANCEL, BALANCE, HISTORY}),
}


@pytest.mark.parametrize(("rule", "members"), RULES.values(), ids=RULES)
def test_the_members_of_a_pool_meet_all_of_its_conditions(rule: PoolRule, members: set[Route]) -> None:
    routes = (ORDER, CANCEL, BALANCE, BOOK, HISTORY)
    passing = {route for route in routes if pools_of(rule, "GET", route)[0].split(" | ")[1] == "p"}
    assert passing == members


def test_a_request_that_no_rule_is_about_has_a_pool_of_its_key() -> None:
    """Nothing is known of its limit: that is no reason to let it through at any pace."""
    rule = PoolRule("orders", Scope.ACCOUNT, lanes=frozenset({Lane.ORDER}))
    assert pools_of(rule, "GET", BALANCE) == ("key | all",)


def test_a_pool_for_each_route_is_by_method_and_template() -> None:
    rule = PoolRule("path", Scope.ACCOUNT, per="route")
    assert pools_of(rule, "POST", ORDER) == ("account | path | POST /order",)
    assert pools_of(rule, "DELETE", CANCEL) == ("account | path | DELETE /order",)
    # RFC 9110 section 9.3.2: HEAD is GET without the content.
    assert pools_of(rule, "HEAD", BALANCE) == pools_of(rule, "GET", BALANCE)


PAIR = PoolRule("engine", Scope.ACCOUNT, per_parameter="/pair")
REQUESTS = {
    "a query": ({"query": "a=1&pair=XBTUSD"}, "account | engine | XBTUSD"),
    "a form": ({"body": b"pair=XBTUSD&volume=1"}, "account | engine | XBTUSD"),
    "JSON": ({"query": "a=1", "body": b'{"pair": "XBTUSD"}'}, "account | engine | XBTUSD"),
    "a number": ({"body": b'{"pair": 12}'}, "account | engine | 12"),
    "none": ({"query": "a=1"}, "account | engine"),
    "nothing at all": ({}, "account | engine"),
    "a list": ({"body": b'{"pair": ["XBTUSD"]}'}, "account | engine"),
    "no JSON": ({"body": b'{"pair"'}, "account | engine"),
    "no UTF-8": ({"body": b'{"pair": "\xff"}'}, "account | engine"),
    "too deep": ({"body": b'{"pair": ' + b"[" * 100_000}, "account | engine"),
    "a list in place of an object": ({"body": b'["pair"]'}, "account | engine"),
    "JSON after white space": ({"body": b' {"pair": "A"}'}, "account | engine | A"),
    "what is no form beside a query": ({"query": "pair=A", "body": b"\xef\xbb\xbf{}"}, "account | engine"),
    "twice in JSON": ({"body": b'{"pair": "A", "pair": "B"}'}, "account | engine"),
    "in other letters, too": ({"body": b'{"pair": "A", "Pair": "B"}'}, "account | engine"),
    "twice in a form": ({"body": b"pair=A&pair=B"}, "account | engine"),
    "in the query and in a form": ({"query": "pair=A", "body": b"pair=B"}, "account | engine"),
    "in the query and in JSON": ({"query": "pair=A", "body": b'{"pair": "B"}'}, "account | engine"),
    "more than is read at each request": ({"body": b"pair=A&" + b"a=1&" * 5000}, "account | engine"),
    "what is not printable": ({"query": "pair=%07"}, "account | engine"),
    "what is too long": ({"query": f"pair={'x' * 65}"}, "account | engine"),
}


@pytest.mark.parametrize(("request_", "place"), REQUESTS.values(), ids=REQUESTS)
def test_a_pool_for_each_value_of_a_parameter(request_: dict[str, object], place: str) -> None:
    assert pools_of(PAIR, "POST", ORDER, **request_) == (place,)


def test_a_message_of_a_stream_says_by_what_it_is_counted() -> None:
    def placed(rule: PoolRule, per: str, body: bytes = b"") -> tuple[str, ...]:
        message = Route("trade order", Permission.TRADE, Auth.SIGNED, Lane.ORDER, pools=(rule.name,), per=per)
        return pools_of(rule, "WS", message, body=body)

    path = PoolRule("path", Scope.ACCOUNT, per="route")
    assert placed(path, "") == ("account | path | WS trade order",)
    assert placed(path, "POST /order") == ("account | path | POST /order",)
    assert placed(path, "POST /order") == pools_of(path, "POST", ORDER)
    order = b'{"op":"order","args":[{"pair":"XBTUSD"},{"pair":"ETHUSD"}]}'
    assert placed(PAIR, "/args/0/pair", order) == ("account | engine | XBTUSD",)
    assert placed(PAIR, "/args/2/pair", order) == ("account | engine",)
    assert placed(PAIR, "", order) == ("account | engine",)
    assert placed(PAIR, "/args/0/pair", b'{"args":[{"pair":"A","Pair":"B"}]}') == ("account | engine",)


def test_pools_come_from_the_narrowest() -> None:
    rules = (
        PoolRule("weight", Scope.ADDRESS),
        PoolRule("orders", Scope.ACCOUNT, lanes=frozenset({Lane.ORDER})),
        PoolRule("account", Scope.ACCOUNT),
        PoolRule("counter", Scope.KEY),
    )
    member = Membership(rules, OF_KEY, is_open=False)
    assert member.pools_of("POST", ORDER) == (
        "key | counter",
        "account | orders",
        "account | account",
        "here | weight",
    )
    assert member.pools_of("POST", ORDER) == member.pools_of("POST", ORDER, "a=1")
    assert member.always == ("key | counter", "account | account", "here | weight")


def test_pools_that_are_not_made_by_requests_are_known_before_any() -> None:
    rules = (
        PoolRule("weight", Scope.ADDRESS),
        PoolRule("orders", Scope.ACCOUNT, lanes=frozenset({Lane.ORDER})),
        PoolRule("signed", Scope.KEY, is_signed=True),
        PoolRule("public", Scope.ADDRESS, is_open=True),
        PoolRule("path", Scope.KEY, per="route"),
        PAIR,
    )
    member = Membership(rules, OF_KEY, is_open=False)
    assert sorted(member.places) == ["account | orders", "here | weight", "key | signed"]
    assert sorted(Membership(rules, OF_NOBODY, is_open=True).places) == [
        "here | orders",
        "here | public",
        "here | weight",
    ]
    member.pools_of("GET", BALANCE)
    assert "key | path | GET /balance" in member.places


def test_a_ban_is_of_whom_it_is_for_unless_one_pool_says_the_same() -> None:
    one = Membership((PoolRule("all", Scope.ACCOUNT),), OF_KEY, is_open=False)
    assert [one.shut_out_by(scope) for scope in Scope] == ["key", "", "here"]
    two = Membership((PoolRule("a", Scope.KEY), PoolRule("b", Scope.KEY)), OF_KEY, is_open=False)
    assert two.shut_out_by(Scope.KEY) == "key"
    assert two.subjects == ("key", "account", "here")


def test_of_pools_that_bots_make_the_latest_are_shown() -> None:
    member = Membership((PAIR,), OF_KEY, is_open=False)
    for number in range(1500):
        member.pools_of("POST", ORDER, f"pair=p{number}")
    assert len(member.places) == 1000
    assert "account | engine | p1499" in member.places


def test_pools_that_bots_make_take_the_place_of_no_other() -> None:
    member = Membership((PoolRule("weight", Scope.ADDRESS), PAIR), OF_KEY, is_open=False)
    for number in range(1500):
        member.pools_of("POST", ORDER, f"pair=p{number}")
    assert next(iter(member.places)) == "here | weight"
