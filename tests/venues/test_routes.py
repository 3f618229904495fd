from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealgate.config.venues import default_venue
from sealgate.venues.routes import METHODS, Auth, CustomRoute, Lane, Permission, Route, RouteRow, RouteTable

SIGNED, SESSION, OPEN, APP_ONLY = Auth.SIGNED, Auth.SESSION, Auth.OPEN, Auth.APP_ONLY
READ, TRADE, KEYS = Permission.READ, Permission.TRADE, Permission.KEYS
ROWS = default_venue().routes
TABLE = RouteTable(ROWS)


def route_of(text: str) -> Route:
    template, needs, auth, lane = text.split()
    return Route(template, Permission(needs), Auth(auth), Lane(lane))


@pytest.mark.parametrize(
    ("call", "route"),
    [
        ("GET /time", "/time read open read"),
        ("HEAD /time", "/time read open read"),
        ("GET /time/", "/time read open read"),
        ("POST /time", "other trade signed order"),
        ("GET /time/zone", "other read signed read"),
        ("GET /api-keys", "/api-keys keys session read"),
        ("HEAD /api-keys", "/api-keys keys session read"),
        ("GET /api-keys/ak_1/audit", "/api-keys/{api_key}/audit keys session read"),
        ("GET /symbols/list", "/symbols/list read signed read"),
        ("GET /spot/symbols", "/spot/symbols read signed read"),
        ("GET /spot/symbols/list", "/spot/symbols/list read signed read"),
        ("GET /user/0xabc/positions", "/user/{address}/positions read signed read"),
        ("GET /user/0xabc/openOrders", "/user/{address}/openOrders read signed read"),
        ("GET /spot/balance/0xabc", "/spot/balance/{address} read signed read"),
        ("POST /order", "/order trade signed order"),
        ("POST /order/modify", "/order/modify trade signed order"),
        ("POST /order/cancel", "/order/cancel trade signed cancel"),
        ("GET /order/7", "other read signed read"),
        ("HEAD /order/7", "other read signed read"),
        ("PUT /order/7", "other trade signed order"),
        ("PATCH /order/7", "other trade signed order"),
        ("DELETE /order/7", "other trade signed cancel"),
        ("POST /x/7/cancel", "/**/cancel trade signed cancel"),
        ("POST /cancel/7", "other trade signed order"),
        ("GET /", "other read signed read"),
    ],
)
def test_each_call_has_its_rule(call: str, route: str) -> None:
    assert replace(TABLE.find(*call.split()), share_s=None) == route_of(route)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "path",
    [
        *("/user/handshake", "/user/handshake/", "/user/handshake/positions", "/user/handshake/a/b/c"),
        *("/api-keys/all", "/api-keys/all/", "/api-keys/ak_1"),
        *("/api-keys/ak_1/rotate", "/api-keys/ak_1/audit/more"),
        # In other spellings:
        *("/API-KEYS", "/Api-Keys/ak_1/audit", "/api_keys", "/api-keys.", "/.api-keys", "/api-keys.json"),
        *("/api-keys:rotate", "/api-keys,all", "/api-keys$", "/api-keys~", "/api-keys%20"),
        *("/%20api-keys/all", "/api-keys%C2%A0", "/api-keys%22", "/api-key%C5%BF", "/api-%E2%84%AAeys"),
        *("/%EF%BD%81pi-keys", "/api%EF%BC%8Dkeys", "/api-%E2%80%8Bkeys", "/api-%C2%ADkeys", "/api-keys./"),
        *("/user/Handshake", "/USER/handshake", "/User/HandShake/positions", "/user/handshake."),
        "/user%20/handshake",
    ],
)
def test_the_app_keeps_what_is_its_own_in_any_spelling(method: str, path: str) -> None:
    assert TABLE.find(method, path).auth is APP_ONLY


@pytest.mark.parametrize(
    "path",
    [
        *("/api-key", "/api-keys2", "/api-keys-limits", "/my-api-keys", "/order/api-keys", "/apikeys"),
        *("/api", "/user", "/User", "/user/handshakes", "/user/0xHandshake/positions"),
        *("/user/positions/Handshake", "/users/handshake", "/handshake", "/%D0%B0pi-keys", "/%F0%9F%9A%80"),
    ],
)
def test_what_only_resembles_the_apps_is_signed(path: str) -> None:
    assert TABLE.find("POST", path).auth is SIGNED


GUARDED = [
    RouteRow("POST", "/v2/Redeem", needs=KEYS),
    RouteRow("POST", "/v2/redeem/{coin}", needs=KEYS),
    RouteRow("*", "/v2/subApi/**", needs=KEYS),
    RouteRow("GET", "/**", needs=TRADE),
]


@pytest.mark.parametrize(
    "call",
    [
        *("POST /v2/Redeem", "POST /v2/redeem", "POST /V2/REDEEM/", "POST /v2/redeem.json"),
        *("POST /v2/%52edeem", "POST /v2/ReDeem/btc", "HEAD /v2/subapi/list", "GET /v2/subApi/list"),
        *("DELETE /v2/SUBAPI", "PUT /v2/redeem", "DELETE /v2/ReDeem/btc"),
        *("POST /v2/redeem/btc%CC%87", "GET /v2/subAp%C4%B1/list", "POST /v2/RED%E2%80%8BEEM"),
    ],
)
def test_what_needs_keys_needs_them_in_any_spelling(call: str) -> None:
    assert RouteTable(GUARDED).find(*call.split()).needs is KEYS


@pytest.mark.parametrize("call", ["POST /v2/redeemers", "POST /v2/order", "GET /v2/redeem"])
def test_what_only_resembles_that_does_not(call: str) -> None:
    assert RouteTable(GUARDED).find(*call.split()).needs is TRADE


def test_a_method_that_a_row_names_keeps_what_it_needs() -> None:
    table = RouteTable([*GUARDED, RouteRow("DELETE", "/v2/redeem/{coin}", needs=TRADE)])
    needs = {method: table.find(method, "/v2/redeem/btc").needs for method in ("POST", "PUT", "DELETE")}
    assert needs == {"POST": KEYS, "PUT": KEYS, "DELETE": TRADE}


BY_GET = RouteTable(
    [
        RouteRow("GET", "/v2/order", needs=TRADE, lane=Lane.ORDER, is_bodiless=True),
        RouteRow("GET", "/v2/order/{id}", needs=READ),
        RouteRow("POST", "/v2/order"),
        RouteRow("GET", "/v2.1/order", needs=READ),
        RouteRow("GET", "/v3/order", needs=READ),
        RouteRow("GET", "/v3.1/order", needs=TRADE),
        RouteRow("GET", "/**", is_bodiless=True),
    ]
)


@pytest.mark.parametrize(
    "path", ["/v2/order", "/v2/Order", "/V2/order.json", "/v2/order/", "/v2/%20order", "/v2/order:x"]
)
def test_a_get_that_acts_acts_in_any_spelling(path: str) -> None:
    assert {BY_GET.find(method, path).needs for method in ("GET", "HEAD")} == {TRADE}


def test_other_methods_and_paths_beside_a_get_that_acts_keep_what_they_need() -> None:
    paths = ("/v2/order/7", "/v2/orders", "/v2", "/v2.1/order", "/v3/order")
    assert {BY_GET.find("GET", path).needs for path in paths} == {READ}
    assert BY_GET.find("POST", "/v2/Order").needs is TRADE
    assert BY_GET.find("DELETE", "/v2/order").lane is Lane.CANCEL


def test_the_configuration_opens_one_call_that_needs_keys() -> None:
    table = RouteTable(GUARDED, [CustomRoute("POST", "/v2/redeem/BTC", needs=TRADE)])
    assert table.find("POST", "/v2/redeem/BTC").needs is TRADE
    assert {table.find("POST", path).needs for path in ("/v2/redeem/eth", "/v2/redeem")} == {KEYS}


def test_what_the_configuration_guards_is_guarded_in_any_spelling() -> None:
    table = RouteTable(GUARDED, [CustomRoute("POST", "/v2/transfer", needs=KEYS)])
    assert {table.find("POST", path).needs for path in ("/v2/transfer", "/v2/Transfer")} == {KEYS}


def test_no_row_opens_another_spelling_of_what_is_the_apps() -> None:
    rows = [CustomRoute("POST", "/{any}/{any}", needs=READ), CustomRoute("POST", "/API-KEYS", needs=READ)]
    table = RouteTable(ROWS, rows)
    assert {table.find("POST", path).auth for path in ("/API-KEYS", "/User/Handshake")} == {APP_ONLY}


def test_only_the_reads_of_a_row_for_every_method_go_as_reads() -> None:
    table = RouteTable([RouteRow("*", "/v2/subApi", needs=KEYS, lane=Lane.READ)])
    lanes = {method: table.find(method, "/v2/subApi").lane for method in ("GET", "POST", "DELETE")}
    assert lanes == {"GET": Lane.READ, "POST": Lane.ORDER, "DELETE": Lane.ORDER}


@pytest.mark.parametrize("path", ["/api-keys", "/api-keys/", "/api-keys/ak_1/audit", "/api-keys/ak_1/audit/"])
def test_session_routes_are_for_reading_alone(path: str) -> None:
    by_method = {method: TABLE.find(method, path).auth for method in METHODS}
    assert by_method == {"GET": SESSION, "HEAD": SESSION} | dict.fromkeys(METHODS[2:], APP_ONLY)


CUSTOM = {
    "a POST that reads": ("POST /orders/query read", "POST /orders/query", "/orders/query read signed read"),
    "a POST that reads in a lane of choice": (
        "POST /orders/query read order",
        "POST /orders/query",
        "/orders/query read signed order",
    ),
    "a cancel that needs to read alone goes first all the same": (
        "POST /order/cancel read",
        "POST /order/cancel",
        "/order/cancel read signed cancel",
    ),
    "so does a cancel by its method": (
        "DELETE /orders/{id} read",
        "DELETE /orders/7",
        "/orders/{id} read signed cancel",
    ),
    "unless another lane is named": (
        "POST /order/cancel read read",
        "POST /order/cancel",
        "/order/cancel read signed read",
    ),
    "another lane": (
        "POST /orders/{id}/close - cancel",
        "POST /orders/7/close",
        "/orders/{id}/close trade signed cancel",
    ),
    "the lane that it had": (
        "POST /orders/{id}/cancel trade",
        "POST /orders/7/cancel",
        "/orders/{id}/cancel trade signed cancel",
    ),
    "a GET that trades": ("GET /ping trade", "GET /ping", "/ping trade signed read"),
    "in place of a built-in row": ("GET /time read order", "GET /time", "/time read open order"),
    "in place of a built-in template": (
        "GET /user/{who}/positions trade",
        "GET /user/0xabc/positions",
        "/user/{who}/positions trade signed read",
    ),
    "what is the app's stays the app's": (
        "POST /api-keys/{api_key}/rotate read",
        "POST /api-keys/ak_1/rotate",
        "/api-keys/{api_key}/rotate read app_only read",
    ),
    "a placeholder does not reach what is the app's": (
        "POST /{anyone}/handshake read",
        "POST /user/handshake",
        "/user/handshake/** trade app_only order",
    ),
    "another method keeps its rule": (
        "POST /orders/query read",
        "PUT /orders/query",
        "other trade signed order",
    ),
}


def custom(text: str) -> CustomRoute:
    method, path, needs, *lane = text.split()
    return CustomRoute(
        method, path, needs=None if needs == "-" else Permission(needs), lane=Lane(lane[0]) if lane else None
    )


@pytest.mark.parametrize(("row", "call", "route"), CUSTOM.values(), ids=CUSTOM)
def test_the_configuration_changes_only_what_it_names(row: str, call: str, route: str) -> None:
    assert replace(RouteTable(ROWS, [custom(row)]).find(*call.split()), share_s=None) == route_of(route)


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


def test_reads_without_a_key_are_shared_for_as_long_as_is_said_unless_a_row_says_otherwise() -> None:
    rows = [RouteRow("*", "/public/**", auth=Auth.OPEN), RouteRow("GET", "/account")]
    table = RouteTable(rows, [CustomRoute("GET", "/public/trades", share_s=0.0)], share_open_s=0.5)
    found = [
        table.find(*call.split()).share_s for call in ("GET /public/x", "HEAD /public/x", "POST /public/x")
    ]
    assert found == [0.5, 0.5, None]
    assert table.find("GET", "/public/trades").share_s == 0.0
    assert table.find("GET", "/account").share_s == 0.0


def test_what_each_bot_gets_for_itself_is_never_shared() -> None:
    rows = [RouteRow("*", "/listenKey", needs=READ, lane=Lane.READ, is_shareable=False)]
    for custom_rows in ([], [CustomRoute("GET", "/listenKey", share_s=5.0)]):
        assert RouteTable(rows, custom_rows).find("GET", "/listenKey").share_s is None


def test_a_literal_goes_before_a_placeholder_and_turns_back_where_it_leads_nowhere() -> None:
    rows = [
        CustomRoute("GET", "/a/{x}/c", needs=TRADE),
        CustomRoute("GET", "/a/b", needs=TRADE),
        CustomRoute("GET", "/a/{x}", needs=TRADE),
    ]
    table = RouteTable(ROWS, rows)
    found = [table.find("GET", path).template for path in ("/a/b", "/a/z", "/a/b/c", "/a/b/d")]
    assert found == ["/a/b", "/a/{x}", "/a/{x}/c", "other"]


PATTERNS = RouteTable(
    [
        RouteRow("POST", template)
        for template in (
            *("/{coin}_out", "/btc_{way}", "/btc_o{rest}", "/{any}", "/btc_out/now", "/**"),
            *("/**/close", "/**/fast/close", "/a/{id}/x", "/a/**"),
        )
    ]
)


@pytest.mark.parametrize(
    ("path", "template"),
    [
        ("/eth_out", "/{coin}_out"),
        ("/btc_in", "/btc_{way}"),
        ("/btc_out", "/btc_o{rest}"),  # six letters of it are the template's
        ("/btc_o", "/btc_{way}"),  # a placeholder stands for one letter or more
        ("/_out", "/{any}"),
        ("/eth", "/{any}"),
        ("/btc_out/now", "/btc_out/now"),
        ("/eth_out/now", "other"),
        ("/x/close", "/**/close"),
        ("/x/y/z/close", "/**/close"),
        ("/x/fast/close", "/**/fast/close"),
        ("/close", "/{any}"),
        ("/x/close/y", "other"),
        ("/a/close", "/a/**"),  # from left to right, and literal segments go first
        ("/a/7/x", "/a/{id}/x"),
        ("/", "/{any}"),
    ],
)
def test_templates_match_within_a_segment_and_over_several(path: str, template: str) -> None:
    assert PATTERNS.find("POST", path).template == template


@pytest.mark.parametrize(
    "path", ["/v2/eth_out", "/v2/ETH_OUT", "/v2/eth-out", "/v2/eth_out.json", "/v2/eth_o%75t"]
)
def test_what_needs_keys_needs_them_in_any_spelling_of_a_part_of_a_segment(path: str) -> None:
    assert RouteTable([RouteRow("POST", "/v2/{coin}_out", needs=KEYS)]).find("POST", path).needs is KEYS


def test_a_long_path_is_looked_up_at_once() -> None:
    assert PATTERNS.find("POST", "/a" * 4000 + "/close").template == "/a/**"
    assert PATTERNS.find("POST", "/b" * 4000 + "/close").template == "/**/close"


WORDS = RouteTable(
    [
        RouteRow("GET", "/act/**", needs=TRADE),  # an exchange where a GET does something
        RouteRow("POST", "/book/**", needs=READ),
        RouteRow("POST", "/open/**", auth=OPEN),
        RouteRow("POST", "/margin/withdraw"),
        RouteRow("DELETE", "/**", lane=Lane.CANCEL),
    ],
    [
        CustomRoute("POST", "/bank/list", needs=READ),
        CustomRoute("POST", "/pay/{who}/send", needs=TRADE),
        CustomRoute("POST", "/pay/withdraw", cost=2.0),
        CustomRoute("POST", "/{sub}/order", cost=2.0),
    ],
)


@pytest.mark.parametrize(
    ("call", "needs"),
    [
        ("POST /v3/Capital/With-Draw_Apply", KEYS),
        ("PUT /v3/subAccount/7", KEYS),
        ("PATCH /withdraw.json", KEYS),
        ("POST /%EF%BD%97ithdraw", KEYS),  # which NFKC reads as a `w`
        ("DELETE /v1/api-keys/7", KEYS),
        ("GET /v3/capital/withdraw", READ),
        ("HEAD /v3/capital/withdraw", READ),
        ("GET /act/withdraw", KEYS),
        ("HEAD /act/withdraw", KEYS),
        ("GET /act/buy", TRADE),
        ("POST /book/withdrawals", READ),
        ("POST /open/withdraw", TRADE),  # which goes unsigned
        ("POST /margin/withdraw", TRADE),  # which a row names
        ("PUT /margin/withdraw", KEYS),
        ("POST /orders/substitute", KEYS),
        ("POST /orders/subscribe", TRADE),
        ("PUT /orders/12fa34567890", TRADE),  # a number, and no word
        ("PUT /orders/9d12fa3c-5e77-4b1e-8a52-1f2fa9c0d7e1", TRADE),
        ("POST /bank/list", READ),
        ("POST /pay/withdraw/send", TRADE),
        ("POST /pay/withdraw", KEYS),  # a row that says nothing of what it needs opens nothing
        ("POST /x/order", TRADE),
        ("POST /gift/order", KEYS),
    ],
)
def test_an_unnamed_call_whose_path_leads_out_of_the_account_needs_keys(call: str, needs: Permission) -> None:
    assert WORDS.find(*call.split()).needs is needs


WITHIN = RouteTable(
    [
        RouteRow("*", "/v2/desk/**", needs=KEYS),
        RouteRow("POST", "/v2/desk/{what}/list", needs=READ),
        RouteRow("POST", "/v2/desk/close", needs=TRADE),
        RouteRow("GET", "/v2/{what}_book", needs=KEYS),
        RouteRow("GET", "/v2/get_book", needs=READ),
        RouteRow("POST", "/v2/{any}/list", needs=READ),
    ]
)


@pytest.mark.parametrize(
    ("call", "needs"),
    [
        ("POST /v2/desk/offers", KEYS),
        ("POST /v2/desk/offers/list", READ),
        ("POST /v2/desk/close", TRADE),
        ("PUT /v2/desk/close", KEYS),
        ("POST /v2/Desk/close", KEYS),
        ("POST /v2/desk/CLOSE", KEYS),
        ("POST /v2/desk/close.json", KEYS),
        ("POST /v2/Desk/list", KEYS),  # not another desk's list
        ("POST /v2/shop/list", READ),
        ("GET /v2/add_book", KEYS),
        ("GET /v2/get_book", READ),
        ("GET /v2/get-book", KEYS),
        ("GET /v2/Get_Book", KEYS),
    ],
)
def test_a_call_that_has_a_row_within_what_needs_keys_needs_less_in_its_own_spelling_alone(
    call: str, needs: Permission
) -> None:
    assert WITHIN.find(*call.split()).needs is needs


def test_what_needs_keys_by_its_words_cancels_nothing() -> None:
    route = WORDS.find("DELETE", "/v1/sub-account/7")
    assert (route.needs, route.lane, route.is_cancel) == (KEYS, Lane.ORDER, False)


@pytest.mark.parametrize(
    ("row", "is_cancel"),
    [
        (CustomRoute("POST", "/mine/close", lane=Lane.CANCEL), True),
        (CustomRoute("DELETE", "/sub-account/orders", lane=Lane.CANCEL), True),  # its words do not count
        (CustomRoute("DELETE", "/mine", cost=2.0), False),  # a lane by its method is no name
        (CustomRoute("POST", "/order/cancel", cost=2.0), True),  # which the file names
        (CustomRoute("POST", "/order/cancel", lane=Lane.ORDER), False),
        (CustomRoute("DELETE", "/sub-account", needs=KEYS, lane=Lane.CANCEL), False),
    ],
)
def test_a_cancel_is_what_a_row_names_as_one(row: CustomRoute, *, is_cancel: bool) -> None:
    table = RouteTable([RouteRow("POST", "/order/cancel", lane=Lane.CANCEL)], [row])
    route = table.find(row.method, row.template)
    assert route.is_cancel is is_cancel
    assert not is_cancel or route.needs is TRADE


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
