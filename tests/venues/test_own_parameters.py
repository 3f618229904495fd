"""No server reads a value of the bot's under a name of the gateway's: in query, form, JSON or multipart."""

from collections.abc import Callable, Iterable
from hashlib import sha256
from random import Random  # noqa: TID251 - seeded

import pytest

from rig.parameter_readings import Pairs, bodies, queries
from sealgate.config.venues import built_in_venue, venue_names
from sealgate.http.target import Target, parse_target
from sealgate.venues.key_kinds import Signer
from sealgate.venues.own_parameters import BodyType, body_type
from sealgate.venues.sealer import KeyTexts, Sealer
from sealgate.venues.unsignable import UnsignableError
from sealgate.venues.venue import Venue

NOW_MS = 1_700_000_000_000
EVIL = "1999999999999"
PATH = parse_target("/a", "")
FORM, JSON = "application/x-www-form-urlencoded", "application/json"


ALL = {name: built_in_venue(name) for name in venue_names()}
HAVE_OWN = [venue for venue in ALL.values() if venue.signing.own_parameters()]
TAKE_FORMS = [venue for venue in HAVE_OWN if venue.signing.json is None]


def sealer(venue: Venue) -> Sealer:
    stand_in = Signer(venue.signing.kind, lambda text: sha256(text).digest(), b"")
    return venue.sealer(KeyTexts("ak", "pass", "memo"), stand_in, "https://api.example.com")


def path_of(venue: Venue, method: str) -> str:
    """Return a path that the venue signs."""
    named = (path for by, path in venue.signing.by_route if by == method)
    return next((f"{venue.prefix}{path}" for path in named), "/a")


def evil_names(venue: Venue, pairs: Pairs) -> set[str]:
    """Return the gateway's names under which a server would read what the bot wrote."""
    own = {name.decode().casefold() for name in venue.signing.own_parameters()}
    return {name for name, value in pairs if EVIL in value and name.strip().casefold() in own}


def signed(venue: Venue, method: str, target: Target, body: bytes, declared: BodyType) -> tuple[str, bytes]:
    """Do as the gateway does; return target and body as they are sent. Raises UnsignableError."""
    signer = sealer(venue)
    if body:
        signer.check_declared(body, declared)
    _, raw, sent, _ = signer.sign(NOW_MS, b"7", method, target, body)
    return raw, sent


def seen(venue: Venue, method: str, query: str, body: bytes, content_type: str | None) -> set[str]:
    """Sign a request, and return under which of the gateway's names a server may read the bot's values."""
    declared = body_type(content_type.encode() if content_type else None, None)
    path = path_of(venue, method)
    target = parse_target(f"{path}?{query}" if query else path, "")
    try:
        raw, sent = signed(venue, method, target, body, declared)
    except UnsignableError:
        return set()
    found: Iterable[Pairs] = (*queries(raw.partition("?")[2].encode()), *bodies(sent, content_type))
    return set().union(*(evil_names(venue, pairs) for pairs in found))


def by_name(cases: Iterable[Venue]) -> Callable[..., object]:
    return pytest.mark.parametrize("venue", list(cases), ids=lambda venue: venue.name)


def test_there_are_venues_to_try() -> None:
    assert {"binance", "bingx", "coinsph", "hashkey", "htx", "kraken", "mexc"} <= {
        one.name for one in HAVE_OWN
    }


BODIES: dict[str, tuple[str | None, str]] = {
    "a bracket before a form": (FORM, "[a=1&recvWindow=60000&{}={}"),
    "a brace before a form": (FORM, "{{a=1&{}={}"),
    "a bracket and no type": (None, "[a=1&{}={}"),
    "a member": (JSON, '{{"symbol": "a", "{}": "{}"}}'),
    "a member behind another of its name": (JSON, '{{"{0}": 1, "{0}": "{1}"}}'),
    "a lenient member": (JSON, "{{{}: {},}}"),
    "a member behind a comment": (JSON, "/* */ {{{}: {}}}"),
    "a member behind blanks": (JSON, '\r\n {{"{}": "{}"}}'),
    "a member behind a BOM": (JSON, '\ufeff{{"{}": "{}"}}'),
    "a value that is a form": (FORM, '{{"a": "b&{}={}&"}}'),
    "an escaped separator": (FORM, "note=a%26{}%3D{}"),
    "a separator that is escaped twice": (FORM, "note=a%2526{}%253D{}"),
    "an overlong separator": (FORM, "note=a%C0%A6{}%3D{}"),
    "multipart": (
        "multipart/form-data; boundary=x",
        '--x\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n--x--\r\n',
    ),
    "multipart, and no form in it": (
        'Multipart/Mixed; boundary="x"',
        '--x\r\nContent-Disposition: form-data; name="{}"\r\n\r\n{}\r\n--x--\r\n',
    ),
}


@by_name(HAVE_OWN)
@pytest.mark.parametrize(("content_type", "text"), BODIES.values(), ids=BODIES)
def test_a_body_hides_no_parameter_of_the_gateways(venue: Venue, content_type: str | None, text: str) -> None:
    for name in sorted(venue.signing.own_parameters()):
        body = text.format(name.decode(), EVIL).encode()
        assert seen(venue, "POST", "", body, content_type) == set()


@by_name(HAVE_OWN)
@pytest.mark.parametrize("text", ["n=a%26{}%3D{}", "n=a%3B{}%3D{}", "n=a%2526{}%253D{}", "n=a%C0%A6{}%3D{}"])
def test_a_value_of_a_query_hides_no_parameter_of_the_gateways(venue: Venue, text: str) -> None:
    for name in sorted(venue.signing.own_parameters()):
        assert seen(venue, "GET", text.format(name.decode(), EVIL), b"", None) == set()


@by_name(HAVE_OWN)
def test_overlong_and_other_spellings_of_a_name(venue: Venue) -> None:
    for own in sorted(venue.signing.own_parameters()):
        first, rest = own[0], own[1:].decode()
        overlong = (
            f"%{0xC0 | first >> 6:02X}%{0x80 | first & 0x3F:02X}",
            f"%E0%{0x80 | first >> 6:02X}%{0x80 | first & 0x3F:02X}",
            f"%F0%80%{0x80 | first >> 6:02X}%{0x80 | first & 0x3F:02X}",
        )
        for start in overlong:
            assert seen(venue, "GET", f"{start}{rest}={EVIL}", b"", None) == set()
            assert seen(venue, "POST", "", f"{start}{rest}={EVIL}".encode(), FORM) == set()
        assert seen(venue, "POST", "", f"%u00{first:02x}{rest}={EVIL}".encode(), FORM) == set()


_PIECES = (
    *("&", ";", "=", "%26", "%3D", "%3B", "%2526", "%253D", "%C0%A6", "+", "%20", "%00", "[", "]", "[]"),
    *("{", "}", '"', "'", ":", ",", "a", "b=1", "/*", "*/", "\n", "\ufeff", "\\", ".", "_", "%", "%u0026"),
    *('{"a": ', "[{", "null", "\x00", "%EF%BD", "\u200b", "?"),
)
_TYPES = (None, FORM, JSON, f"{JSON}; charset=UTF-8", "text/plain", "multipart/form-data; boundary=x", "x/y")


def _spelled(random: Random, name: str) -> str:
    letters = []
    for letter in name:
        code = ord(letter)
        ways = (
            *(letter, letter, letter, letter, letter.swapcase(), f"%{code:02x}", f"%25{code:02X}"),
            *(f"%{0xC0 | code >> 6:02X}%{0x80 | code & 0x3F:02X}", f"%u{code:04x}", f"\\u{code:04x}"),
        )
        letters.append(random.choice(ways) if random.random() < 0.3 else letter)
    return "".join(letters)


@pytest.mark.slow
@by_name(HAVE_OWN)
def test_no_mixture_of_them_does(venue: Venue) -> None:
    """Each venue is tried with others; a failure names what was sent."""
    own = [name.decode() for name in sorted(venue.signing.own_parameters())]
    for number in range(80):
        random = Random(f"{venue.name} {number}")
        pieces = random.choices(_PIECES, k=random.randrange(8))
        pieces.insert(
            random.randint(0, len(pieces)), _spelled(random, random.choice(own)) + random.choice("=:")
        )
        pieces.insert(random.randint(0, len(pieces)), EVIL)
        text, content_type = "".join(pieces), random.choice(_TYPES)
        method = random.choice(("POST", "PUT", "DELETE", "GET"))
        assert seen(venue, method, "", text.encode(), content_type) == set(), (method, text, content_type)


@by_name(TAKE_FORMS)
def test_what_a_form_may_be(venue: Venue) -> None:
    fine = b"symbol=BTCUSDT&note=a%26b%3Dc%3B&mytimestamps=1&list=%5B%7B%22a%22%3A1%7D%5D&deep=%2525252526"
    for content_type in (FORM.encode(), f"{FORM}; charset=UTF-8".encode(), None):
        _, sent = signed(venue, "POST", PATH, fine, body_type(content_type, b"identity"))
        assert fine in sent


@by_name(TAKE_FORMS)
def test_there_may_be_a_thousand_parameters(venue: Venue) -> None:
    most = b"&".join(b"p%d=1" % number for number in range(1000))
    assert most in signed(venue, "POST", PATH, most, body_type(None, None))[1]
    with pytest.raises(UnsignableError, match="more than 1000 parameters"):
        signed(venue, "POST", PATH, most + b"&a=1", body_type(None, None))


@by_name(venue for venue in HAVE_OWN if venue.name in ("mexc", "bingx", "coinsph", "htx"))
def test_what_json_may_be(venue: Venue) -> None:
    for body in (b'{"symbol": "BTC&b", "list": [1, {"c": null}]}', b'[{"a": 1}]', b" {}"):
        assert signed(venue, "POST", PATH, body, body_type(JSON.encode(), None))[1] == body


@pytest.mark.parametrize(
    ("content_type", "encoding", "told"),
    [
        (b"Multipart/Form-Data; boundary=x", None, "multipart"),
        (FORM.encode(), b"gzip", "Content-Encoding"),
        (FORM.encode() + b"; charset=IBM037", None, "UTF-8"),
        (FORM.encode() + b'; Charset="utf-7"', None, "UTF-8"),
        (JSON.encode(), None, "declared as JSON"),
    ],
)
def test_a_declared_type_that_hides_what_is_in_a_body(
    content_type: bytes, encoding: bytes | None, told: str
) -> None:
    with pytest.raises(UnsignableError, match=told):
        signed(ALL["mexc"], "POST", PATH, b"a=1", body_type(content_type, encoding))


def test_where_no_parameter_is_the_gateways_any_body_is_signed() -> None:
    for body in (b"[a=1&timestamp=1", b'{"timestamp": 1}', b"x"):
        declared = body_type(b"multipart/form-data", b"gzip")
        assert signed(ALL["bybit"], "POST", PATH, body, declared)[1] == body


def test_what_only_looks_like_json_is_not_signed() -> None:
    for body in (b"[" * 60_000, b'{"a": NaN}', b'{"a": "\xff"}'):
        with pytest.raises(UnsignableError, match="begins as JSON does"):
            signed(ALL["mexc"], "POST", PATH, body, body_type(None, None))


SPELLINGS = (
    *(
        *("+nonce", "%20nonce", "%2bnonce", "%252bnonce", "%256eonce", "nonce[]", "nonce%5B%5D"),
        *("nonce[a]", "[nonce]"),
    ),
    *("note=a%26nonce%3D2&b", "note=a%2526nonce%253D2&b", "note=a%3Bnonce%3D2&b", "%c1%ae%c1%afnce"),
    *(
        "%e0%81%aeonce",
        "note=a%C0%A6nonce%3D2&b",
        "Nonce",
        "N%6FNCE",
        "nonce+",
        "nonce%09",
        "?nonce",
        "nonce.x",
        "%EF%BD%8Eonce",
        "n%E2%80%8Bonce",
    ),
)
IN_FORMS = (
    *("%00nonce", "nonce%00x", "pair=1;nonce", ";nonce", "\x00nonce", " nonce"),
    *("\r\nnonce", "a=1&amp;nonce", "%u006eonce", "note=a%u0026nonce=2&b"),
)


@pytest.mark.parametrize("spelled", [*SPELLINGS, *IN_FORMS])
def test_a_parameter_that_a_server_might_take_for_the_gateways_is_not_signed(spelled: str) -> None:
    form = body_type(FORM.encode(), None)
    with pytest.raises(UnsignableError):
        signed(ALL["kraken"], "POST", PATH, f"pair=XBTUSD&{spelled}=1&volume=1".encode(), form)
    if spelled in SPELLINGS:
        with pytest.raises(UnsignableError):
            signed(ALL["kraken"], "POST", parse_target(f"/a?{spelled}=1", ""), b"pair=XBTUSD", form)


def test_a_parameter_that_only_resembles_the_gateways_is_signed() -> None:
    fine = b"nonces=1&my_nonce=2&pair=nonce&note=a%3Bnonces%3D1%26c"
    assert fine in signed(ALL["kraken"], "POST", PATH, fine, body_type(FORM.encode(), None))[1]


BROKEN_MEMBERS = {
    "the gateway's nonce": b'{"nonce": "1", "symbol": "btcusd"}',
    "the gateway's path": b'{"request": "/v1/withdraw/btc"}',
    "escaped": b'{"\\u006eonce": "1"}',
    "in other letters": b'{"NONCE": "1"}',
    "its own twice": b'{"symbol": "btcusd", "symbol": "ethusd"}',
    "no JSON": b'{"symbol": }',
    "two objects": b'{"symbol": "a"}, {"symbol": "b"}',
    "an end too many": b'{"symbol": "a"}}',
    "no number": b'{"amount": NaN}',
    "no UTF-8": b'{"symbol": "\xff"}',
    "a list": b'["symbol"]',
}


@pytest.mark.parametrize("body", BROKEN_MEMBERS.values(), ids=BROKEN_MEMBERS)
def test_no_member_of_a_body_takes_the_place_of_the_gateways(body: bytes) -> None:
    with pytest.raises(UnsignableError):
        signed(ALL["gemini"], "POST", PATH, body, body_type(JSON.encode(), None))
