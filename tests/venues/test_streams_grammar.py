"""`[[streams]]` of a venue's file: what it may say, which stream an address is, and what a message needs."""

from typing import Any

import pytest

from sealgate.venues.key_kinds import Kind
from sealgate.venues.routes import Auth, Lane, Permission
from sealgate.venues.stream_grammar import STREAM_NAMES
from sealgate.venues.streams import MessageRule, Stream, find_stream, headers_of, plain_host, use
from sealgate.venues.venue import VenueError, read_venue

HEAD = """name = "mine"
title = "Mine"
[signing]
message = "{timestamp}"
headers = { SIGN = "{signature}" }
[[limits.pools]]
name = "orders"
lanes = ["order"]
"""
HOST = '[[streams]]\nhost = "ws.example.com"\n'
MESSAGE = f'{HOST}[[streams.messages]]\nwhen = {{ "/op" = "auth" }}\n'
SIGNED = f'{MESSAGE}signs = "{{expires}}"\nputs = {{ "/sign" = "{{signature}}" }}\n'
REPLY = 'reply = { id = "/id", done = { "/ok" = true } }\n'


def streams(text: str) -> tuple[Stream, ...]:
    return read_venue("mine.toml", HEAD + text).streams


def stream(text: str) -> Stream:
    [only] = streams(text)
    return only


def error(text: str) -> str:
    """Return line and words of the error, lines counted from the first stream's."""
    with pytest.raises(VenueError) as raised:
        streams(text)
    file, line, words = str(raised.value).split(":", 2)
    assert file == "mine.toml"
    return f"{int(line) - HEAD.count(chr(10))}:{words}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[[streams]]", "1: host is missing"),
        ("[[streams]]\nhost = 5", "2: host must be a text or a list of texts"),
        ('[[streams]]\nhosts = "a.b"', "2: unknown key hosts; did you mean host?"),
        *(
            (
                f'[[streams]]\nhost = ["a.b", "{host}"]',
                f"2: '{host}' is not a host such as stream.example.com:9443, without :443",
            )
            for host in ("wss://a.b", "a.b/c", "A.b", "a.b:443", "a.b:", "", "a b", "a.b:\u0664", "\u00e4.de")
        ),
        *(
            (
                f'{HOST}paths = ["/a", "{path}"]',
                f"3: '{path}' is not a path such as /v1/{{name}}/private or /v1/**",
            )
            for path in ("a", "", "/a?b", "/a/{b", "/{a}{b}", "/a//b", "/a%2f", "/***", "/\u00e4")
        ),
        (f'{HOST}name = "a b"', "3: name = 'a b' is not a name without blanks"),
        (f'{HOST}needs = "reed"', "3: needs = 'reed' is unknown; did you mean read?"),
        # What a message is.
        (f"{HOST}messages = 5", "3: messages must be a list"),
        (f"{HOST}[[streams.messages]]\n", "3: when is missing"),
        (f"{HOST}[[streams.messages]]\nwhen = {{}}", "3: when is missing"),
        (
            f'{HOST}[[streams.messages]]\nwhen = {{ "op" = 1 }}',
            "4: 'op' is not a JSON pointer such as /op",
        ),
        (f'{MESSAGE}[[streams.messages]]\nwen = ""', "6: unknown key wen; did you mean when?"),
        (f'{MESSAGE}lane = "sell"', "5: lane = 'sell' is unknown; it may be cancel, order, read"),
        (f'{MESSAGE}lane = "order"\nneeds = "read"', "6: a message in the lane order needs trade or keys"),
        (
            f'{MESSAGE}lane = "order"\nputs = {{ "/n" = "{{nonce}}" }}\n{REPLY}',
            "6: an order may not have {nonce}: those of several streams would overtake it",
        ),
        (f'{MESSAGE}lane = "cancel"\nneeds = "read"', "6: a message in the lane cancel needs trade or keys"),
        (f'{MESSAGE}needs = "all"', "5: needs = 'all' is unknown; it may be read, trade, keys"),
        (f'{MESSAGE}pools = ["orders", "x"]', "5: 'x' in pools is none of [[limits.pools]]"),
        (
            f'{MESSAGE}pools = ["orders"]\nper = "symbol"',
            "6: per = 'symbol' is not a JSON pointer such as /symbol, or a request such as POST /order",
        ),
        (f'{MESSAGE}per = "/symbol"', "5: per is for pools: name them"),
        (f'{MESSAGE}kinds = ["dsa"]', "5: 'dsa' in kinds is not a kind of key (hmac, ed25519, rsa, es256)"),
        (f"{MESSAGE}login = 1", "5: login must be true or false"),
        (f"{MESSAGE}refuses = 1", "5: refuses must be a text"),
        (f"{MESSAGE}message = 1", "5: message must be a text"),
        *(
            (f"{MESSAGE}message = '{text}'", """5: message is not a JSON text such as '{"op":"login"}'""")
            for text in ("{", "5", '"login"')
        ),
        (f'{MESSAGE}drops = "url"', "5: 'url' in drops is not a JSON pointer such as /url"),
        (
            f'{MESSAGE}order = {{ in = "form" }}',
            "5: the orders of a message are in its JSON: order takes no other in",
        ),
        (f'{MESSAGE}order = {{ symbol = "s" }}', "5: symbol = 's' is not a JSON pointer such as /symbol"),
        # How it is signed.
        (f'{MESSAGE}signs = "{{expire}}"', "5: signs: unknown name {expire}; did you mean expires?"),
        (
            f'{MESSAGE}signs = "{{secret}}"',
            f"5: signs: unknown name {{secret}}; it may be {', '.join(STREAM_NAMES)}",
        ),
        (f'{SIGNED}timestamp = "msec"', "7: timestamp = 'msec' is unknown; did you mean ms?"),
        (f"{SIGNED}expires_s = -1", "7: expires_s is below 0"),
        (f'{SIGNED}encoding = "b64"', "7: encoding = 'b64' is not an encoding such as base64"),
        (f'{SIGNED}encoding = "base64|x"', "7: encoding = 'base64|x' is not an encoding such as base64"),
        (
            f'{SIGNED}encoding = "base64|hmac"',
            "7: encoding = 'base64|hmac' is not an encoding such as base64",
        ),
        (f'{MESSAGE}puts = {{ "a" = "x" }}', "5: 'a' is not a JSON pointer such as /args/0"),
        (f'{MESSAGE}puts = {{ "" = "x" }}', "5: '' is not a JSON pointer such as /args/0"),
        (f'{MESSAGE}puts = {{ "/a" = 5 }}', "5: /a must be a text"),
        (f'{MESSAGE}puts = {{ "/a" = "{{x}}" }}', "5: /a: unknown name {x}; it may be timestamp, "),
        (
            f'{MESSAGE}puts = {{ "/a" = "1{{timestamp|bare}}" }}',
            "5: /a: {name|bare} must be the whole text, and bare its last filter",
        ),
        (
            f'{MESSAGE}puts = {{ "/a" = "{{signature}}" }}',
            "3: signs and {signature} go together: what is signed, and where that is put",
        ),
        (
            f'{MESSAGE}parts = {{ b = "x{{signature}}" }}\nputs = {{ "/a" = "{{b}}" }}',
            "3: signs and {signature} go together: what is signed, and where that is put",
        ),
        (
            f'{MESSAGE}signs = "x"\nputs = {{ "/a" = "{{api_key}}" }}',
            "5: signs and {signature} go together: what is signed, and where that is put",
        ),
        (
            f'{MESSAGE}signs = "x{{signature}}"\nputs = {{ "/a" = "{{signature}}" }}',
            "5: signs cannot have {signature}, which is made of it",
        ),
        (
            f'{MESSAGE}parts = {{ b = "x{{signature}}" }}\nsigns = "{{b}}"\nputs = {{ "/a" = "{{b}}" }}',
            "6: signs cannot have {signature}, which is made of it",
        ),
        (f'{MESSAGE}parts = {{ a = "{{b}}", b = "" }}', "5: a: unknown name {b}; it may be timestamp, "),
        *(
            (f"{MESSAGE}parts = {{ a = {part} }}", "5: a: a part of a stream is a text, or has of or json")
            for part in (
                '{ each = "{/a}", then = "{item}" }',
                '{ of = "{/a}", then = { GET = "x" } }',
                '{ of = { GET = "{/a}" }, then = "x" }',
                '{ GET = "x" }',
            )
        ),
        (f"{MESSAGE}parts = 5", "5: parts must be a table"),
        # What answers it.
        (f"{MESSAGE}reply = {{}}", "5: a reply needs an id, or a when by which it is known"),
        (f'{MESSAGE}reply = {{ id = "id" }}', "5: id = 'id' is not a JSON pointer such as /id"),
        (f'{MESSAGE}reply = {{ id = "/id", at = "x" }}', "5: at = 'x' is not a JSON pointer such as /id"),
        (f'{MESSAGE}reply = {{ id = "/id" }}', "5: done is missing"),
        (f'{MESSAGE}reply = {{ id = "/id", done = 5 }}', "5: done must be a list"),
        (f'{MESSAGE}reply = {{ id = "/id", ok = 5 }}', "5: unknown key ok; it may be id, at, when, done"),
        (f"{HOST}[streams.reply]\nid = 5", "4: id must be a text"),
        *(
            (
                f'{HOST}[streams.reply]\nid = "/id"\nwait = "{wait}"',
                f"5: '{wait}' is not a place and how it is meant, as /retry as in_s is",
            )
            for wait in ("/retry", "/retry as", "retry as in_s", "/retry as in_h", " as in_s")
        ),
        (f'{HOST}[streams.reply]\nstatus = "s"', "4: status = 's' is not a JSON pointer such as /status"),
        # What the exchange asks, and the handshake.
        (
            f'{MESSAGE}signs = "{{challenge|sha256bin}}"\nputs = {{ "/a" = "{{signature}}" }}',
            "1: {challenge} needs [streams.challenge]: where the exchange's message has it",
        ),
        (f"{HOST}[streams.challenge]\n", "3: at is missing"),
        (f'{HOST}[streams.challenge]\nat = "m"', "4: at = 'm' is not a JSON pointer such as /message"),
        (f'{HOST}[streams.challenge]\nat = "/m"\nwhen = 5', "5: when must be a table"),
        (f"{HOST}[streams.challenge]\nat = '/m'\nmessage = 'x'", "5: message is not a JSON text such as"),
        (f'{HOST}[streams.challenge]\nat = "/m"\nif = 5', "5: unknown key if; it may be when, at"),
        (f"{HOST}[streams.handshake]", "3: a handshake needs headers, query or path"),
        (f"{HOST}[streams.handshake]\nputs = 5", "4: unknown key puts; did you mean parts?"),
        (
            f'{HOST}[streams.handshake.headers]\n"A B" = "x"',
            "4: 'A B' is not a name of letters, digits, - and _",
        ),
        (f'{HOST}[streams.handshake.headers]\nA = "x\\r\\nB: y"', "4: A has a control character"),
        (f'{HOST}[streams.handshake.query]\na = "{{/a}}"', "4: a: unknown name {/a}; it may be"),
        (f'{HOST}[streams.handshake]\nsigns = "{{/a}}"', "4: signs: unknown name {/a}; it may be"),
        (
            f'{HOST}[streams.handshake]\npath = "/{{challenge}}"',
            "4: path: unknown name {challenge}; it may be",
        ),
        *(
            (
                f'{HOST}[streams.handshake]\npath = "{path}"',
                f"4: path = '{path}' is not a path such as /v1/{{uid}}",
            )
            for path in ("v1", "/v1?a={uid}", "/v 1", "wss://a.b/c")
        ),
        (f'{HOST}[streams.handshake.parts]\na = "{{/a}}"', "4: a: unknown name {/a}; it may be"),
        (
            f'{HOST}[streams.handshake.headers]\nA = "{{signature}}"',
            "1: signs and {signature} go together: what is signed, and where that is put",
        ),
        (
            f'{HOST}[streams.handshake]\nsigns = "x"\npath = "/{{uid}}"',
            "4: signs and {signature} go together: what is signed, and where that is put",
        ),
        # The line is that of the second stream's second message.
        (f"{SIGNED}{SIGNED}[[streams.messages]]\nwhen = 5", "14: when must be a table"),
        (f"{SIGNED}{SIGNED}[streams.messages.reply]\nid = 5", "14: id must be a text"),
        (f"{SIGNED}{HOST}[streams.handshake.headers]\nA = 5", "10: A must be a text"),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, expected: str) -> None:
    assert error(text).startswith(expected)


@pytest.mark.parametrize(("text", "expected"), [("5", "a list"), ("[5]", "a list of tables")])
def test_streams_are_tables(text: str, expected: str) -> None:
    with pytest.raises(VenueError, match=rf"^mine\.toml:1: streams must be {expected}$"):
        read_venue("mine.toml", f"streams = {text}\n{HEAD}")


def test_what_a_file_does_not_say() -> None:
    found = stream(HOST)
    assert (found.label, found.needs, found.is_read, found.has_login) == (
        *("ws.example.com/**", Permission.READ),
        *(False, False),
    )
    assert find_stream([found], "ws.example.com", "/any/thing") is found
    assert streams("") == ()
    [rule] = stream(MESSAGE).messages
    [route] = rule.routes
    assert (route.template, route.needs, route.auth, route.lane) == (
        *("ws.example.com/** auth", Permission.READ),
        *(Auth.SIGNED, Lane.READ),
    )
    assert (rule.signing, rule.reply, rule.drops, rule.refuses, rule.is_login) == (None, None, (), "", False)
    assert (rule.kinds, route.pools, route.order, route.is_cancel) == (frozenset(), (), None, False)


@pytest.mark.parametrize(
    ("paths", "path", "is_it"),
    [
        ('["/v5/trade"]', "/v5/trade", True),
        ('["/v5/trade"]', "/v5/trade/", False),
        ('["/v5/trade"]', "/v5/tradeX", False),
        ('["/v5/trade"]', "/V5/trade", False),
        ('["/ws/v4/"]', "/ws/v4/", True),
        ('["/ws/v4/"]', "/ws/v4", False),
        ('["/"]', "/", True),
        ('["/"]', "/a", False),
        ('["/a", "/b.c"]', "/b.c", True),
        ('["/a", "/b.c"]', "/bxc", False),
        ('["/ws/{key}"]', "/ws/L1", True),
        ('["/ws/{key}"]', "/ws/", False),
        ('["/ws/{key}"]', "/ws/a/b", False),
        ('["/ws/{key}/x"]', "/ws/a/x", True),
        ('["/public/**"]', "/public/spot/a", True),
        ('["/public/**"]', "/public", False),
        ('["/**/end"]', "/a/b/end", True),
        ('["/**/end"]', "/a/b/end/c", False),
        ('"/one"', "/one", True),
    ],
)
def test_a_stream_is_known_by_its_path(paths: str, path: str, is_it: bool) -> None:
    found = stream(f"{HOST}paths = {paths}")
    assert (find_stream([found], "ws.example.com", path) is found) is is_it


def test_a_stream_is_known_by_its_host_and_the_first_that_fits_holds() -> None:
    text = """[[streams]]
host = ["ws.example.com", "ws.example.com:8443"]
paths = ["/private", "/{name}"]
name = "one"
[[streams]]
host = "ws.example.com"
name = "rest"
"""
    both = streams(text)
    for host, path, label in (
        ("ws.example.com", "/private", "one"),
        ("ws.example.com:443", "/private", "one"),
        ("WS.Example.com:443", "/private", "one"),
        ("ws.example.com:8443", "/private", "one"),
        ("ws.example.com", "/a/b", "rest"),
        ("ws.example.com:8443", "/a/b", None),
        ("ws.example.com:4430", "/private", None),
        ("example.com", "/private", None),
        ("ws.example.com.", "/private", None),
    ):
        found = find_stream(both, plain_host(host), path)
        assert (found and found.label) == label, (host, path)


ORDERS = """[[streams]]
host = "ws.example.com"
name = "trade"
[[streams.messages]]
when = { "/op" = ["order", "amend*", 5, true] }
lane = "order"
pools = ["orders"]
per = "/args/0/symbol"
order = { symbol = "/args/0/symbol" }
[[streams.messages]]
when = { "/op" = "cancel" }
lane = "cancel"
[[streams.messages]]
when = { "/op" = "payout" }
lane = "cancel"
needs = "keys"
reply = { when = { "/op" = "payout" }, done = { "/ok" = true } }
[[streams.messages]]
when = { "/op" = "sign", "/args/0" = "*" }
kinds = ["ed25519", "rsa"]
refuses = "use another way"
[[streams.messages]]
when = { "/op" = "sign" }
needs = "trade"
login = true
[[streams.messages]]
when = { "/op" = "lend" }
needs = "trade"
[[streams.messages]]
when = { "" = ["ping", 5] }
[streams.reply]
id = "/id"
done = { "/code" = 0 }
"""


@pytest.mark.parametrize(
    ("message", "template", "needs", "lane"),
    [
        ({"op": "order"}, "trade order", Permission.TRADE, Lane.ORDER),
        ({"op": "amend-it"}, "trade amend*", Permission.TRADE, Lane.ORDER),
        ({"op": 5}, "trade 5", Permission.TRADE, Lane.ORDER),
        ({"op": True}, "trade true", Permission.TRADE, Lane.ORDER),
        ({"op": "cancel"}, "trade cancel", Permission.TRADE, Lane.CANCEL),
        ({"op": "payout"}, "trade payout", Permission.KEYS, Lane.CANCEL),
        ({"op": "lend"}, "trade lend", Permission.TRADE, Lane.ORDER),
        ({"op": "sign"}, "trade sign", Permission.TRADE, Lane.READ),
        ("ping", "trade ping", Permission.READ, Lane.READ),
        (5, "trade 5", Permission.READ, Lane.READ),
        ({"op": "other"}, "trade other", Permission.TRADE, Lane.ORDER),
        ({"op": 1}, "trade other", Permission.TRADE, Lane.ORDER),
        ({"op": ["order"]}, "trade other", Permission.TRADE, Lane.ORDER),
        ([{"op": "order"}], "trade other", Permission.TRADE, Lane.ORDER),
        (None, "trade other", Permission.TRADE, Lane.ORDER),
        ("withdraw", "trade other", Permission.KEYS, Lane.ORDER),
        ({"op": "asset.withdraw"}, "trade other", Permission.KEYS, Lane.ORDER),
        ({"op": "Asset-With_Draw"}, "trade other", Permission.KEYS, Lane.ORDER),
        ({"op": "\uff57ithdra\u200bw"}, "trade other", Permission.KEYS, Lane.ORDER),
        ({"op": "account.transfer"}, "trade other", Permission.KEYS, Lane.ORDER),
        # Where the rules look there is a call: the words of its arguments do not count.
        ({"op": "new", "args": ["withdraw"]}, "trade other", Permission.TRADE, Lane.ORDER),
        ({"op": "new", "args": [{"symbol": "BANKUSDT"}]}, "trade other", Permission.TRADE, Lane.ORDER),
        ({"args": ["withdraw", {"symbol": "x"}]}, "trade other", Permission.KEYS, Lane.ORDER),
        # Where there is none, any text may be the call.
        ({"method": {"name": ["private/withdraw"]}}, "trade other", Permission.KEYS, Lane.ORDER),
        ([0, "withdraw", None, {}], "trade other", Permission.KEYS, Lane.ORDER),
        ([0, "on", None, {"amount": 5}], "trade other", Permission.TRADE, Lane.ORDER),
    ],
)
def test_a_message_is_one_that_the_file_names_or_counts_as_an_order(
    message: Any, template: str, needs: Permission, lane: Lane
) -> None:
    rule, route = stream(ORDERS).find(message, Kind.HMAC)
    assert (route.template, route.needs, route.lane) == (template, needs, lane)
    assert (rule is None) is (template == "trade other")
    # A cancel, and a login, pass a halt if they need no more than trade.
    assert route.is_cancel is (template in ("trade cancel", "trade sign"))
    assert not route.is_read or lane is Lane.READ
    assert rule is not None or route.order is None


def test_a_rule_holds_for_the_kinds_of_keys_that_it_names() -> None:
    found = stream(ORDERS)
    message = {"op": "sign", "args": ["x"]}
    refused: set[str] = set()
    for kind in Kind:
        rule, route = found.find(message, kind)
        assert rule is not None
        refused |= {kind} if rule.refuses else set()
        assert route.needs is (Permission.READ if rule.refuses else Permission.TRADE)
    assert refused == {Kind.ED25519, Kind.RSA}


def rule_of(text: str, message: Any) -> MessageRule:
    rule, _ = stream(text).find(message, Kind.HMAC)
    assert rule is not None
    return rule


def test_what_is_said_of_an_order_and_of_the_pools_is_kept() -> None:
    found = rule_of(ORDERS, {"op": "order"})
    assert {(route.pools, route.per) for route in found.routes} == {(("orders",), "/args/0/symbol")}
    assert {route.order.symbol for route in found.routes if route.order} == {("args", "0", "symbol")}
    assert stream(ORDERS).has_login
    assert not stream(MESSAGE).has_login


def test_orders_and_cancels_without_a_reply_of_their_own_have_that_of_the_stream() -> None:
    shared = rule_of(ORDERS, {"op": "order"}).reply
    assert shared is not None
    assert (shared.id, shared.at) == ("/id", "/id")
    assert rule_of(ORDERS, {"op": "cancel"}).reply == shared
    own = rule_of(ORDERS, {"op": "payout"}).reply
    assert own is not None
    assert own != shared
    assert rule_of(ORDERS, {"op": "sign"}).reply is None


def test_a_challenge_and_a_handshake_are_kept() -> None:
    text = f"""{HOST}[streams.challenge]
when = {{ "/event" = "challenge" }}
at = "/message"
message = '{{"event":"challenge"}}'
[streams.handshake]
signs = "{{timestamp}}"
headers = {{ X-Sign = "{{signature}}", x-key = "{{api_key}}" }}
[[streams.messages]]
when = {{ "/op" = "a" }}
signs = "{{challenge}}"
puts = {{ "/a" = "{{signature}}" }}
[[streams]]
host = "b.example.com"
[streams.handshake]
query = {{ key = "{{api_key}}" }}
"""
    first, second = streams(text)
    assert first.challenge is not None
    assert (first.challenge.at, first.challenge.message) == ("/message", '{"event":"challenge"}')
    assert first.has_login
    assert second.has_login
    assert first.handshake is not None
    assert second.handshake is not None
    assert (first.handshake.is_dated, second.handshake.is_dated) == (True, False)
    assert list(headers_of([first, second, stream(HOST)])) == ["x-sign", "x-key"]
    assert [use([first, second], name) for name in ("challenge", "timestamp", "api_key", "uid")] == [
        *(True, True, True, False)
    ]
    assert not use([stream(HOST)], "api_key")


@pytest.mark.parametrize(
    ("text", "is_dated"),
    [
        ('puts = { "/a" = "{api_key}" }', False),
        ('puts = { "/a" = "{timestamp}" }', True),
        ('signs = "{expires}"\nputs = { "/a" = "{signature}" }', True),
        ('parts = { t = "{timestamp}" }\nsigns = "{t}"\nputs = { "/a" = "{signature}" }', True),
    ],
)
def test_it_is_known_whether_a_message_carries_a_time(text: str, is_dated: bool) -> None:
    signing = rule_of(MESSAGE + text, {"op": "auth"}).signing
    assert signing is not None
    assert signing.is_dated is is_dated


def test_it_is_known_whether_a_stream_has_orders() -> None:
    assert stream(ORDERS).has_orders
    assert not stream(HOST).has_orders
    other = '[[streams.messages]]\nwhen = { "/op" = "a" }\n'
    for row in ('lane = "cancel"\n', 'needs = "keys"\n', 'lane = "order"\nrefuses = "no"\n', ""):
        assert not stream(f"{HOST}{other}{row}").has_orders


def test_a_route_is_named_by_the_file_and_never_by_what_a_bot_wrote() -> None:
    found = stream(ORDERS)
    for message in ({"op": "amend-SECRET"}, {"op": "SECRET"}, {"args": ["SECRET"]}):
        _, route = found.find(message, Kind.HMAC)
        assert "SECRET" not in route.template


def test_it_is_known_whether_a_stream_uses_the_key() -> None:
    assert stream(SIGNED).uses_key
    assert not stream(MESSAGE).uses_key
    assert stream(f'{HOST}[streams.handshake]\nquery = {{ key = "{{api_key}}" }}').uses_key
