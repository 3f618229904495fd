import base64
import hashlib
import hmac
import re
from pathlib import Path

import pytest

from sealgate import venues
from sealgate.exchange.stamps import Nonces, next_nonce
from sealgate.http.target import parse_target
from sealgate.keys.signer import KeyMaterial, sealer_of
from sealgate.venues.order_terms import OrderShape, PriceShape
from sealgate.venues.routes import Auth, Lane, Permission, RouteTable
from sealgate.venues.sealer import Sealer
from sealgate.venues.unsignable import UnsignableError
from sealgate.venues.venue import Scope, Venue, VenueError, read_venue

NOW_MS = 1_790_000_000_387
FOLDER = Path(venues.__file__).parent / "files"

LEAST = 'name = "mine"\ntitle = "Mine"\n[signing]\nmessage = "{timestamp}{method}{target}{body}"\n'
HEADERS = '[signing.headers]\nSIGN = "{signature}"\nTIME = "{timestamp}"\n'


def mine(signing: str = "", rest: str = "", headers: str = HEADERS) -> Venue:
    return read_venue("mine.toml", f"{LEAST}{signing}\n{headers}\n{rest}")


def service() -> Venue:
    return read_venue("service.toml", (FOLDER / "service.toml").read_text("utf-8"))


def key(secret: bytes = b"secret") -> KeyMaterial:
    return KeyMaterial("K", bytearray(secret), "pass", "memo")


def sealer(venue: Venue) -> Sealer:
    return sealer_of(venue, key(), "https://api.example.com:444/base")


def sent(venue: Venue, method: str, raw: str, body: bytes = b"") -> tuple[dict[str, str], str, bytes, bytes]:
    target = parse_target(raw, venue.prefix)
    lines, target_sent, body_sent, is_new_form = sealer(venue).sign(NOW_MS, b"77", method, target, body)
    fields = dict(line.split(": ", 1) for line in lines.decode().split("\r\n")[:-1])
    return fields, target_sent, body_sent, is_new_form


def message(venue: Venue, method: str, raw: str, body: bytes = b"") -> bytes:
    return sealer(venue).message(NOW_MS, b"77", method, parse_target(raw, venue.prefix), body)


def test_settings_stand_in_for_the_files() -> None:
    venue = service().overridden(prefix="/v2", header_prefix="X-MY-")
    fields, *_ = sent(venue, "GET", "/v2/order")
    assert list(fields) == ["X-MY-APIKEY", "X-MY-TIMESTAMP", "X-MY-SIGNATURE"]
    signed = {"x-my-apikey", "x-my-timestamp", "x-my-signature"}
    assert venue.own_headers == {*signed, "x-my-*", "x-service-*", "x-passkey-token"}
    assert message(venue, "GET", "/v2/order?a=1") == b"1790000000387GET/order"
    assert service().overridden() == service()


@pytest.mark.parametrize(
    ("secret", "stored", "keyed"),
    [
        ("utf8", b"s" * 200, b"s" * 200),
        ("hex", b"00ff", b"\x00\xff"),
        ("base64", b"AP8=", b"\x00\xff"),
        ("as_base64", b"ab", b"YWI="),
        ("sha256hex", b"ab", hashlib.sha256(b"ab").hexdigest().encode()),
        ("md5hex", b"ab", hashlib.md5(b"ab").hexdigest().encode()),  # noqa: S324
    ],
)
def test_the_hmac_is_keyed_as_the_file_says(secret: str, stored: bytes, keyed: bytes) -> None:
    venue = mine(f'secret = "{secret}"\ndigest = "sha512"')
    signer = sealer_of(venue, KeyMaterial("K", bytearray(stored)), "https://x.example")
    lines, *_ = signer.sign(NOW_MS, b"", "GET", parse_target("/a", ""), b"")
    expected = hmac.digest(keyed, b"1790000000387GET/a", "sha512").hex()
    assert lines.startswith(f"SIGN: {expected}\r\n".encode())


def test_a_secret_may_be_hashed_behind_the_message() -> None:
    venue = mine('secret = "appended"')
    fields, *_ = sent(venue, "GET", "/a")
    assert venue.signing.keeps_secret
    assert fields["SIGN"] == hashlib.sha256(b"1790000000387GET/asecret").hexdigest()


def test_a_secret_that_is_not_what_the_file_says_is_refused_and_not_shown() -> None:
    with pytest.raises(ValueError, match="the secret is not base64") as raised:
        sealer_of(mine('secret = "base64"'), key(b"#secret#"), "https://x.example")
    assert "#secret#" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert "secret" not in repr(key(b"#")).replace("KeyMaterial", "")


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        ("hex", lambda digest: digest.hex()),
        ("HEX", lambda digest: digest.hex().upper()),
        ("base64", lambda digest: base64.b64encode(digest).decode()),
        ("base64url", lambda digest: base64.urlsafe_b64encode(digest).decode().rstrip("=")),
        ("base64hex", lambda digest: base64.b64encode(digest.hex().encode()).decode()),
    ],
)
def test_signatures_are_written_as_the_file_says(encoding: str, expected: "object") -> None:
    digest = hmac.digest(b"secret", b"1790000000387GET/a", "sha256")
    assert callable(expected)
    assert sent(mine(f'encoding = "{encoding}"'), "GET", "/a")[0]["SIGN"] == expected(digest)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ('timestamp = "ms"', "1790000000387"),
        ('timestamp = "s"', "1790000000"),
        ('timestamp = "us"', "1790000000387000"),
        ('timestamp = "ns"', "1790000000387000000"),
        ('timestamp = "iso_ms"', "2026-09-21T14:13:20.387Z"),
        ('timestamp = "iso_s"', "2026-09-21T14:13:20"),
    ],
)
def test_timestamps_are_written_as_the_file_says(settings: str, expected: str) -> None:
    assert sent(mine(settings), "GET", "/a")[0]["TIME"] == expected


def test_a_time_of_expiry_is_the_timestamp_and_some_seconds() -> None:
    headers = f'{HEADERS}TIME2 = "{{expires}}"\n'
    both = sent(mine('timestamp = "s"\nexpires_s = 60', headers=headers), "GET", "/a")[0]
    assert (both["TIME"], both["TIME2"]) == ("1790000000", "1790000060")
    same = sent(mine('timestamp = "s"', headers=headers), "GET", "/a")[0]
    assert (same["TIME"], same["TIME2"]) == ("1790000000", "1790000000")


def test_a_template_may_differ_by_method_and_kind_of_body() -> None:
    cases = '{ DELETE = "D", form = "F{body}", body = "B", "*" = "E{host}" }'
    venue = read_venue("m.toml", LEAST.replace('"{timestamp}{method}{target}{body}"', cases) + HEADERS)
    assert message(venue, "DELETE", "/a", b"x") == b"D"
    assert message(venue, "POST", "/a", b"x") == b"Fx"
    assert message(venue, "POST", "/a", b"[]") == b"B"
    assert message(venue, "POST", "/a") == b"Eapi.example.com:444"


def test_a_method_without_a_message_signs_nothing() -> None:
    venue = read_venue(
        "m.toml", LEAST.replace('"{timestamp}{method}{target}{body}"', '{ GET = "G" }') + HEADERS
    )
    assert message(venue, "POST", "/a") == b""


def test_the_url_is_what_is_sent_and_the_path_leaves_out_the_prefix() -> None:
    venue = read_venue(
        "m.toml",
        'prefix = "/v1"\n'
        + LEAST.replace("{timestamp}{method}{target}", "{url} {path} {query|q} ")
        + HEADERS,
    )
    assert message(venue, "GET", "/v1/a?b=1") == b"api.example.com:444/base/v1/a?b=1 /a ?b=1 "


def test_additions_stand_behind_the_bots_query_unless_the_file_says_where() -> None:
    end = 'query_end = "&signature={signature}"\nstrips = ["t", "signature"]\n'
    venue = mine(f'query = "t={{timestamp}}"\n{end}', headers="")
    assert message(venue, "GET", "/a?t=1&b=2&signature=dummy") == b"1790000000387GET/a?b=2&t=1790000000387"
    _, target, body, type_line = sent(venue, "GET", "/a?b=2")
    assert target.startswith("/a?b=2&t=1790000000387&signature=")
    assert (body, type_line) == (b"", b"")
    assert sent(venue, "GET", "/a")[1].startswith("/a?t=1790000000387&signature=")
    before = mine(f'query = "t={{timestamp}}{{query|lamp}}"\n{end}', headers="")
    assert sent(before, "GET", "/a?b=2")[1].startswith("/a?t=1790000000387&b=2&signature=")


def test_parameters_may_be_put_in_order() -> None:
    venue = mine('query = "m={timestamp}"\nsorts_query = true')
    assert sent(venue, "GET", "/a?z=1&b=%20")[1] == "/a?b=%20&m=1790000000387&z=1"


def test_dummy_parameters_are_cut_out_in_any_spelling_and_nothing_else_changes() -> None:
    venue = mine('strips = ["sign"]')
    assert sent(venue, "GET", "/a?b=%2f&s%69gn=1&c=+&&sign")[1] == "/a?b=%2f&c=+"
    assert sent(venue, "GET", "/a?b=1&&c=2")[1] == "/a?b=1&&c=2"
    assert sent(venue, "GET", "/a?sign=1")[1] == "/a"


BARE = {
    "query": ("/a?b=2&t=1", b"", "/a?b=2", b""),
    "nothing else": ("/a?t=1", b"", "/a", b""),
    "form": ("/a", b"t=1&b=2", "/a", b"b=2"),
    "JSON": ("/a?t=1", b'{"b": "&t=1&"}', "/a", b'{"b": "&t=1&"}'),
}


@pytest.mark.parametrize(("target", "body", "bare_target", "bare_body"), BARE.values(), ids=BARE)
def test_a_request_is_the_same_whatever_its_dummy_parameters(
    target: str, body: bytes, bare_target: str, bare_body: bytes
) -> None:
    signer = sealer(mine('form = { form = "t={timestamp}{body|lamp}" }\nstrips = ["t"]'))
    asked, bare = parse_target(target, ""), parse_target(bare_target, "")
    assert signer.bare("POST", asked, body) == (bare_target, bare_body)
    assert signer.content("POST", asked, body) == signer.content("POST", bare, bare_body)


def test_where_the_venue_cuts_nothing_out_every_byte_counts() -> None:
    signer, asked = sealer(mine("")), parse_target("/a?t=1", "")
    assert signer.bare("POST", asked, b"t=1") == ("/a?t=1", b"t=1")
    assert signer.content("POST", asked, b"t=1") != signer.content("POST", asked, b"t=2")


def test_a_form_that_goes_as_it_came_counts_whole() -> None:
    """Only what is signed in a form has dummy parameters there."""
    signer = sealer(mine('strips = ["t"]'))
    assert signer.bare("POST", parse_target("/a?t=1", ""), b"t=1") == ("/a", b"t=1")


def test_additions_to_a_form_stand_at_its_ends() -> None:
    venue = mine(
        'nonce = "ms"\nform = "n={nonce}{body|lamp}"\nform_end = "&s={signature}"\nstrips = ["n", "s"]',
        headers="",
    )
    assert message(venue, "POST", "/a", b"n=1&b=2&s=dummy") == b"1790000000387POST/an=77&b=2"
    _, target, body, type_line = sent(venue, "POST", "/a", b"n=1&b=2&s=dummy")
    assert body.startswith(b"n=77&b=2&s=")
    assert (target, type_line) == ("/a", b"")
    assert sent(venue, "POST", "/a")[3]


def test_a_json_body_is_not_touched_so_it_is_refused_where_a_form_is_wanted() -> None:
    venue = mine('form = "n={nonce}{body|lamp}"')
    with pytest.raises(UnsignableError, match="signs no such body"):
        sent(venue, "POST", "/a", b'{"b": 2}')


def test_a_request_that_the_signature_has_no_place_in_is_refused() -> None:
    venue = mine('query_end = { empty = "&s={signature}" }', headers="")
    with pytest.raises(UnsignableError, match="signs no such body"):
        sent(venue, "POST", "/a", b"b=2")


def test_parts_are_made_before_the_signature_or_after_it() -> None:
    parts = (
        "[signing.parts]\nthird = '{api_key}:{signature}'\n"
        "first = { of = '{path}', finds = '^/(b)?' }\nnone = { of = '{path}', finds = '^/(zzz)' }\n"
        "only = { GET = 'g' }\n"
    )
    names = ("third", "first", "none", "only")
    headers = HEADERS + "".join(f"{name} = '{{{name}|pct}}'\n" for name in names) + "GONE = ''\n" + parts
    venue = mine(headers=headers)
    fields, *_ = sent(venue, "GET", "/b/c")
    assert [fields[name] for name in names] == [f"K%3A{fields['SIGN']}", "b", "", "g"]
    assert sent(venue, "POST", "/c")[0]["only"] == ""
    assert "GONE" not in fields
    assert "gone" in venue.own_headers
    assert venue.signs_with("Gone")
    assert not venue.signs_with("Other")
    assert service().signs_with("X-SERVICE-ANY")


def test_what_names_the_key_alone_needs_no_signature() -> None:
    venue = mine(headers=HEADERS + 'KEY = "{api_key}"\nVERSION = "2"\nGONE = ""\n')
    assert sealer(venue).key_lines() == b"KEY: K\r\nVERSION: 2\r\n"


def test_nonces_rise_also_where_the_clock_does_not() -> None:
    assert next_nonce("ms", NOW_MS, 0) == NOW_MS
    assert next_nonce("ms", NOW_MS, NOW_MS) == NOW_MS + 1
    assert next_nonce("us", NOW_MS, NOW_MS) == NOW_MS * 1000
    assert next_nonce("ns", NOW_MS, NOW_MS * 1000) == NOW_MS * 1_000_000


@pytest.mark.parametrize(("kind", "per_ms"), [("ms", 1), ("us", 1000)])
def test_reserved_nonces_last_for_seconds_and_begin_above_those_of_before(kind: str, per_ms: int) -> None:
    nonces = Nonces(kind, str)
    assert (nonces.is_number, nonces.is_new, nonces.lacks(NOW_MS)) == (True, True, True)
    until = nonces.wanted(NOW_MS)
    nonces.reserved(0, until)
    assert not nonces.is_new
    assert not nonces.lacks(NOW_MS + 5_000)
    assert nonces.lacks(NOW_MS + 8_500)  # before they are used up: writing may take a while
    assert nonces.lacks(NOW_MS + 10_000)
    assert nonces.take(NOW_MS) == b"%d" % (NOW_MS * per_ms)

    later = Nonces(kind, str)
    later.reserved(until, later.wanted(NOW_MS - 60_000))
    assert later.ahead_s(until, NOW_MS - 60_000) == pytest.approx(70)
    assert later.take(NOW_MS - 60_000) == b"%d" % (until + 1)
    assert later.lacks(NOW_MS - 60_000)
    later.reserved(until, later.wanted(NOW_MS - 60_000))
    assert later.take(NOW_MS - 60_000) == b"%d" % (until + 2)
    assert not later.lacks(NOW_MS - 60_000)


def test_nonces_in_seconds_are_whole_or_have_eight_decimals() -> None:
    whole, fine = Nonces("s", str), Nonces("s8", str)
    assert [whole.take(NOW_MS), whole.take(NOW_MS)] == [b"1790000000", b"1790000001"]
    assert [fine.take(NOW_MS), fine.take(NOW_MS)] == [b"1790000000.38700000", b"1790000000.38700001"]
    assert Nonces("hex", lambda: "a-b-c").take(NOW_MS) == b"abc"


def test_nonces_that_are_no_numbers_are_not_reserved() -> None:
    assert not Nonces("none", str).is_number
    assert Nonces("none", str).take(NOW_MS) == b""
    assert not Nonces("uuid", lambda: "one").is_number
    assert Nonces("uuid", lambda: "one").take(NOW_MS) == b"one"


def test_a_key_cannot_begin_a_header_line_of_its_own() -> None:
    material = KeyMaterial("K\r\nX: 1", bytearray(b"secret"))
    with pytest.raises(ValueError, match="api_key has a control character"):
        sealer_of(mine(), material, "https://x.example")


def test_a_venue_names_what_a_key_needs_beside_its_secret() -> None:
    venue = mine(headers=HEADERS + 'P = "{passphrase}"\n[signing.parts]\nu = "{uid}"\n')
    assert venue.further_settings == ("passphrase", "uid")
    assert mine().further_settings == ()


def test_the_keys_window_stands_in_for_the_files() -> None:
    venue = mine('recv_window = "5000"', headers=HEADERS + 'W = "{recv_window}"\n')
    target = parse_target("/a", "")
    for window, expected in (("", b"W: 5000\r\n"), ("900", b"W: 900\r\n")):
        material = KeyMaterial("K", bytearray(b"s"), recv_window=window)
        assert (
            expected
            in sealer_of(venue, material, "https://x.example").sign(NOW_MS, b"", "GET", target, b"")[0]
        )


def test_how_long_a_timestamp_holds_is_said_by_the_file_or_not_at_all() -> None:
    windowed = mine('recv_window = "7000"')
    assert (windowed.recv_window_ms, windowed.states_window) == (7000, True)
    expiring = mine("expires_s = 9")
    assert (expiring.recv_window_ms, expiring.states_window) == (9000, True)
    assert (mine().recv_window_ms, mine().states_window) == (5000, False)
    assert (windowed.fixes_window, expiring.fixes_window, mine().fixes_window) == (True, True, False)
    sent = mine('recv_window = "7000"', headers=HEADERS + 'W = "{recv_window}"\n')
    by_key = mine('recv_window = "7000"\nrecv_window_per_key = true')
    assert (sent.fixes_window, by_key.fixes_window) == (False, False)


def test_what_is_signed_of_a_request_and_what_it_says_of_the_key() -> None:
    venue = mine(rest='[[routes]]\nmatch = "GET /open"\nauth = "open"\n[[routes]]\nmatch = "GET /mine"\n')
    assert venue.unsigned_routes == {"/open"}
    assert venue.signed_target == "path_and_query"
    path_alone = read_venue("mine.toml", LEAST.replace("{target}{body}", "{path}") + HEADERS)
    assert path_alone.signed_target == "path"
    assert sealer(venue).signature(b"m") == sealer(venue).signature(b"m")


def test_the_rest_of_a_file_is_read() -> None:
    venue = mine(
        rest="""
[clock]
path = "/time"
field = "/data/0/ts"
[limits]
scope = "address"
known = ["1200/60s", "10/1s"]
counters = [{ header = "X-USED", window_s = 60, most = 1200 },
  { header = "X-LEFT", counts = "left", most_header = "X-MOST", resets_header = "X-RESET", resets = "in_ms" },
  { header = "X-REST", counts = "left" }]
[reads]
signed = "/me?type=SPOT"
[[routes]]
match = ["GET /a/**", "* /b/{id}"]
needs = "trade"
lane = "order"
cost = 2
[[routes]]
match = "GET /c"
auth = "open"
"""
    )
    assert (venue.clock_path, venue.clock_field, venue.signed_read, venue.key_list) == (
        "/time",
        "/data/0/ts",
        "/me?type=SPOT",
        "",
    )
    assert venue.limits.scope is Scope.ADDRESS
    assert venue.limits.pools[0].known == ("1200/60s", "10/1s")
    first, second, third = venue.limits.counters
    assert (first.header, first.counts, first.window_s, first.most) == ("X-USED", "used", 60.0, 1200.0)
    assert (second.counts, second.most, second.most_header) == ("left", 0.0, "X-MOST")
    assert (second.resets_header, second.resets) == ("X-RESET", "in_ms")
    assert (third.most, third.most_header, third.resets) == (0.0, "", "")
    of_the_clock, subtree, each, open_route = venue.routes
    assert (of_the_clock.method, of_the_clock.template, of_the_clock.auth) == ("GET", "/time", Auth.OPEN)
    assert (subtree.method, subtree.template, subtree.needs, subtree.lane, subtree.cost) == (
        "GET", "/a/**", Permission.TRADE, Lane.ORDER, 2.0,
    )  # fmt: skip
    assert (each.method, each.template, each.auth) == ("*", "/b/{id}", Auth.SIGNED)
    assert (open_route.auth, open_route.needs, open_route.lane) == (Auth.OPEN, None, None)


ROUTE = '[[routes]]\nmatch = "POST /a"\n'


def test_a_route_says_where_its_orders_and_prices_are() -> None:
    text = """
[[routes]]
match = "POST /order"
[routes.order]
in = "parameters"
each = "/a~1b/orders"
symbol = "/s"
size = "/q/n"
kind = "/k"
limit = ["LIMIT"]
side = "/side"
buys = "BUY"
trigger = "/stop"
never = "/quote"
beside = "/c"
reduce_only = "/r"
reduce_only_if = [{ "/c" = "a" }, { "/l" = "2" }]
contracts = true
[[routes.order.only]]
"/c" = "a|b"
[[routes]]
match = "GET /prices"
prices = { each = "", symbol = "/s", price = "/p" }
"""
    order, prices = read_venue("mine.toml", LEAST + text).routes
    assert order.order == OrderShape(
        is_json=False,
        in_query=True,
        each=("a/b", "orders"),
        symbol=("s",),
        size=("q", "n"),
        kind=("k",),
        limit=frozenset({"LIMIT"}),
        side=("side",),
        buys=frozenset({"BUY"}),
        trigger=("stop",),
        only=({("c",): re.compile("a|b")},),
        beside=(("c",),),
        reduce_only=("r",),
        reduce_only_if=({("c",): re.compile("a")}, {("l",): re.compile("2")}),
        never=(("quote",),),
        in_contracts=True,
    )
    assert prices.prices == PriceShape(("s",), ("p",), ())
    assert (order.prices, prices.order) == (None, None)


def test_a_route_says_that_its_replies_are_for_one_bot_alone() -> None:
    rows = ROUTE + "shared = false\n" + ROUTE + ROUTE + "shared = true\n"
    assert [row.is_shareable for row in read_venue("mine.toml", LEAST + rows).routes] == [False, True, True]


def test_a_route_says_where_its_replies_have_addresses_of_streams() -> None:
    rows = ROUTE + 'streams_at = "/data/servers/*/at"\n' + ROUTE + 'streams_at = "/at"\nshared = true\n'
    first, second = read_venue("mine.toml", LEAST + rows).routes
    assert (first.streams_at, second.streams_at) == (("data", "servers", "*", "at"), ("at",))
    assert not first.is_shareable
    assert not second.is_shareable
    with pytest.raises(VenueError, match="streams_at = 'at' is not a JSON pointer"):
        read_venue("mine.toml", LEAST + ROUTE + 'streams_at = "at"\n')


def test_a_route_says_which_bodies_need_less() -> None:
    text = """
[[routes]]
match = "POST /move"
needs = "keys"
trade_if = { in = "form", each = "/a", only = [{ "/type" = "0?" }], never = ["/user"] }
"""
    (route,) = read_venue("mine.toml", LEAST + text).routes
    assert route.trade_if == OrderShape(
        is_json=False, each=("a",), only=({("type",): re.compile("0?")},), never=(("user",),)
    )


COUNTER = '[[limits.counters]]\nheader = "X"\n'


def below(head: str, *rows: tuple[str, str]) -> list[tuple[str, str]]:
    return [(head + text, error) for text, error in rows]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("# nothing\n", "1: name is missing"),
        ("name = \n", "1: not valid TOML: Invalid value"),
        ('name = "x', "1: not valid TOML: Unterminated string"),
        ('note = "one line\\nand another"\n' + LEAST, "1: note has characters that are not printable"),
        (LEAST.replace("message", "mesage"), "4: unknown key mesage; did you mean message?"),
        (
            LEAST.replace("message", "zzzzzz"),
            "4: unknown key zzzzzz; it may be message, query, query_end, form, ",
        ),
        (LEAST.replace("{target}", "{tagret}"), "4: message: unknown name {tagret}; did you mean target?"),
        (
            LEAST.replace("{target}", "{target|unqote}"),
            "4: message: unknown filter |unqote; did you mean unquote?",
        ),
        (LEAST + 'strips = ["größe"]\n', "5: 'größe' in strips is not a parameter name"),
        (LEAST + 'recv_window = "५"\n', "5: recv_window = '५' is not a number of milliseconds"),
        (
            'base_url = "https://x.y/größe"\n' + LEAST,
            "1: base_url = 'https://x.y/größe' is not an https address without a slash at its end",
        ),
        ('words = "msg"\n' + LEAST, "1: 'msg' in words is not a JSON pointer such as /msg"),
        ('name = "m"\ntitle = "M"\n[signing]\n', "3: message is missing"),
        ('title = "M"\n[signing]\nmessage = "m"\n', "1: name is missing"),
        ('name = "M"\ntitle = "M"\n[signing]\nmessage = "m"', "1: name = 'M' is not a name such as my-venue"),
        (
            'base_url = "http://x.y"\n' + LEAST,
            "1: base_url = 'http://x.y' is not an https address without a slash at its end",
        ),
        *below(
            LEAST,
            ('digest = "sha255"', "5: digest = 'sha255' is unknown; did you mean sha256?"),
            ('nonce_order = "falling"', "5: nonce_order = 'falling' is unknown; it may be rising, any"),
            ('query = { GTE = "a" }', "5: unknown key GTE; did you mean GET?"),
            ('drops = ["a b"]', "5: 'a b' in drops is not a header name, or a prefix such as X-MINE-*"),
            ('query = { GET = "{querry}" }', "5: GET: unknown name {querry}; did you mean query?"),
            ('query = "{query|unquote}"', "5: query may have {query}, {query|amp} or {query|lamp} once"),
            ('form = "{body}{body}"', "5: form may have {body}, {body|amp} or {body|lamp} once"),
            ('strips = ["a b"]', "5: 'a b' in strips is not a parameter name"),
            ("strips = [1]", "5: strips must be a text or a list of texts"),
            ("strips = 1", "5: strips must be a text or a list of texts"),
            ('recv_window = "5s"', "5: recv_window = '5s' is not a number of milliseconds"),
            ("expires_s = -1", "5: expires_s is below 0"),
            ('expires_s = "1"', "5: expires_s must be a whole number"),
            ("expires_s = true", "5: expires_s must be a whole number"),
            ('sorts_query = "yes"', "5: sorts_query must be true or false"),
            ("headers = 5", "5: headers must be a table"),
            ('[signing.headers]\n"A B" = ""', "6: 'A B' is not a header name"),
            ("[signing.headers]\n'A:B' = ''", "6: 'A:B' is not a header name"),
            (
                '[signing.headers]\nA = "{p}"\n[signing.parts]\npp = ""',
                "6: A: unknown name {p}; did you mean pp?",
            ),
            ('[signing.parts]\npair = "{rest}"\nrest = ""', "6: pair: unknown name {rest}; "),
            (
                "[signing.parts]\np = { of = '', finds = '(' }",
                "6: finds is not a regular expression: missing ), ",
            ),
            (
                "[signing.parts]\np = { of = '', finds = 'a' }",
                "6: finds must have one group, for what is found",
            ),
            ('[signing.headers]\nA = "a\\nb"', "6: A has a control character"),
            (
                '[signing.headers]\nA = "{body}"',
                "6: A: in a header, {body} must end with one of the filters base58, base64, ",
            ),
            (
                '[signing.headers]\nA = "{query|unquote}"',
                "6: A: in a header, {query} must end with one of the filters base58, ",
            ),
            ('[clock]\nfield = "data"', "6: field = 'data' is not a JSON pointer such as /data/0/ts"),
            ('[limits]\nscope = "user"', "6: scope = 'user' is unknown; it may be key, account, address"),
            ('[limits]\nknown = ["20"]', "6: '20' in known is not a limit such as 1200/60s"),
            (
                '[reads]\nprices = "/p?s={name}"',
                "6: '/p?s={name}' is not a read such as /v1/price?symbol={symbol}",
            ),
            ('[reads]\nprices = ["p"]', "6: 'p' is not a read such as"),
            ('[reads]\nprices = "/p"', "6: '/p' in prices is no GET of [[routes]] that has prices"),
            ("[limits]\ncounters = [1]", "6: counters must be a list of tables"),
            (
                '[[routes]]\nmatch = "GET /a"\n[[routes]]\nmatch = "GTE /a"',
                "8: 'GTE /a' does not begin with a method (GET,",
            ),
            ('[[routes]]\nmatch = "GET a"', "6: 'GET a' is not under the prefix /"),
            ("[[routes]]\ncost = 2", "5: match is missing"),
            (
                '[[routes]]\nmatch = "GET /a"\nlane = "fast"',
                "7: lane = 'fast' is unknown; it may be , cancel, order, read",
            ),
            *(
                (
                    f'[[routes]]\nmatch = "GET {path}"',
                    f"6: 'GET {path}' is not a path whose segments are text",
                )
                for path in ("/a*", "/a/{b}{c}", "/a/{}", "/a//b", "/**/a/**/b", "/a/***", "/a/{b")
            ),
            (
                ROUTE + 'trade_if = { only = [{ "/a" = "" }] }',
                '7: trade_if needs needs = "keys": it says which bodies need less',
            ),
            (ROUTE + 'needs = "keys"\ntrade_if = { in = "json" }', "8: only is missing"),
            (ROUTE + 'prices = { symbol = "/s" }', "7: price is missing"),
        ),
        *below(
            LEAST + COUNTER,
            ("", "5: a counter has most, most_header where replies say it, or known of its window"),
            ('most = 5\nmost_header = "Y"', "7: a counter has most, or most_header where replies say it"),
            ('most = 5\nresets = "in_s"', "8: resets needs resets_header"),
            ('most = 5\nresets_header = "Y"', "5: resets is missing"),
            (
                'most = 5\nresets_header = "Y"\nresets = "epoch"',
                "9: resets = 'epoch' is unknown; did you mean epoch_s?",
            ),
            ("most = 0", "7: most must be a number above 0"),
            ("most = true", "7: most must be a number above 0"),
        ),
        *below(
            LEAST + ROUTE,
            ('order = { symbol = "s" }', "7: symbol = 's' is not a JSON pointer such as /symbol"),
            ('order = { never = ["s"] }', "7: 's' in never is not a JSON pointer"),
            ('order = { kind = "/k" }', "7: kind and limit go together"),
            ('order = { buys = "buy" }', "7: side and buys go together"),
            ('order = { only = [{ c = "a" }] }', "7: 'c' in only is not a JSON pointer"),
            ('order = { only = [{ "/c" = "(" }] }', "7: /c is not a regular expression: missing )"),
            ('order = { only = { "/c" = "a" } }', "7: only must be a list"),
            ('order = { beside = "/c" }', "7: beside needs each"),
            ('order = { each = "", beside = "/c" }', "7: beside needs each"),
            ("order = { reduce_only_if = [] }", "7: reduce_only_if needs reduce_only"),
            ('order = { in = "xml" }', "7: in = 'xml' is unknown; it may be json, form, parameters"),
            ("order = { sise = 1 }", "7: unknown key sise; did you mean size?"),
        ),
    ],
)
def test_a_broken_file_is_refused_in_one_line_with_its_place(text: str, error: str) -> None:
    with pytest.raises(VenueError) as raised:
        read_venue("mine.toml", text)
    assert str(raised.value).startswith(f"mine.toml:{error}")
    assert "\n" not in str(raised.value)


def test_the_reads_of_prices_are_those_of_the_file_under_the_prefix_that_is_set() -> None:
    prices = '[[routes]]\nmatch = "GET /x/p/{s}"\nauth = "open"\nprices = { symbol = "/s", price = "/p" }'
    text = f'prefix = "/x"\n{LEAST}{HEADERS}[reads]\nprices = "/x/p/{{symbol}}"\n{prices}'
    venue = read_venue("mine.toml", text)
    assert venue.price_reads == ("/x/p/{symbol}",)
    assert venue.overridden(prefix="/y").price_reads == ("/y/p/{symbol}",)


ADDS = (
    'form = { form = "t={timestamp}{body|lamp}" }\nquery = { GET = "api.key={api_key}" }\nstrips = ["sign"]'
)


@pytest.mark.parametrize(
    "name", ["t[]", "T", "%74", "+t", "a=1;t", "\x00t", "t%00", "sign+", "[sign]", "api_key"]
)
def test_no_spelling_of_the_gateways_own_parameters_is_signed(name: str) -> None:
    signer = sealer(mine(ADDS))
    path = parse_target("/a", "")
    for _ in range(2):
        with pytest.raises(UnsignableError, match="could be read as one that the gateway sets"):
            signer.sign(NOW_MS, b"", "POST", path, f"b=1&{name}=5".encode())
    signer.bare("POST", path, f"b=1&{name}=5".encode())
    long = "x" * 100
    for body in (f"t2=1&my.t=5&{long}=1", "{}"):
        _, _, sent_body, _ = signer.sign(
            NOW_MS, b"", "DELETE" if body == "{}" else "POST", path, body.encode()
        )
        assert sent_body.endswith(body.encode())


@pytest.mark.parametrize(
    ("signing", "do_rise"),
    [
        ("", False),
        ('nonce = "uuid"', False),
        ('nonce = "ms"', True),
        ('nonce = "us"\nnonce_order = "rising"', True),
        ('nonce = "ms"\nnonce_order = "any"', False),
    ],
)
def test_a_file_says_whether_nonces_must_arrive_in_their_order(signing: str, *, do_rise: bool) -> None:
    assert mine(signing).signing.nonces_rise is do_rise


UNSIGNED_METHOD = """
name = "mine"
title = "Mine"
signing.message = "{path}{query}{body}"
[[routes]]
match = ["POST /order", "DELETE /order", "POST /order/{id}/move", "* /all"]
[[routes]]
match = "POST /keys"
needs = "keys"
[[routes]]
match = "POST /find"
needs = "read"
[[routes]]
match = ["GET /order", "GET /orders/{symbol}"]
needs = "read"
[[routes]]
match = "PUT /orders/{id}"
"""


def test_where_the_method_is_not_signed_a_get_needs_what_its_path_needs_and_has_no_body() -> None:
    table = RouteTable(read_venue("mine.toml", UNSIGNED_METHOD).routes)
    needs = {
        path: table.find("GET", path).needs.value
        for path in ("/order", "/order/7/move", "/keys", "/find", "/orders/7", "/all", "/other")
    }
    assert needs == {
        "/order": "read",  # named as one
        "/order/7/move": "trade",
        "/keys": "keys",
        "/find": "read",
        "/orders/7": "read",
        "/all": "trade",
        "/other": "read",
    }
    assert all(table.find(method, path).is_bodiless for path in needs for method in ("GET", "HEAD"))
    assert not table.find("POST", "/order").is_bodiless
    assert not table.find("POST", "/all").is_bodiless


def test_where_the_method_is_signed_a_get_is_a_read() -> None:
    signed = UNSIGNED_METHOD.replace("{path}", "{method}{path}")
    table = RouteTable(read_venue("mine.toml", signed).routes)
    assert table.find("GET", "/order/7/move").needs.value == "read"
    assert not table.find("GET", "/other").is_bodiless
