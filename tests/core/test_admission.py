import base64
import hashlib
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealgate.config.venues import default_venue
from sealgate.core.admission import (
    _CHECKS,
    Bot,
    Peer,
    Rules,
    Ticket,
    TicketMemory,
    asked_by,
    authenticate,
    authorise,
    check_head,
    identify,
    request_id,
    trace_id,
)
from sealgate.core.headers import Head, HeaderRules
from sealgate.core.policy import Checks, Policy, PolicyMemory
from sealgate.core.routes import METHODS, Auth, Permission, RouteTable
from sealgate.errors import Refusal

READ, TRADE, KEYS = Permission.READ, Permission.TRADE, Permission.KEYS
GRID = Bot("grid", ("main", "alt"), frozenset({READ, TRADE}))
WATCH = Bot("watch", ("main",), frozenset({READ}))
CLERK = Bot("clerk", ("main",), frozenset({KEYS}))
TOKENS = {b"grid-token": GRID, b"watch-token": WATCH, b"p:a:s:s \xe9": CLERK}
RULES = Rules(
    prefix="/v1/trade",
    hosts=frozenset({"127.0.0.1", "localhost", "::1"}),
    bots={hashlib.sha256(token).digest(): bot for token, bot in TOKENS.items()},
    local=None,
    routes=RouteTable(default_venue().routes),
    headers=HeaderRules(default_venue().own_headers),
    max_body=1000,
)
POLICIES = PolicyMemory()
GUARD = POLICIES.guard("grid", Policy(symbols=frozenset({"BTC"})), "https://x")
GUARDED = replace(RULES, policies=POLICIES, guards={"grid": GUARD}, prices=POLICIES.prices["https://x"])
Fields = dict[str, str]


@pytest.mark.parametrize(
    ("method", "path", "is_guarded", "teaches"),
    [
        ("POST", "/order", True, False),
        ("POST", "/anything", True, False),
        ("DELETE", "/order/1", True, False),
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


def head_of(fields: Fields) -> Head:
    return RULES.headers.sort([(name.encode(), value.encode("latin-1")) for name, value in fields.items()])


def head_reason(fields: Fields, method: str = "GET", version: tuple[int, int] = (1, 1)) -> str | None:
    """Return the slug with which a head is refused, None where they let it through."""
    try:
        check_head(head_of({"Host": "localhost"} | fields), method, version, RULES)
    except Refusal as refusal:
        return refusal.slug
    return None


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        pytest.param({}, None, id="plain"),
        pytest.param({"Host": "127.0.0.1:8787"}, None, id="host with a port"),
        pytest.param({"Host": "LocalHost:1"}, None, id="host in capitals"),
        pytest.param({"Host": "[::1]:8787"}, None, id="IPv6 host with a port"),
        pytest.param({"Host": "[::1]"}, None, id="IPv6 host"),
        pytest.param({"Host": ""}, "host_refused", id="empty host"),
        pytest.param({"Host": "[localhost]"}, "host_refused", id="name in brackets"),
        pytest.param({"Host": "localhost]"}, "host_refused", id="half a bracket"),
        pytest.param({"Host": "::1"}, "host_refused", id="IPv6 host without brackets"),
        pytest.param({"Host": "evil.example"}, "host_refused", id="other host"),
        pytest.param({"Host": "evil.example:8787"}, "host_refused", id="other host with our port"),
        pytest.param({"Host": "localhost.evil.example"}, "host_refused", id="host that begins like ours"),
        pytest.param({"Host": "localhost:"}, "host_refused", id="port missing"),
        pytest.param({"Host": "localhost:123456"}, "host_refused", id="no port"),
        pytest.param({"Host": "localhost:80:80"}, "host_refused", id="two ports"),
        pytest.param({"Host": "localhost:80\n"}, "host_refused", id="line end after the port"),
        pytest.param({"Host": "me@localhost"}, "host_refused", id="host with a user"),
        pytest.param({"Origin": "null"}, "browser_refused", id="origin"),
        pytest.param({"Referer": ""}, "browser_refused", id="referer, though empty"),
        pytest.param({"Referer": "https://a.example/"}, "browser_refused", id="referer"),
        pytest.param({"Referer": "about:blank"}, "browser_refused", id="referer without a host"),
        pytest.param({"Referer": "/page"}, "browser_refused", id="referer of the same host"),
        pytest.param({"Referer": "CCXT"}, None, id="referer that is no URL"),
        pytest.param({"Referer": "my bot 1.0"}, None, id="referer in words"),
        pytest.param({"Sec-Fetch-Site": "none"}, "browser_refused", id="fetch site"),
        pytest.param({"sec.fetch+site": "none"}, "browser_refused", id="fetch site with other marks"),
        pytest.param({"sec_fetch_site": "none"}, "browser_refused", id="fetch site with underscores"),
        pytest.param({"Sec-Fetch-Mode": "cors"}, None, id="fetch mode, as Node sends it"),
        pytest.param({"Upgrade": "websocket"}, "upgrade_refused", id="web socket"),
        pytest.param({"Upgrade": "h2c, WebSocket/13"}, "upgrade_refused", id="web socket among offers"),
        pytest.param({"Upgrade": "h2c"}, None, id="other offer"),
        pytest.param({"Expect": "100-continue"}, None, id="continue"),
        pytest.param({"Expect": "100-Continue"}, None, id="continue in capitals"),
        pytest.param({"Expect": "200-ok"}, "expectation_refused", id="other expectation"),
        pytest.param({"Expect": ""}, "expectation_refused", id="empty expectation"),
        pytest.param({"Transfer-Encoding": "chunked"}, None, id="chunked"),
        pytest.param({"Transfer-Encoding": " Chunked"}, None, id="chunked, spelled otherwise"),
        pytest.param({"Transfer-Encoding": "identity, chunked"}, "coding_refused", id="identity, chunked"),
        pytest.param({"Transfer-Encoding": "gzip, chunked"}, "coding_refused", id="gzip, chunked"),
        pytest.param({"Transfer-Encoding": "br,\tGzip , Chunked"}, "coding_refused", id="three codings"),
        pytest.param({"Transfer-Encoding": "gzip"}, "bad_request", id="gzip alone"),
        pytest.param({"Transfer-Encoding": "chunked, gzip"}, "bad_request", id="chunked, gzip"),
        pytest.param({"Transfer-Encoding": "chunked, chunked"}, "bad_request", id="chunked twice"),
        pytest.param({"Transfer-Encoding": ", chunked"}, "bad_request", id="nothing, chunked"),
        pytest.param({"Transfer-Encoding": "chunked,"}, "bad_request", id="chunked, nothing"),
        pytest.param({"Transfer-Encoding": "xchunked"}, "bad_request", id="ends like chunked"),
        pytest.param({"Transfer-Encoding": "chunked;a=b"}, "bad_request", id="chunked with a parameter"),
        pytest.param({"Transfer-Encoding": '"chunked"'}, "bad_request", id="chunked in quotes"),
        pytest.param({"Transfer-Encoding": ""}, "bad_request", id="no coding"),
        pytest.param({"Content-Length": "0"}, None, id="no body"),
        pytest.param({"Content-Length": "1000"}, None, id="largest body"),
        pytest.param({"Content-Length": "01000"}, None, id="largest body with a zero first"),
        pytest.param({"Content-Length": "1001"}, "body_too_large", id="too large a body"),
        pytest.param({"Content-Length": "9" * 15}, "body_too_large", id="huge body"),
        pytest.param({"Content-Length": "9" * 5000}, "bad_request", id="absurd length"),
        pytest.param({"Content-Length": "+5"}, "bad_request", id="signed length"),
        pytest.param({"Content-Length": "-5"}, "bad_request", id="negative length"),
        pytest.param({"Content-Length": "5, 5"}, "bad_request", id="two lengths"),
        pytest.param({"Content-Length": "0x5"}, "bad_request", id="hexadecimal length"),
        pytest.param({"Content-Length": "\xb2"}, "bad_request", id="superscript length"),
        pytest.param({"Idempotency-Key": "k"}, None, id="idempotency key"),
        pytest.param({"idempotency_key": "a b"}, "bad_request", id="idempotency key with a blank"),
    ],
)
def test_what_no_bot_may_send(fields: Fields, reason: str | None) -> None:
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


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get", "GETT", ""])
def test_other_methods_do_not(method: str) -> None:
    assert head_reason({}, method) == "method_refused"


def test_the_guards_stand_in_this_order() -> None:
    """A request with every fault at once; each time the one that is told of is mended."""
    fields = {
        "Host": "evil.example",
        "Origin": "https://evil.example",
        "Upgrade": "websocket",
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
        "upgrade_refused",
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


def test_no_request_id() -> None:
    assert request_id(head_of({})) is None


TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"00-{TRACE}-00f067aa0ba902b7-01", TRACE),
        (f"00-{TRACE.upper()}-00f067aa0ba902b7-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (f"00-{TRACE}", None),
        ("", None),
    ],
)
def test_the_trace_of_a_request(text: str, found: str | None) -> None:
    assert trace_id(head_of({"traceparent": text})) == found


def test_no_trace() -> None:
    assert trace_id(head_of({})) is None


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


UNKNOWN = "No bot has this token."
NO_TOKEN = "The Authorization header has no token: "
WRONG_NAME = "The token is valid, but the name before it is another bot's: "


@pytest.mark.parametrize(
    ("authorization", "told"),
    [
        pytest.param("", NO_TOKEN, id="empty"),
        pytest.param("Bearer", NO_TOKEN, id="bearer alone"),
        pytest.param("Bearer no-such-token", UNKNOWN, id="unknown token"),
        pytest.param("Bearer grid-token2", UNKNOWN, id="token that goes on"),
        pytest.param("Bearer GRID-TOKEN", UNKNOWN, id="token in capitals"),
        pytest.param("grid-token", NO_TOKEN, id="no scheme"),
        pytest.param("Digest grid-token", NO_TOKEN, id="other scheme"),
        pytest.param(basic("watch", "grid-token"), WRONG_NAME, id="another bot's name with a right token"),
        pytest.param(basic("Grid", "grid-token"), WRONG_NAME, id="name in capitals"),
        pytest.param(basic("", "grid-token"), WRONG_NAME, id="no name"),
        pytest.param(basic("grid", "wrong"), UNKNOWN, id="a right name with an unknown token"),
        pytest.param(basic("nobody", "wrong"), UNKNOWN, id="a wrong name with an unknown token"),
        pytest.param(basic("grid", ""), NO_TOKEN, id="no token"),
        pytest.param(
            "Basic " + base64.b64encode(b"grid-token").decode(), NO_TOKEN, id="basic without a colon"
        ),
        pytest.param("Basic grid:grid-token", NO_TOKEN, id="basic not encoded"),
        pytest.param("Basic Z3JpZA", NO_TOKEN, id="basic cut"),
        pytest.param(basic("grid", "grid-token") + "*", NO_TOKEN, id="basic with a mark behind it"),
        pytest.param("Basic \xe9\xe9\xe9\xe9", NO_TOKEN, id="basic with other letters"),
        pytest.param("Basic", NO_TOKEN, id="basic alone"),
    ],
)
def test_others_are_strangers(authorization: str, told: str) -> None:
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


def test_a_bot_has_a_share_of_one_unless_it_says_otherwise() -> None:
    assert WATCH.weight == 1


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
    assert answer.detail == f"The bot {bot.name} lacks the permission {lacks}."


@pytest.mark.parametrize(
    "call",
    [
        "POST /v1/trade/api-keys",
        "POST /v1/trade/api-keys/",
        "PATCH /v1/trade/api-keys/ak_1",
        "DELETE /v1/trade/api-keys/ak_1",
        "DELETE /v1/trade/api-keys/all",
        "DELETE /v1/trade/api-keys/all/",
        "DELETE /v1/trade/api-keys/all?really=yes",
        "GET /v1/trade/api-keys/ak_1",
        "POST /v1/trade/api-keys/ak_1/audit",
        "GET /v1/trade/api-keys/ak_1/audit/deeper/still",
        "POST /v1/trade/user/handshake",
        "GET /v1/trade/user/handshake/",
        "GET /v1/trade/user/handshake/positions",
        "PUT /v1/trade/user/handshake/deeper/still",
        "GET /v1/trade/API-KEYS",
        "POST /v1/trade/api-keys.json",
        "DELETE /v1/trade/Api_Keys/all",
        "POST /v1/trade/user/Handshake%20?x=1",
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
        "ambiguous_target",
        "outside_prefix",
        "app_only",
        "bot_forbidden",
        "bot_forbidden",
        "bad_request",
    ]


def test_every_header_that_is_checked_is_kept() -> None:
    """A check for a header that the sorting drops would never run."""
    for name in _CHECKS:
        assert RULES.headers.sort([(name, b"x")]).kept == {name: b"x"}


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
    "another Idempotency-Key": (FIELDS | {"Idempotency-Key": "b"}, "POST", ORDER, (1, 1), Peer()),
    "a wrong Idempotency-Key": (FIELDS | {"Idempotency-Key": ""}, "POST", ORDER, (1, 1), Peer()),
    "an id": (FIELDS | {"X-Gateway-Request-Id": "r-1"}, "POST", ORDER, (1, 1), Peer()),
    "a field that is passed on": (FIELDS | {"X-Request-Id": "7"}, "POST", ORDER, (1, 1), Peer()),
    "another bot": (FIELDS | {"Authorization": "Bearer watch-token"}, "POST", ORDER, (1, 1), Peer()),
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
}


def verdict(asking: Asking, memory: TicketMemory | None = None) -> tuple[object, ...]:
    """Return what is decided on a request, by a memory or anew."""
    fields, method, target, version, peer = asking
    head = head_of(fields)
    asked = asked_by(head, method, target, version, peer)
    try:
        found = None if memory is None else memory.find(asked, head)
        if found is None:
            bot = authenticate(head, method, version, RULES, peer)
            found = authorise(bot, method, target, head, RULES)
    except Refusal as refusal:
        return refusal.slug, refusal.detail
    if memory is not None:
        memory.put(asked, found)
    assert found.head is head
    return found.bot.name, found.key, found.route, found.method, found.target, found.deadline_s, found.is_read


@pytest.mark.parametrize("first", ASKING.values(), ids=ASKING)
def test_what_was_decided_before_changes_no_decision(first: Asking) -> None:
    for then in ASKING.values():
        memory = TicketMemory()
        assert verdict(first, memory) == verdict(first)
        assert verdict(then, memory) == verdict(then)


def test_a_request_is_judged_once_where_only_what_is_its_own_differs() -> None:
    memory = TicketMemory()
    verdict(ASKING["as before"], memory)
    for name in ("as before", "another Idempotency-Key", "an id", "a field that is passed on"):
        fields, method, target, version, peer = ASKING[name]
        head = head_of(fields)
        assert memory.find(asked_by(head, method, target, version, peer), head) is not None


def test_a_request_without_an_idempotency_key_is_judged_once_too() -> None:
    memory = TicketMemory()
    fields, method, target, version, peer = ASKING["as before"]
    bare = {name: value for name, value in fields.items() if name.lower() != "idempotency-key"}
    verdict((bare, method, target, version, peer), memory)
    head = head_of(bare)
    assert memory.find(asked_by(head, method, target, version, peer), head) is not None


def test_the_memory_of_tickets_is_bounded_and_can_be_cleared() -> None:
    memory = TicketMemory(most=1)
    large = (FIELDS | {"X-Large": "a" * 5000}, "GET", ORDER, (1, 1), Peer())
    heads = [
        (asking, head_of(asking[0])) for asking in (ASKING["as before"], ASKING["another target"], large)
    ]

    def known() -> list[bool]:
        return [memory.find(asked_by(head, *one[1:]), head) is not None for one, head in heads]

    verdict(ASKING["as before"], memory)
    assert known() == [True, False, False]
    verdict(ASKING["another target"], memory)
    verdict(large, memory)
    assert known() == [False, True, False]
    memory.clear()
    assert known() == [False, False, False]
