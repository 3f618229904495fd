import base64
import contextlib
import hashlib
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealgate.config.venues import default_venue
from sealgate.errors import Refusal
from sealgate.http.headers import Head, HeaderRules
from sealgate.http.parser import RequestHead
from sealgate.http.target import host_name
from sealgate.keys.bot import Bot
from sealgate.orders.outcome import Outcome
from sealgate.orders.policy import Checks, Policy, PolicyMemory
from sealgate.request.admission import (
    Admission,
    Peer,
    Rules,
    Ticket,
    asked_by,
    authenticate,
    authorise,
    check_body,
    check_head,
    identify,
    not_a_proxy,
    request_id,
    trace_id,
)
from sealgate.venues.order_terms import OrderShape
from sealgate.venues.routes import METHODS, Auth, Lane, Permission, RouteRow, RouteTable

READ, TRADE, KEYS = Permission.READ, Permission.TRADE, Permission.KEYS
GRID = Bot("grid", ("main", "alt"), frozenset({READ, TRADE}))
WATCH = Bot("watch", ("main",), frozenset({READ}))
CLERK = Bot("clerk", ("main",), frozenset({KEYS}))
TOKENS = {b"grid-token": GRID, b"watch-token": WATCH, b"p:a:s:s \xe9": CLERK}
GRIDS, WATCHS = ("grid", "127.0.0.1:8802"), ("watch", "127.0.0.1:8803")
FORMER = ("grid", "127.0.0.1:8803")  # a bot and an address that it has no longer
RULES = Rules(
    prefix="/v1/trade",
    hosts=frozenset({"127.0.0.1", "localhost", "::1"}),
    bots={hashlib.sha256(token).digest(): bot for token, bot in TOKENS.items()},
    local=None,
    routes=RouteTable(default_venue().routes),
    headers=HeaderRules(default_venue().own_headers),
    max_body=1000,
    own={GRIDS: GRID, WATCHS: WATCH},
)
POLICIES = PolicyMemory()
GUARD = POLICIES.guard("grid", (Policy(symbols=frozenset({"BTC"})),), "spot", "x")
GUARDED = replace(RULES, policies=POLICIES, guards={"grid": GUARD}, prices=POLICIES.prices["x"])
Fields = dict[str, str]


MOVE = OrderShape(only=({("type",): re.compile("0?"), ("subAcct",): re.compile("")},))
MOVES = replace(RULES, routes=RouteTable([RouteRow("POST", "/move", needs=KEYS, trade_if=MOVE)]))


def test_a_call_that_needs_keys_by_its_body_is_for_bots_that_trade_as_far_as_its_body_says() -> None:
    assert to_move(GRID).checks == Checks(trade_if=MOVE)
    assert to_move(CLERK).checks is None
    with pytest.raises(Refusal, match="needs keys, and the bot watch may only read"):
        to_move(WATCH)
    check_body(to_move(GRID), MOVE, b'{"type": 0, "amt": "1"}')


def to_move(bot: Bot, path: str = "/move", fields: Fields | None = None) -> Ticket:
    return authorise(bot, "POST", f"/v1/trade{path}", head_of(fields or {}), MOVES)


@pytest.mark.parametrize(
    ("body", "fields", "path"),
    [
        *((body, {}, "/move") for body in (b"", b"type=0", b'{"type": 2}', b'{"type": 0, "type": 2}')),
        *((body, {}, "/move") for body in (b'{"Type": 2}', b'{"type": false}', b'{"type":0} {"type":2}')),
        (b'{"type": 0, "subAcct": "x"}', {}, "/move"),
        (b"{}", {"Content-Type": "application/x-www-form-urlencoded"}, "/move"),
        (b"{}", {"Content-Encoding": "gzip"}, "/move"),
        (b"{}", {}, "/move?type=2"),
        (b"{}", {}, "/Move?subAcct=x"),
    ],
)
def test_what_could_be_read_otherwise_needs_keys(body: bytes, fields: Fields, path: str) -> None:
    with pytest.raises(Refusal, match="needs keys, and the bot grid may not") as refused:
        check_body(to_move(GRID, path, fields), MOVE, body)
    assert refused.value.slug == "bot_forbidden"


@pytest.mark.parametrize(
    ("method", "path", "is_guarded", "teaches"),
    [
        ("POST", "/order", True, False),
        ("POST", "/anything", True, False),
        ("DELETE", "/order/1", False, False),
        ("POST", "/order/cancel", False, False),
        ("GET", "/spot/symbols", False, False),
        ("GET", "/symbols/list", False, True),
    ],
)
def test_only_what_a_policy_speaks_of_is_looked_at(
    method: str, path: str, is_guarded: bool, teaches: bool
) -> None:
    """Chosen once, when a head is admitted; another bot and other rules have nothing to look at."""
    ticket = authorise(GRID, method, f"/v1/trade{path}", Head({}, b""), GUARDED)
    assert (ticket.checks is not None) == (is_guarded or teaches)
    if ticket.checks is not None:
        assert (ticket.checks.guard is GUARD, ticket.checks.prices is not None) == (is_guarded, teaches)
    assert authorise(GRID, method, f"/v1/trade{path}", Head({}, b""), RULES).checks is None


@pytest.mark.parametrize(("method", "path"), [("GET", "/order"), ("POST", "/order/cancel")])
def test_how_long_it_is_valid_is_not_read_of_reads_and_named_cancels(method: str, path: str) -> None:
    head = Head({b"x-gateway-valid-ms": b"nonsense"}, b"")
    assert authorise(GRID, method, f"/v1/trade{path}", head, RULES).checks is None


def test_how_long_an_order_is_valid_is_a_whole_number() -> None:
    def ticket(text: bytes) -> Ticket:
        return authorise(GRID, "POST", "/v1/trade/order", Head({b"x-gateway-valid-ms": text}, b""), RULES)

    assert ticket(b"0500").checks == Checks(valid_ms=500)
    for text in (b"", b"0", b"-1", b"+1", b"1.0", b"1e3", b" 1", "\u0661".encode(), b"1234567890"):
        with pytest.raises(Refusal, match="X-Gateway-Valid-Ms"):
            ticket(text)


def test_an_order_heeds_how_long_it_is_valid_in_any_lane() -> None:
    rules = replace(RULES, routes=RouteTable([RouteRow("POST", "/order", lane=Lane.READ)]))
    head = Head({b"x-gateway-valid-ms": b"500"}, b"")
    assert authorise(GRID, "POST", "/v1/trade/order", head, rules).checks == Checks(valid_ms=500)


def head_of(fields: Fields) -> Head:
    return RULES.headers.sort([(name.encode(), value.encode("latin-1")) for name, value in fields.items()])


def head_reason(fields: Fields, method: str = "GET", version: tuple[int, int] = (1, 1)) -> str | None:
    """Return the slug with which a head is refused, None where they let it through."""
    try:
        check_head(head_of({"Host": "localhost"} | fields), method, version, RULES)
    except Refusal as refusal:
        return refusal.slug
    return None


GATEWAY = "http://127.0.0.1:8787"
# What websocket-client sends: it takes the address that it dials for its origin.
DIALLED = {"Host": "127.0.0.1:8802", "Upgrade": "websocket", "Origin": "http://127.0.0.1:8802"}
OTHER_ORIGINS = [
    *("null", "", "127.0.0.1:8802", "//127.0.0.1:8802", "ws://127.0.0.1:8802", "HTTP://127.0.0.1:8802"),
    *("http://127.0.0.1:8802/", "http://127.0.0.1", "http://127.0.0.1:8787", "http://localhost:8802"),
    *("http://evil.example", "http://127.0.0.1:8802.evil.example", "http://evil@127.0.0.1:8802"),
    "file://",
]
HEADS: dict[str | None, list[Fields]] = {
    None: [
        *({}, {"Host": "127.0.0.1:8787"}, {"Referer": "CCXT"}, {"Referer": "my bot 1.0"}),
        *({"Sec-Fetch-Mode": "cors"}, {"Upgrade": "h2c"}, {"Expect": "100-continue"}),
        *({"Expect": "100-Continue"}, {"Transfer-Encoding": "chunked"}, {"Transfer-Encoding": " Chunked"}),
        *({"Content-Length": "0"}, {"Content-Length": "1000"}, {"Content-Length": "01000"}),
        {"Idempotency-Key": "k"},
    ],
    "host_refused": [
        {"Host": host}
        for host in (
            *("", "evil.com", "evil.com:8787", "localhost.evil.com", "evil-localhost", "localhost."),
            *(".localhost", "localhost@evil.com", "localhost:80@evil.com", "localhost, evil.com"),
            *("localhost evil.com", "localhost:http", "localhost:", "localhost:123456", "localhost:80:80"),
            *("[localhost]", "localhost]", "[127.0.0.1", "http://localhost", "localhost/v1", "localhost?a"),
            *("127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0.0.0.0", "[::ffff:127.0.0.1]"),
            *("127.0.0.1.nip.io", "local%68ost", "localh\xf6st"),
        )
    ],
    "browser_refused": [
        *({"Origin": "null"}, {"Origin": ""}, {"Origin": GATEWAY}, {"Referer": ""}),
        *({"Referer": "https://a.example/"}, {"Referer": f"{GATEWAY}/"}),
        *({"Referer": "about:blank"}, {"Referer": "/page"}),
        *({"Sec-Fetch-Site": value} for value in ("none", "same-origin", "cross-site")),
        *({"sec.fetch+site": "none"}, {"sec_fetch_site": "none"}),
        *(DIALLED | {"Origin": origin} for origin in OTHER_ORIGINS),
        *(DIALLED | {name: value} for name, value in (("Sec-Fetch-Site", "same-origin"), ("Referer", "/"))),
        *(DIALLED | {"Upgrade": upgrade} for upgrade in ("", "h2c", "websocket, h2c")),
        {name: value for name, value in DIALLED.items() if name != "Upgrade"},
    ],
    "expectation_refused": [
        *({"Expect": "200-ok"}, {"Expect": ""}),
    ],
    "coding_refused": [
        *({"Transfer-Encoding": "identity, chunked"}, {"Transfer-Encoding": "gzip, chunked"}),
        {"Transfer-Encoding": "br,\tGzip , Chunked"},
    ],
    "bad_request": [
        *({"Transfer-Encoding": "gzip"}, {"Transfer-Encoding": "chunked, gzip"}),
        *({"Transfer-Encoding": "chunked, chunked"}, {"Transfer-Encoding": ", chunked"}),
        *({"Transfer-Encoding": "chunked,"}, {"Transfer-Encoding": "xchunked"}),
        *({"Transfer-Encoding": "chunked;a=b"}, {"Transfer-Encoding": '"chunked"'}),
        *({"Transfer-Encoding": "identity"}, {"Transfer-Encoding": "chunked, identity"}),
        *({"Content-Length": "2.0"}, {"Content-Length": "two"}),
        *({"Transfer-Encoding": ""}, {"Content-Length": "9" * 5000}, {"Content-Length": "+5"}),
        *({"Content-Length": "-5"}, {"Content-Length": "5, 5"}, {"Content-Length": "0x5"}),
        *({"Content-Length": "\xb2"}, {"idempotency_key": "a b"}),
    ],
    "body_too_large": [
        *({"Content-Length": "1001"}, {"Content-Length": "9" * 15}),
    ],
}


@pytest.mark.parametrize(
    ("reason", "fields"),
    [(reason, fields) for reason, all_of in HEADS.items() for fields in all_of],
    ids=lambda value: str(value)[:60],
)
def test_what_no_bot_may_send(reason: str | None, fields: Fields) -> None:
    assert head_reason(fields) == reason


def test_a_request_names_its_host() -> None:
    with pytest.raises(Refusal, match="Host header is missing") as caught:
        check_head(head_of({}), "GET", (1, 1), RULES)
    assert caught.value.slug == "bad_request"


@pytest.mark.parametrize("version", [(1, 0), (1, 1)])
@pytest.mark.parametrize("method", METHODS)
def test_all_methods_of_http_1_pass(method: str, version: tuple[int, int]) -> None:
    assert head_reason({}, method, version) is None


@pytest.mark.parametrize("version", [(0, 9), (1, 2), (2, 0), (3, 0)])
def test_other_versions_do_not(version: tuple[int, int]) -> None:
    assert head_reason({}, "GET", version) == "bad_request"


@pytest.mark.parametrize(
    ("method", "exchange", "slug", "told"),
    [
        (
            "CONNECT",
            "https://api.bybit.com",
            "method_refused",
            f"{GATEWAY} instead of https://api.bybit.com.",
        ),
        ("GET", "https://[2001:db8::1]:8443", "ambiguous_target", "instead of https://[2001:db8::1]:8443."),
        ("GET", GATEWAY, "ambiguous_target", f"and set its base URL to {GATEWAY}."),
        ("CONNECT", "", "method_refused", f"and set its base URL to {GATEWAY}."),
        # Longer than the parts of most names, and so perhaps a token.
        ("GET", f"https://{'a' * 40}", "ambiguous_target", f"and set its base URL to {GATEWAY}."),
    ],
)
def test_a_client_that_takes_the_gateway_for_a_proxy_is_told_what_to_write(
    method: str, exchange: str, slug: str, told: str
) -> None:
    refusal = not_a_proxy(method, exchange, GATEWAY)
    assert refusal.slug == slug
    assert refusal.detail.startswith(
        "The client uses the gateway as a proxy. Remove its proxy setting (proxyUrl,"
    )
    assert refusal.detail.endswith(told)
    assert refusal.phrase == f"Not a proxy: set the base URL to {GATEWAY}"


@pytest.mark.parametrize(
    "method", ["OPTIONS", "TRACE", "CONNECT", "PROPFIND", "PURGE", "M-SEARCH", "get", "GETT", ""]
)
def test_other_methods_do_not(method: str) -> None:
    assert head_reason({}, method) == "method_refused"


def test_the_guards_stand_in_this_order() -> None:
    """A request with every fault at once; each time the one that is told of is mended."""
    fields = {
        "Host": "evil.example",
        "Origin": "https://evil.example",
        "Expect": "more",
        "Transfer-Encoding": "gzip",
        "Content-Length": "5000",
        "Idempotency-Key": "k",
    }
    told = []
    for name in list(fields):
        told.append(head_reason(fields, "TRACE", (2, 0)))
        del fields[name]
    told += [head_reason(fields, "TRACE", (2, 0)), head_reason(fields, "TRACE"), head_reason(fields)]
    assert told == [
        "host_refused",
        "browser_refused",
        "expectation_refused",
        "bad_request",
        "body_too_large",
        "bad_request",
        "bad_request",
        "method_refused",
        None,
    ]


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        pytest.param("a", True, id="one letter"),
        pytest.param("Az09._-", True, id="all kinds"),
        pytest.param("x" * 64, True, id="longest"),
        pytest.param("x" * 65, False, id="too long"),
        pytest.param("", False, id="empty"),
        pytest.param("a b", False, id="space"),
        pytest.param("a\n", False, id="line end"),
        pytest.param("é", False, id="non-ASCII"),
        pytest.param("a/b", False, id="slash"),
    ],
)
def test_the_request_id_of_a_bot(text: str, *, taken: bool) -> None:
    assert request_id(head_of({"X-Gateway-Request-Id": text})) == (text if taken else None)
    assert request_id(head_of({})) is None


TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"00-{TRACE}-00f067aa0ba902b7-01", TRACE),
        (f"00-{TRACE.upper()}-00f067aa0ba902b7-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (f"00-{TRACE}", None),
        (f"cc-{TRACE}-00f067aa0ba902b7-01-more", TRACE),  # of a later version
        (f"ff-{TRACE}-00f067aa0ba902b7-01", None),  # of a version that never comes
        (f"00-{'0' * 32}-00f067aa0ba902b7-01", None),
        ("", None),
    ],
)
def test_the_trace_of_a_request(text: str, found: str | None) -> None:
    assert trace_id(head_of({"traceparent": text})) == found
    assert trace_id(head_of({})) is None


def test_of_two_traces_neither_counts() -> None:
    line = b"traceparent", f"00-{TRACE}-00f067aa0ba902b7-01".encode()
    assert trace_id(RULES.headers.sort([line, line])) is None


def basic(name: str, token: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{token}".encode("latin-1")).decode()


@pytest.mark.parametrize(
    ("authorization", "bot"),
    [
        pytest.param("Bearer grid-token", GRID, id="bearer"),
        pytest.param("bearer grid-token", GRID, id="bearer in small letters"),
        pytest.param("  BEARER   watch-token  ", WATCH, id="bearer with spaces"),
        pytest.param("Bearer p:a:s:s \xe9", CLERK, id="bearer with any octets"),
        pytest.param(basic("grid", "grid-token"), GRID, id="basic"),
        pytest.param(basic("grid", "grid-token").replace("Basic", "bASIC  "), GRID, id="basic with spaces"),
        pytest.param(basic("clerk", "p:a:s:s \xe9"), CLERK, id="basic with colons in the token"),
    ],
)
def test_a_token_names_its_bot(authorization: str, bot: Bot) -> None:
    assert identify(head_of({"Authorization": authorization}), RULES) is bot


@pytest.mark.parametrize(
    "authorization", ["", "Bearer watch-token", "Bearer e30.e30.x", basic("k", "secret")]
)
def test_a_token_in_a_header_of_its_own_beats_authorization(authorization: str) -> None:
    """That is the exchange's then: HS256, deri-hmac-sha256, a JSON Web Token, Basic with a made-up key."""
    sent = {"Authorization": authorization, "X-Gateway-Token": " p:a:s:s \xe9 "}
    assert identify(head_of(sent), RULES) is CLERK
    assert identify(head_of({"x_gateway_token": "grid-token"}), RULES) is GRID


@pytest.mark.parametrize(
    ("token", "told"),
    [
        ("", "The X-Gateway-Token header is empty."),
        ("wrong", "No bot has this token."),
        ("Bearer grid-token", "No bot has this token."),
        (basic("grid", "grid-token"), "No bot has this token."),
    ],
)
def test_authorization_does_not_help_a_wrong_token_in_a_header_of_its_own(token: str, told: str) -> None:
    sent = {"Authorization": "Bearer grid-token", "X-Gateway-Token": token}
    assert stranger(head_of(sent), Peer()) == told
    assert stranger(head_of(sent), Peer(uid=4711)) == told


UNKNOWN = "No bot has this token."
NO_TOKEN = "The Authorization header has no token: "
WRONG_NAME = "The token is valid, but the name before it is another bot's: "


STRANGERS = {
    NO_TOKEN: [
        *("", "Bearer", "grid-token", "Digest grid-token", basic("grid", "")),
        *("Basic " + base64.b64encode(b"grid-token").decode(), "Basic grid:grid-token", "Basic Z3JpZA"),
        *(basic("grid", "grid-token") + "*", "Basic \xe9\xe9\xe9\xe9", "Basic"),
    ],
    UNKNOWN: [
        *("Bearer no-such-token", "Bearer grid-token2", "Bearer GRID-TOKEN", basic("grid", "wrong")),
        basic("nobody", "wrong"),
    ],
    WRONG_NAME: [
        *(basic("watch", "grid-token"), basic("Grid", "grid-token"), basic("", "grid-token")),
    ],
}


@pytest.mark.parametrize(
    ("told", "authorization"), [(told, one) for told, all_of in STRANGERS.items() for one in all_of]
)
def test_others_are_strangers(told: str, authorization: str) -> None:
    """Nobody learns which names there are, and whose a token is."""
    caught = stranger(head_of({"Authorization": authorization}), Peer())
    assert caught.startswith(told)
    assert "grid" not in caught


def stranger(head: Head, peer: Peer, rules: Rules = RULES) -> str:
    """Return what is told to one."""
    with pytest.raises(Refusal) as caught:
        identify(head, rules, peer)
    assert caught.value.slug == "bot_unauthenticated"
    return caught.value.detail


def test_without_a_header_it_is_a_stranger() -> None:
    assert stranger(head_of({}), Peer()).startswith("No token was sent")
    assert stranger(head_of({}), Peer(uid=4711)).startswith("No token was sent")


@pytest.mark.parametrize("authorization", ["Bearer grid-token", basic("grid", "grid-token"), "Bearer wrong"])
def test_a_certificate_of_another_bot_does_not_tell_whether_a_token_is_right(authorization: str) -> None:
    told = stranger(head_of({"Authorization": authorization}), Peer(name="watch"))
    assert told == "The token does not belong to the bot in the client certificate."


@pytest.mark.parametrize("authorization", ["Bearer grid-token", basic("grid", "grid-token"), "Bearer wrong"])
def test_an_address_of_another_bot_does_not_tell_whether_a_token_is_right(authorization: str) -> None:
    told = stranger(head_of({"Authorization": authorization}), Peer(own=WATCHS))
    assert told == "The token does not belong to the bot of this address; remove it."


def test_an_address_that_a_reload_took_away_is_told() -> None:
    told = stranger(head_of({"Authorization": "Bearer grid-token"}), Peer(own=FORMER))
    assert told == "This address no longer belongs to the bot grid."


@pytest.mark.parametrize("address", ["127.0.0.1:8802", "localhost", "[::1]:8802"])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_web_socket_may_name_the_address_that_it_dials_as_its_origin(scheme: str, address: str) -> None:
    """What is left then is whether web sockets are forwarded."""
    fields = {"Host": address, "Origin": f"{scheme}://{address}", "Upgrade": "WebSocket"}
    assert head_reason(fields) in (None, "upgrade_refused")


def test_a_web_socket_of_a_rebinding_page_is_refused_by_its_host() -> None:
    fields = {"Host": "evil.example:8802", "Origin": "http://evil.example:8802", "Upgrade": "websocket"}
    assert head_reason(fields) == "host_refused"


@given(
    st.text(st.characters(codec="latin-1")).map("Basic {}".format) | st.text(st.characters(codec="latin-1"))
)
def test_no_header_breaks_the_identification(authorization: str) -> None:
    with pytest.raises(Refusal, match="bot_unauthenticated"):
        identify(head_of({"Authorization": authorization}), RULES)


@pytest.mark.parametrize("fields", [{}, {"Authorization": "Bearer no-such-token"}])
def test_where_no_bots_are_configured_everybody_is_the_local_one(fields: Fields) -> None:
    local = Bot("local", ("main",), frozenset({READ, TRADE}))
    assert identify(head_of(fields), replace(RULES, bots={}, local=local)) is local


def ticket(bot: Bot, call: str, fields: Fields | None = None) -> Ticket:
    method, _, raw = call.partition(" ")
    return authorise(bot, method, raw, head_of(fields or {}), RULES)


def refusal(bot: Bot, call: str, fields: Fields | None = None) -> Refusal:
    with pytest.raises(Refusal) as caught:
        ticket(bot, call, fields)
    return caught.value


PART = "a" * 15
LONGEST = f"{PART}." * 15 + "a" * 13
TOLD_HOSTS = {
    "a name": ("Evil.example:8787", ": evil.example"),
    "the shortest name": ("x", ": x"),
    "the longest name": (LONGEST, f": {LONGEST}"),
    "a longer one": (LONGEST + "a", ""),
    "an address": ("192.0.2.2:8787", ": 192.0.2.2"),
    "an address of the sixth version": ("[2001:db8:1:2:3:4:5:6]", ": 2001:db8:1:2:3:4:5:6"),
    "a part as long as a token's": (f"{PART}a.example", ""),
    "no name": ("", ""),
    "no name, but what a terminal acts on": ("\x9b31mevil", ""),
    "no name, but what ends a line": ('evil"\nx', ""),
}


@pytest.mark.parametrize(("host", "told"), TOLD_HOSTS.values(), ids=TOLD_HOSTS)
def test_a_refused_host_is_told_by_its_name_if_it_has_one(host: str, told: str) -> None:
    with pytest.raises(Refusal) as caught:
        check_head(head_of({"Host": host}), "GET", (1, 1), RULES)
    assert caught.value.detail == f"The Host header has a name that is not in listen.hosts{told}."


def test_a_head_meets_the_guard_first() -> None:
    stranger = head_of({"Host": "evil.example", "Authorization": "Bearer nobody"})
    with pytest.raises(Refusal, match="host_refused"):
        authenticate(stranger, "GET", (1, 1), RULES)
    local = Bot("local", ("main",), frozenset(Permission))
    assert (
        authenticate(head_of({"Host": "localhost"}), "GET", (1, 1), replace(RULES, bots={}, local=local))
        is local
    )


def test_the_ticket_has_all_that_the_pipeline_needs() -> None:
    head = head_of({"Accept": "*/*", "X-Gateway-Deadline-Ms": "250", "X-Gateway-Key": "alt"})
    got = authorise(GRID, "POST", "/v1/trade/order?a=%2C", head, RULES)
    assert (got.bot, got.key, got.method, got.head, got.deadline_s) == (GRID, "alt", "POST", head, 0.25)
    assert (got.target.raw, got.target.path) == ("/v1/trade/order?a=%2C", "/v1/trade/order")
    assert got.route == RULES.routes.find("POST", "/order")
    assert got.is_read is False


@pytest.mark.parametrize(
    ("bot", "call", "auth"),
    [
        pytest.param(GRID, "GET /v1/trade/time", Auth.OPEN, id="time"),
        pytest.param(WATCH, "GET /v1/trade/time", Auth.OPEN, id="time for a reader"),
        pytest.param(WATCH, "GET /v1/trade/symbols/list", Auth.SIGNED, id="read for a reader"),
        pytest.param(WATCH, "HEAD /v1/trade/anything", Auth.SIGNED, id="HEAD for a reader"),
        pytest.param(GRID, "POST /v1/trade/order", Auth.SIGNED, id="order for a trader"),
        pytest.param(GRID, "DELETE /v1/trade/order/7", Auth.SIGNED, id="cancel for a trader"),
        pytest.param(CLERK, "GET /v1/trade/api-keys", Auth.SESSION, id="keys for a clerk"),
        pytest.param(CLERK, "GET /v1/trade/api-keys/ak/audit?limit=5", Auth.SESSION, id="audit for a clerk"),
    ],
)
def test_a_bot_gets_what_it_may(bot: Bot, call: str, auth: Auth) -> None:
    assert ticket(bot, call).route.auth is auth


@pytest.mark.parametrize(
    ("bot", "call", "lacks"),
    [
        pytest.param(WATCH, "POST /v1/trade/order", "trade", id="order for a reader"),
        pytest.param(WATCH, "DELETE /v1/trade/order/7", "trade", id="cancel for a reader"),
        pytest.param(WATCH, "GET /v1/trade/api-keys", "keys", id="keys for a reader"),
        pytest.param(GRID, "GET /v1/trade/api-keys/", "keys", id="keys for a trader"),
        pytest.param(GRID, "HEAD /v1/trade/api-keys/ak/audit", "keys", id="audit for a trader"),
        pytest.param(CLERK, "GET /v1/trade/symbols/list", "read", id="read for a clerk"),
        pytest.param(CLERK, "GET /v1/trade/time", "read", id="time for a clerk"),
    ],
)
def test_a_bot_does_not_get_what_it_may_not(bot: Bot, call: str, lacks: str) -> None:
    answer = refusal(bot, call)
    assert answer.slug == "bot_forbidden"
    method, path = call.split()
    may = " and ".join(one.value for one in Permission if one in bot.may)
    assert answer.detail.startswith(f"{method} {path} needs {lacks}, and the bot {bot.name} may only {may}.")


def test_what_no_row_names_may_be_called_a_read() -> None:
    advice = "If this call only reads, declare it in [[routes]]."
    assert refusal(WATCH, "POST /v1/trade/report").detail.endswith(advice)
    assert advice not in refusal(WATCH, "POST /v1/trade/order").detail


@pytest.mark.parametrize(
    "call",
    [
        *("POST /v1/trade/api-keys", "DELETE /v1/trade/api-keys/all?really=yes", "GET /v1/trade/API-KEYS"),
        *("POST /v1/trade/user/handshake", "POST /v1/trade/user/Handshake%20?x=1"),
    ],
)
def test_what_is_the_apps_is_refused_to_every_bot(call: str) -> None:
    everything = Bot("all", ("main",), frozenset(Permission))
    assert refusal(everything, call).slug == "app_only"


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        pytest.param({}, "main", id="the first is the default"),
        pytest.param({"X-Gateway-Key": "main"}, "main", id="the first by name"),
        pytest.param({"X-Gateway-Key": "alt"}, "alt", id="another by name"),
        pytest.param({"x_gateway_key": "alt"}, "alt", id="with underscores"),
    ],
)
def test_a_bot_picks_its_key(fields: Fields, key: str) -> None:
    assert ticket(GRID, "GET /v1/trade/time", fields).key == key


@pytest.mark.parametrize("alias", ["ALT", "other", "", "main, alt"])
def test_a_bot_gets_no_other_key(alias: str) -> None:
    answer = refusal(GRID, "GET /v1/trade/time", {"X-Gateway-Key": alias})
    assert answer.slug == "bot_forbidden"
    assert "names none of the keys" in answer.detail


@pytest.mark.parametrize(
    ("text", "deadline_s"), [("0", 0.0), ("1", 0.001), ("3599999", 3599.999), ("999999999", 3600.0)]
)
def test_a_deadline_is_milliseconds_and_an_hour_at_most(text: str, deadline_s: float) -> None:
    fields = {"X-Gateway-Deadline-Ms": text}
    assert ticket(GRID, "GET /v1/trade/time", fields).deadline_s == deadline_s


def test_without_a_deadline_there_is_none() -> None:
    assert ticket(GRID, "GET /v1/trade/time").deadline_s is None


@pytest.mark.parametrize("text", ["", "-1", "+1", "1.5", "1e3", "soon", "1_0", "\xb2", "1" * 10, "1\n"])
def test_no_other_deadline_is_understood(text: str) -> None:
    answer = refusal(GRID, "GET /v1/trade/time", {"X-Gateway-Deadline-Ms": text})
    assert answer.slug == "bad_request"
    assert "X-Gateway-Deadline-Ms" in answer.detail


def faults() -> Iterator[tuple[str, Fields]]:
    """Yield requests with fewer faults each time."""
    fields = {"X-Gateway-Key": "other", "X-Gateway-Deadline-Ms": "soon"}
    yield "POST /v0/../api-keys", fields
    yield "POST /v0/api-keys", fields
    yield "POST /v1/trade/api-keys", fields
    yield "POST /v1/trade/order", fields
    yield "GET /v1/trade/order", fields
    del fields["X-Gateway-Key"]
    yield "GET /v1/trade/order", fields


def test_the_rules_stand_in_this_order() -> None:
    assert [refusal(WATCH, call, fields).slug for call, fields in faults()] == [
        *("ambiguous_target", "outside_prefix", "app_only", "bot_forbidden"),
        *("bot_forbidden", "bad_request"),
    ]


Asking = tuple[Fields, str, str, tuple[int, int], Peer]
ORDER = "/v1/trade/order"
FIELDS = {
    "Host": "localhost",
    "Authorization": "Bearer grid-token",
    "Idempotency-Key": "a",
    "User-Agent": "x",
}
ASKING: dict[str, Asking] = {
    "as before": (FIELDS, "POST", ORDER, (1, 1), Peer()),
    "no Idempotency-Key": (
        {name: value for name, value in FIELDS.items() if name != "Idempotency-Key"},
        *("POST", ORDER, (1, 1), Peer()),
    ),
    "another Idempotency-Key": (FIELDS | {"Idempotency-Key": "b"}, "POST", ORDER, (1, 1), Peer()),
    "a wrong Idempotency-Key": (FIELDS | {"Idempotency-Key": ""}, "POST", ORDER, (1, 1), Peer()),
    "an id": (FIELDS | {"X-Gateway-Request-Id": "r-1"}, "POST", ORDER, (1, 1), Peer()),
    "a field that is passed on": (FIELDS | {"X-Request-Id": "7"}, "POST", ORDER, (1, 1), Peer()),
    "another bot": (FIELDS | {"Authorization": "Bearer watch-token"}, "POST", ORDER, (1, 1), Peer()),
    "another bot by a header of its own": (
        FIELDS | {"X-Gateway-Token": "watch-token"},
        *("POST", ORDER, (1, 1), Peer()),
    ),
    "that bot, signing with Authorization": (
        FIELDS | {"Authorization": "HS256 x", "X-Gateway-Token": "watch-token"},
        *("POST", ORDER, (1, 1), Peer()),
    ),
    "a wrong token": (FIELDS | {"Authorization": "Bearer grid-tokem"}, "POST", ORDER, (1, 1), Peer()),
    "no token": ({"Host": "localhost"}, "POST", ORDER, (1, 1), Peer()),
    "another host": (FIELDS | {"Host": "evil.example"}, "POST", ORDER, (1, 1), Peer()),
    "a web page": (FIELDS | {"Origin": "null"}, "POST", ORDER, (1, 1), Peer()),
    "a large body": (FIELDS | {"Content-Length": "1001"}, "POST", ORDER, (1, 1), Peer()),
    "another key": (FIELDS | {"X-Gateway-Key": "alt"}, "POST", ORDER, (1, 1), Peer()),
    "a wrong key": (FIELDS | {"X-Gateway-Key": "other"}, "POST", ORDER, (1, 1), Peer()),
    "a deadline": (FIELDS | {"X-Gateway-Deadline-Ms": "5"}, "POST", ORDER, (1, 1), Peer()),
    "another method": (FIELDS, "GET", ORDER, (1, 1), Peer()),
    "a wrong method": (FIELDS, "TRACE", ORDER, (1, 1), Peer()),
    "another target": (FIELDS, "POST", "/v1/trade/order/cancel", (1, 1), Peer()),
    "a wrong target": (FIELDS, "POST", "/v1/trade/../order", (1, 1), Peer()),
    "a wrong version": (FIELDS, "POST", ORDER, (2, 0), Peer()),
    "another peer": (FIELDS, "POST", ORDER, (1, 1), Peer(name="watch")),
    "the address of a bot": ({"Host": "localhost"}, "POST", ORDER, (1, 1), Peer(own=WATCHS)),
    "the address of another": ({"Host": "localhost"}, "POST", ORDER, (1, 1), Peer(own=GRIDS)),
    "the address that was another's": ({"Host": "localhost"}, "POST", ORDER, (1, 1), Peer(own=FORMER)),
    "a large head": (FIELDS | {"X-Long": "x" * 5000}, "POST", ORDER, (1, 1), Peer()),
    "as a proxy": (FIELDS, "CONNECT", "api.example.com:443", (1, 1), Peer()),
}


def parsed(asking: Asking) -> tuple[RequestHead, Peer]:
    """Return the head as the parser hands it on, and who sent it."""
    fields, method, target, version, peer = asking
    lines = tuple((name.encode(), value.encode()) for name, value in fields.items())
    return RequestHead(method, target, version, lines), peer


def verdict(asking: Asking, admission: Admission | None = None) -> tuple[object, ...]:
    """Return what is decided on a request, by an admission that may know others, and what is noted."""
    admission = admission or Admission(RULES)
    head, peer = parsed(asking)
    record = Outcome("own", head.method, 0.0)
    try:
        found = admission.admit(head, head.target, peer, str, record)
    except Refusal as refusal:
        return refusal.slug, refusal.detail, record.bot
    assert found.head.text(b"idempotency-key") == asking[0].get("Idempotency-Key")
    decided = found.bot.name, found.key, found.route, found.method, found.target, found.deadline_s
    return *decided, found.is_read, found.head.passed, record.bot, record.request_id


@pytest.mark.parametrize("first", ASKING.values(), ids=ASKING)
def test_what_was_decided_before_changes_no_decision(first: Asking) -> None:
    for then in ASKING.values():
        admission = Admission(RULES)
        assert verdict(first, admission) == verdict(first)
        assert verdict(then, admission) == verdict(then)


def test_a_head_that_comes_again_gets_the_same_ticket_from_its_peer_alone() -> None:
    admission, record = Admission(RULES), Outcome("own", "POST", 0.0)
    fields = {name: value for name, value in FIELDS.items() if name != "Idempotency-Key"}
    head, peer = parsed((fields, "POST", ORDER, (1, 1), Peer()))
    first = admission.admit(head, head.target, peer, str, record)
    assert admission.admit(head, head.target, peer, str, record) is first
    with pytest.raises(Refusal, match="bot_unauthenticated"):
        admission.admit(head, head.target, Peer(name="mallory"), str, record)
    with pytest.raises(Refusal, match="does not belong to the bot of this address"):
        admission.admit(head, head.target, Peer(own=WATCHS), str, record)
    assert Admission(RULES).admit(head, head.target, peer, str, record) is not first, (
        "others have rules of their own"
    )


def test_an_authorization_that_is_not_read_makes_no_other_request() -> None:
    """Else a client that signs with it would push all others out of what is remembered."""

    def asked(fields: Fields) -> object:
        return asked_by(head_of(fields), "GET", ORDER, (1, 1), Peer())

    first, second = ({"Authorization": f"JWT {number}", "X-Gateway-Token": "grid-token"} for number in (1, 2))
    assert asked(first) == asked(second)
    assert asked(first) != asked(first | {"X-Gateway-Token": "watch-token"})
    assert asked({"Authorization": "Bearer grid-token"}) != asked({"Authorization": "Bearer watch-token"})


def test_what_is_remembered_is_bounded_and_can_be_forgotten() -> None:
    admission = Admission(RULES)
    for number in range(300):
        verdict((FIELDS, "GET", f"{ORDER}/{number}", (1, 1), Peer()), admission)
    admission.forget()
    head, peer = parsed(ASKING["as before"])
    assert admission.admit(head, head.target, peer, str, Outcome("own", "POST", 0.0)).target.raw == ORDER


NAMES = {
    "localhost": ["localhost", "LOCALHOST:8787"],
    "127.0.0.1": ["127.0.0.1:80"],
    "::1": ["[::1]:8787", "[::1]"],
    "my_bot.internal": ["my_bot.internal:1"],
    "2001:db8::ff": ["[2001:db8::FF]"],
    "": [
        *("::1", "evil.example:port", "localhost:", "localhost:123456", "[localhost]", "[::1"),
        *("localhost]", "[localhost", "[::1]x", "me@localhost", "localhost/", "localhost, localhost"),
        *("localhost\n", "LOCALHO\u017ft", ""),
    ],
}


@pytest.mark.parametrize(("name", "value"), [(name, one) for name, all_of in NAMES.items() for one in all_of])
def test_the_name_in_a_host_header(value: str, name: str) -> None:
    assert host_name(value) == name


MAY = frozenset({Permission.READ})
GRID_BOT, WATCH_BOT, LOCAL = (
    Bot("grid", ("main",), MAY),
    Bot("watch", ("main",), MAY),
    Bot("local", ("main",), MAY),
)
BY_PEER = replace(
    RULES,
    own={GRIDS: GRID_BOT, WATCHS: WATCH_BOT},
    bots={hashlib.sha256(b"watch-token").digest(): WATCH_BOT},
    users={1001: GRID_BOT},
    named={"grid": GRID_BOT, "watch": WATCH_BOT},
)


def head(token: str | None = None) -> Head:
    return head_of({"Host": "localhost"} | ({"Authorization": f"Bearer {token}"} if token else {}))


def who(peer: Peer, token: str | None, known: Rules) -> Bot | None:
    """Return the bot, None for a stranger."""
    with contextlib.suppress(Refusal):
        return identify(head(token), known, peer)
    return None


BOTS = {
    "by user": (Peer(uid=1001), None, GRID_BOT),
    "another user": (Peer(uid=1002), None, None),
    "root is no bot": (Peer(uid=0), None, None),
    "a token on the Unix socket": (Peer(uid=1002), "watch-token", WATCH_BOT),
    "a token goes before the user": (Peer(uid=1001), "watch-token", WATCH_BOT),
    "a wrong token is wrong for a known user, too": (Peer(uid=1001), "wrong", None),
    "by certificate": (Peer(name="grid"), None, GRID_BOT),
    "a certificate of nobody": (Peer(name="mallory"), None, None),
    "a certificate without a name": (Peer(name=""), None, None),
    "certificate and token of one bot": (Peer(name="watch"), "watch-token", WATCH_BOT),
    "a token of another bot than the certificate": (Peer(name="grid"), "watch-token", None),
    "a token does not help a certificate of nobody": (Peer(name=""), "watch-token", None),
    "a certificate does not help a wrong token": (Peer(name="watch"), "wrong", None),
    "TCP alone": (Peer(), None, None),
    "by address": (Peer(own=GRIDS), None, GRID_BOT),
    "its token at its address": (Peer(own=WATCHS), "watch-token", WATCH_BOT),
    "the token of another bot than the address": (Peer(own=GRIDS), "watch-token", None),
    "an address does not help a wrong token": (Peer(own=WATCHS), "wrong", None),
    "an address that the bot has no longer": (Peer(own=FORMER), None, None),
    "nor does a token of the bot that has it now": (Peer(own=FORMER), "watch-token", None),
}


@pytest.mark.parametrize(("peer", "token", "bot"), BOTS.values(), ids=BOTS)
def test_bots_by_their_connection(peer: Peer, token: str | None, bot: Bot | None) -> None:
    assert who(peer, token, BY_PEER) is bot


LOCALS = {
    "TCP": (Peer(), frozenset({0, 1000}), LOCAL),
    "our own user": (Peer(uid=1000), frozenset({0, 1000}), LOCAL),
    "another user": (Peer(uid=1001), frozenset({0, 1000}), None),
    "another user where the socket's mode decides": (Peer(uid=1001), None, LOCAL),
    "an address of a bot that there was": (Peer(own=GRIDS), None, None),
}


@pytest.mark.parametrize(("peer", "users", "bot"), LOCALS.values(), ids=LOCALS)
def test_who_is_local_without_bots(peer: Peer, users: frozenset[int] | None, bot: Bot | None) -> None:
    assert who(peer, None, replace(RULES, bots={}, own={}, local=LOCAL, local_users=users)) is bot


def test_what_is_kept_of_a_head_is_kept_for_its_peer_alone() -> None:
    same, known = head(), BY_PEER
    assert authenticate(same, "GET", (1, 1), known, Peer(uid=1001)) is GRID_BOT
    for peer in (Peer(uid=1002), Peer(), Peer(name="")):
        with pytest.raises(Refusal, match="bot_unauthenticated"):
            authenticate(same, "GET", (1, 1), known, peer)
    assert authenticate(same, "GET", (1, 1), known, Peer(name="watch")) is WATCH_BOT


def test_a_bot_without_a_key_at_the_exchange_is_told_where_it_has_one() -> None:
    keyless = replace(GRID, keys=(), exchanges=("perp", "coin"))
    with pytest.raises(Refusal, match="bot grid begins with /perp/ or /coin/") as refused:
        authorise(keyless, "GET", ORDER, head_of({}), RULES)
    assert (refused.value.slug, refused.value.members) == (
        "unknown_exchange",
        {"exchanges": ["perp", "coin"]},
    )


def test_bots_by_their_names() -> None:
    local = Bot("local", ("main",), frozenset())
    rules = replace(RULES, named={"grid": GRID})
    assert (rules.bot_named("grid"), rules.bot_named("local")) == (GRID, None)
    assert replace(RULES, local=local).bot_named("local") is local


def test_the_bot_of_a_request_for_no_exchange() -> None:
    """Its target is not looked at, except for what only a proxy is asked."""
    admission, record = Admission(RULES), Outcome("own", "GET", 0.0)
    head, peer = parsed(({**FIELDS, "X-Gateway-Request-Id": "its-own"}, "GET", "/nowhere", (1, 1), Peer()))
    assert admission.identify(head, peer, str, record)[0] is GRID
    assert (record.bot, record.request_id) == ("grid", "its-own")
    stranger, peer = parsed(({"Host": "localhost"}, "GET", "/nowhere", (1, 1), Peer()))
    with pytest.raises(Refusal, match="bot_unauthenticated"):
        admission.identify(stranger, peer, str, record)
    proxied, peer = parsed((FIELDS, "GET", "http://api.example.com/", (1, 1), Peer()))
    with pytest.raises(Refusal, match="as a proxy"):
        admission.identify(proxied, peer, lambda: "http://127.0.0.1:1", record)


STREAMED = replace(RULES, prefix="", stream_hosts=frozenset({"stream.example.com", "ws.example.com:8443"}))


@pytest.mark.parametrize("bot", [GRID, WATCH, CLERK])
@pytest.mark.parametrize("host", ["stream.example.com", "Stream.example.com:443", "ws.example.com:8443"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_the_path_of_a_stream_is_not_shown_nor_sent_without_an_upgrade(
    bot: Bot, host: str, method: str
) -> None:
    """A listen key may stand in it."""
    for path in ("", "/", "/ws/a-listen-key?token=a-token"):
        with pytest.raises(Refusal) as refused:
            authorise(bot, method, f"/{host}{path}", head_of({}), STREAMED)
        assert refused.value.slug == "upgrade_refused"
        assert "listen-key" not in refused.value.detail
        with_prefix = replace(STREAMED, prefix="/v1/trade")
        with pytest.raises(Refusal) as refused:
            authorise(bot, method, f"/{host}{path}", head_of({}), with_prefix)
        assert refused.value.slug == "upgrade_refused"
    assert (
        authorise(GRID, method, "/ws.example.com/x", head_of({}), STREAMED).target.path == "/ws.example.com/x"
    )
