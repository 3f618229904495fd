from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealgate.config.venues import default_venue
from sealgate.core.routes import METHODS, Auth, CustomRoute, Lane, Permission, Route, RouteRow, RouteTable

SIGNED, SESSION, OPEN, APP_ONLY = Auth.SIGNED, Auth.SESSION, Auth.OPEN, Auth.APP_ONLY
READ, TRADE, KEYS = Permission.READ, Permission.TRADE, Permission.KEYS
ROWS = default_venue().routes
TABLE = RouteTable(ROWS)


def test_the_words_that_configuration_log_and_metrics_use() -> None:
    assert [*Auth] == ["signed", "key", "session", "open", "app_only"]
    assert [*Permission] == ["read", "trade", "keys"]
    assert [*Lane] == ["cancel", "order", "read"]


@pytest.mark.parametrize(
    ("call", "route"),
    [
        pytest.param("GET /time", Route("/time", READ, OPEN, Lane.READ), id="time"),
        pytest.param("HEAD /time", Route("/time", READ, OPEN, Lane.READ), id="time by HEAD"),
        pytest.param("GET /time/", Route("/time", READ, OPEN, Lane.READ), id="time with a slash"),
        pytest.param("POST /time", Route("other", TRADE, SIGNED, Lane.ORDER), id="time by POST"),
        pytest.param("GET /time/zone", Route("other", READ, SIGNED, Lane.READ), id="below time"),
        pytest.param("GET /api-keys", Route("/api-keys", KEYS, SESSION, Lane.READ), id="list of keys"),
        pytest.param("HEAD /api-keys", Route("/api-keys", KEYS, SESSION, Lane.READ), id="list by HEAD"),
        pytest.param(
            "GET /api-keys/ak_1/audit",
            Route("/api-keys/{api_key}/audit", KEYS, SESSION, Lane.READ),
            id="audit log",
        ),
        pytest.param("GET /symbols/list", Route("/symbols/list", READ, SIGNED, Lane.READ), id="symbols"),
        pytest.param("GET /spot/symbols", Route("/spot/symbols", READ, SIGNED, Lane.READ), id="spot pairs"),
        pytest.param(
            "GET /spot/symbols/list", Route("/spot/symbols/list", READ, SIGNED, Lane.READ), id="spot list"
        ),
        pytest.param(
            "GET /user/0xabc/positions",
            Route("/user/{address}/positions", READ, SIGNED, Lane.READ),
            id="positions",
        ),
        pytest.param(
            "GET /user/0xabc/openOrders",
            Route("/user/{address}/openOrders", READ, SIGNED, Lane.READ),
            id="open orders",
        ),
        pytest.param(
            "GET /spot/balance/0xabc",
            Route("/spot/balance/{address}", READ, SIGNED, Lane.READ),
            id="spot balance",
        ),
        pytest.param("POST /order", Route("/order", TRADE, SIGNED, Lane.ORDER), id="order"),
        pytest.param("POST /order/modify", Route("/order/modify", TRADE, SIGNED, Lane.ORDER), id="modify"),
        pytest.param("POST /order/cancel", Route("/order/cancel", TRADE, SIGNED, Lane.CANCEL), id="cancel"),
        pytest.param("GET /order/7", Route("other", READ, SIGNED, Lane.READ), id="unnamed GET"),
        pytest.param("HEAD /order/7", Route("other", READ, SIGNED, Lane.READ), id="unnamed HEAD"),
        pytest.param("PUT /order/7", Route("other", TRADE, SIGNED, Lane.ORDER), id="unnamed PUT"),
        pytest.param("PATCH /order/7", Route("other", TRADE, SIGNED, Lane.ORDER), id="unnamed PATCH"),
        pytest.param("DELETE /order/7", Route("other", TRADE, SIGNED, Lane.CANCEL), id="unnamed DELETE"),
        pytest.param(
            "POST /x/7/cancel", Route("other", TRADE, SIGNED, Lane.CANCEL), id="unnamed path that cancels"
        ),
        pytest.param("POST /cancel/7", Route("other", TRADE, SIGNED, Lane.ORDER), id="cancel not at the end"),
        pytest.param("GET /", Route("other", READ, SIGNED, Lane.READ), id="nothing after the prefix"),
    ],
)
def test_each_call_has_its_rule(call: str, route: Route) -> None:
    method, path = call.split()
    assert replace(TABLE.find(method, path), share_s=None) == route


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "path",
    [
        "/user/handshake",
        "/user/handshake/",
        "/user/handshake/positions",
        "/user/handshake/a/b/c",
        "/api-keys/all",
        "/api-keys/all/",
        "/api-keys/ak_1",
        "/api-keys/ak_1/rotate",
        "/api-keys/ak_1/audit/more",
    ],
)
def test_the_app_keeps_what_is_its_own(method: str, path: str) -> None:
    assert TABLE.find(method, path).auth is APP_ONLY


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/API-KEYS", id="capitals"),
        pytest.param("/Api-Keys/ak_1/audit", id="some capitals"),
        pytest.param("/api_keys", id="underscore"),
        pytest.param("/api-keys.", id="dot at the end"),
        pytest.param("/.api-keys", id="dot first"),
        pytest.param("/api-keys.json", id="extension"),
        pytest.param("/api-keys:rotate", id="custom verb"),
        pytest.param("/api-keys,all", id="comma"),
        pytest.param("/api-keys$", id="dollar"),
        pytest.param("/api-keys~", id="tilde"),
        pytest.param("/api-keys%20", id="space at the end"),
        pytest.param("/%20api-keys/all", id="space first"),
        pytest.param("/api-keys%C2%A0", id="no-break space"),
        pytest.param("/api-keys%22", id="quote"),
        pytest.param("/api-key%C5%BF", id="long s"),
        pytest.param("/api-%E2%84%AAeys", id="Kelvin sign"),
        pytest.param("/%EF%BD%81pi-keys", id="full-width letter"),
        pytest.param("/api%EF%BC%8Dkeys", id="full-width hyphen"),
        pytest.param("/api-%E2%80%8Bkeys", id="zero-width space"),
        pytest.param("/api-%C2%ADkeys", id="soft hyphen"),
        pytest.param("/api-keys./", id="dot and slash at the end"),
        pytest.param("/user/Handshake", id="second segment"),
        pytest.param("/USER/handshake", id="first segment"),
        pytest.param("/User/HandShake/positions", id="both, and deeper"),
        pytest.param("/user/handshake.", id="second with a dot"),
        pytest.param("/user%20/handshake", id="first with a space"),
    ],
)
def test_another_spelling_of_what_is_the_apps_is_the_apps(method: str, path: str) -> None:
    assert TABLE.find(method, path).auth is APP_ONLY


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/api-key", id="shorter"),
        pytest.param("/api-keys2", id="longer"),
        pytest.param("/api-keys-limits", id="longer by a word"),
        pytest.param("/my-api-keys", id="begins otherwise"),
        pytest.param("/order/api-keys", id="deeper"),
        pytest.param("/apikeys", id="without the hyphen"),
        pytest.param("/api", id="first half"),
        pytest.param("/user", id="user alone"),
        pytest.param("/User", id="user alone, in capitals"),
        pytest.param("/user/handshakes", id="longer handshake"),
        pytest.param("/user/0xHandshake/positions", id="address"),
        pytest.param("/user/positions/Handshake", id="deeper handshake"),
        pytest.param("/users/handshake", id="other first segment"),
        pytest.param("/handshake", id="handshake alone"),
        pytest.param("/%D0%B0pi-keys", id="a letter that only looks alike"),
        pytest.param("/%F0%9F%9A%80", id="no letters"),
    ],
)
def test_what_only_resembles_the_apps_is_signed(path: str) -> None:
    assert TABLE.find("POST", path).auth is SIGNED


GUARDED = [
    RouteRow("POST", "/v2/Withdraw", needs=KEYS),
    RouteRow("POST", "/v2/withdraw/{coin}", needs=KEYS),
    RouteRow("*", "/v2/subApi/**", needs=KEYS),
    RouteRow("GET", "/**", needs=TRADE),
]


@pytest.mark.parametrize(
    "call",
    [
        "POST /v2/Withdraw",
        "POST /v2/withdraw",
        "POST /V2/WITHDRAW/",
        "POST /v2/withdraw.json",
        "POST /v2/%57ithdraw",
        "POST /v2/WithDraw/btc",
        "HEAD /v2/subapi/list",
        "GET /v2/subApi/list",
        "DELETE /v2/SUBAPI",
        "PUT /v2/withdraw",
        "DELETE /v2/WithDraw/btc",
    ],
)
def test_what_needs_keys_needs_them_in_any_spelling(call: str) -> None:
    assert RouteTable(GUARDED).find(*call.split()).needs is KEYS


@pytest.mark.parametrize("call", ["POST /v2/withdrawals", "POST /v2/order", "GET /v2/withdraw"])
def test_what_only_resembles_that_does_not(call: str) -> None:
    assert RouteTable(GUARDED).find(*call.split()).needs is TRADE


def test_a_method_that_a_row_names_keeps_what_it_needs() -> None:
    table = RouteTable([*GUARDED, RouteRow("DELETE", "/v2/withdraw/{coin}", needs=TRADE)])
    needs = {method: table.find(method, "/v2/withdraw/btc").needs for method in ("POST", "PUT", "DELETE")}
    assert needs == {"POST": KEYS, "PUT": KEYS, "DELETE": TRADE}


def test_the_configuration_opens_one_call_that_needs_keys() -> None:
    table = RouteTable(GUARDED, [CustomRoute("POST", "/v2/withdraw/BTC", needs=TRADE)])
    assert table.find("POST", "/v2/withdraw/BTC").needs is TRADE
    assert {table.find("POST", path).needs for path in ("/v2/withdraw/eth", "/v2/withdraw")} == {KEYS}


def test_what_the_configuration_guards_is_guarded_in_any_spelling() -> None:
    table = RouteTable(GUARDED, [CustomRoute("POST", "/v2/transfer", needs=KEYS)])
    assert {table.find("POST", path).needs for path in ("/v2/transfer", "/v2/Transfer")} == {KEYS}


def test_no_row_opens_another_spelling_of_what_is_the_apps() -> None:
    rows = [CustomRoute("POST", "/{any}/{any}", needs=READ), CustomRoute("POST", "/API-KEYS", needs=READ)]
    table = RouteTable(ROWS, rows)
    assert {table.find("POST", path).auth for path in ("/API-KEYS", "/User/Handshake")} == {APP_ONLY}


@pytest.mark.parametrize("path", ["/api-keys", "/api-keys/", "/api-keys/ak_1/audit", "/api-keys/ak_1/audit/"])
def test_session_routes_are_for_reading_alone(path: str) -> None:
    by_method = {method: TABLE.find(method, path).auth for method in METHODS}
    assert by_method == {"GET": SESSION, "HEAD": SESSION} | dict.fromkeys(METHODS[2:], APP_ONLY)


@pytest.mark.parametrize(
    ("row", "call", "route"),
    [
        pytest.param(
            CustomRoute("POST", "/orders/query", needs=READ),
            "POST /orders/query",
            Route("/orders/query", READ, SIGNED, Lane.READ),
            id="a POST that reads",
        ),
        pytest.param(
            CustomRoute("POST", "/orders/query", needs=READ, lane=Lane.ORDER),
            "POST /orders/query",
            Route("/orders/query", READ, SIGNED, Lane.ORDER),
            id="a POST that reads in a lane of choice",
        ),
        pytest.param(
            CustomRoute("POST", "/order/cancel", needs=READ),
            "POST /order/cancel",
            Route("/order/cancel", READ, SIGNED, Lane.CANCEL),
            id="a cancel that needs to read alone goes first all the same",
        ),
        pytest.param(
            CustomRoute("DELETE", "/orders/{id}", needs=READ),
            "DELETE /orders/7",
            Route("/orders/{id}", READ, SIGNED, Lane.CANCEL),
            id="so does a cancel by its method",
        ),
        pytest.param(
            CustomRoute("POST", "/order/cancel", needs=READ, lane=Lane.READ),
            "POST /order/cancel",
            Route("/order/cancel", READ, SIGNED, Lane.READ),
            id="unless another lane is named",
        ),
        pytest.param(
            CustomRoute("POST", "/orders/{id}/close", lane=Lane.CANCEL),
            "POST /orders/7/close",
            Route("/orders/{id}/close", TRADE, SIGNED, Lane.CANCEL),
            id="another lane",
        ),
        pytest.param(
            CustomRoute("POST", "/orders/{id}/cancel", needs=TRADE),
            "POST /orders/7/cancel",
            Route("/orders/{id}/cancel", TRADE, SIGNED, Lane.CANCEL),
            id="the lane that it had",
        ),
        pytest.param(
            CustomRoute("GET", "/ping", needs=TRADE),
            "GET /ping",
            Route("/ping", TRADE, SIGNED, Lane.READ),
            id="a GET that trades",
        ),
        pytest.param(
            CustomRoute("GET", "/time", needs=READ, lane=Lane.ORDER),
            "GET /time",
            Route("/time", READ, OPEN, Lane.ORDER),
            id="in place of a built-in row",
        ),
        pytest.param(
            CustomRoute("GET", "/user/{who}/positions", needs=TRADE),
            "GET /user/0xabc/positions",
            Route("/user/{who}/positions", TRADE, SIGNED, Lane.READ),
            id="in place of a built-in template",
        ),
        pytest.param(
            CustomRoute("POST", "/api-keys/{api_key}/rotate", needs=READ),
            "POST /api-keys/ak_1/rotate",
            Route("/api-keys/{api_key}/rotate", READ, APP_ONLY, Lane.READ),
            id="what is the app's stays the app's",
        ),
        pytest.param(
            CustomRoute("POST", "/{anyone}/handshake", needs=READ),
            "POST /user/handshake",
            Route("/user/handshake/**", TRADE, APP_ONLY, Lane.ORDER),
            id="a placeholder does not reach what is the app's",
        ),
        pytest.param(
            CustomRoute("POST", "/orders/query", needs=READ),
            "PUT /orders/query",
            Route("other", TRADE, SIGNED, Lane.ORDER),
            id="another method keeps its rule",
        ),
    ],
)
def test_the_configuration_changes_only_what_it_names(row: CustomRoute, call: str, route: Route) -> None:
    method, path = call.split()
    assert replace(RouteTable(ROWS, [row]).find(method, path), share_s=None) == route


@pytest.mark.parametrize(
    ("row", "call", "share_s"),
    [
        pytest.param(CustomRoute("GET", "/else", cost=2.0), "GET /symbols/list", 0.0, id="a read"),
        pytest.param(CustomRoute("GET", "/else", cost=2.0), "HEAD /symbols/list", 0.0, id="a read by HEAD"),
        pytest.param(CustomRoute("GET", "/else", cost=2.0), "POST /order", None, id="an order"),
        pytest.param(
            CustomRoute("GET", "/symbols/list", share_s=5.0), "GET /symbols/list", 5.0, id="for 5 s"
        ),
        pytest.param(CustomRoute("GET", "/x", needs=TRADE), "GET /x", None, id="a GET that trades"),
        pytest.param(CustomRoute("POST", "/x", needs=READ), "POST /x", None, id="a POST that reads"),
        pytest.param(
            CustomRoute("POST", "/x", needs=READ, share_s=0.0), "POST /x", 0.0, id="a POST that is shared"
        ),
        pytest.param(CustomRoute("POST", "/x", share_s=1.0), "POST /x", None, id="no read, whatever is said"),
    ],
)
def test_which_replies_may_be_shared(row: CustomRoute, call: str, share_s: float | None) -> None:
    assert RouteTable(ROWS, [row]).find(*call.split()).share_s == share_s


def test_a_literal_goes_before_a_placeholder_and_turns_back_where_it_leads_nowhere() -> None:
    rows = [
        CustomRoute("GET", "/a/{x}/c", needs=TRADE),
        CustomRoute("GET", "/a/b", needs=TRADE),
        CustomRoute("GET", "/a/{x}", needs=TRADE),
    ]
    table = RouteTable(ROWS, rows)
    found = [table.find("GET", path).template for path in ("/a/b", "/a/z", "/a/b/c", "/a/b/d")]
    assert found == ["/a/b", "/a/{x}", "/a/{x}/c", "other"]


def test_the_last_of_two_rows_counts() -> None:
    rows = [CustomRoute("GET", "/a", needs=TRADE), CustomRoute("GET", "/a", lane=Lane.CANCEL)]
    assert RouteTable(ROWS, rows).find("GET", "/a") == Route("/a", TRADE, SIGNED, Lane.CANCEL)


@pytest.mark.parametrize(
    ("row", "is_read"),
    [
        pytest.param(CustomRoute("POST", "/x", needs=READ), True, id="POST that reads"),
        pytest.param(CustomRoute("POST", "/x", needs=TRADE), False, id="POST that trades"),
        pytest.param(CustomRoute("POST", "/x", needs=KEYS), False, id="POST about keys"),
        pytest.param(CustomRoute("POST", "/x", lane=Lane.READ), False, id="POST in the lane of reads"),
        pytest.param(CustomRoute("GET", "/x", needs=TRADE), False, id="GET that trades"),
        pytest.param(CustomRoute("GET", "/api-keys", lane=Lane.ORDER), True, id="list of keys"),
    ],
)
def test_only_what_is_declared_or_known_to_read_may_be_sent_twice(row: CustomRoute, *, is_read: bool) -> None:
    assert RouteTable(ROWS, [row]).find(row.method, row.template).is_read is is_read


@pytest.mark.parametrize("method", METHODS)
def test_without_a_row_the_method_decides_what_reads(method: str) -> None:
    assert TABLE.find(method, "/unnamed").is_read is (method in {"GET", "HEAD"})


@given(
    st.sampled_from(METHODS),
    st.lists(st.sampled_from(("api-keys", "user", "handshake", "audit", "{}", "**", "", "x"))).map("/".join),
)
def test_every_path_has_a_rule(method: str, path: str) -> None:
    """The look-up never fails, and nothing below the app's two trees is ever signed."""
    route = TABLE.find(method, f"/{path}")
    segments = path.strip("/").split("/")
    is_the_apps = segments[0] == "api-keys" or segments[:2] == ["user", "handshake"]
    assert (route.auth in {APP_ONLY, SESSION}) is is_the_apps


def test_a_configured_cost_replaces_the_usual_one() -> None:
    table = RouteTable(ROWS, [CustomRoute("POST", "/batch", cost=5)])
    assert table.find("POST", "/batch").cost == 5
    assert table.find("POST", "/order").cost == 1


def test_a_read_by_post_waits_with_reads() -> None:
    table = RouteTable([RouteRow("POST", "/balance", needs=READ)])
    assert table.find("POST", "/balance") == Route("/balance", READ, SIGNED, Lane.READ)


def test_a_read_is_asked_for_by_post_where_only_that_is_named() -> None:
    rows = [RouteRow(method, path, needs=Permission.READ) for method, path in (("POST", "/a"), ("*", "/b"))]
    rows.append(RouteRow("POST", "/auth/r/**", needs=Permission.READ))
    table = RouteTable(rows, [CustomRoute("POST", "/mine", needs=Permission.READ)])
    methods = {path: table.method_of_read(path) for path in ("/a", "/b", "/c", "/auth/r/wallets", "/mine")}
    assert methods == {"/a": "POST", "/b": "GET", "/c": "GET", "/auth/r/wallets": "POST", "/mine": "POST"}
