"""Kinds of keys: what a file says of each, and what a stored key makes of it."""

import base64

import pytest

from sealgate.http.target import parse_target
from sealgate.keys.signer import KeyMaterial, sealer_of
from sealgate.venues.key_kinds import Kind
from sealgate.venues.venue import Venue, VenueError, read_venue
from venues.private_keys import FORMS, key_of, public_of, verifies

NOW_MS = 1_790_000_000_387
TARGET = parse_target("/a?b=1", "")
HEAD = 'name = "mine"\ntitle = "Mine"\n[signing]\nmessage = "{method}{target}"\n'
KINDS = """
[signing.headers]
KEY = "{api_key}"
S = "{signature}"
[signing.kinds]
hmac = {}
ed25519 = { encoding = "base64|pct", key_text = "base58", key_prefix = "ed25519:" }
rsa = { encoding = "base64", padding = "pss", digest = "sha512" }
[signing.kinds.es256]
encoding = "base64url"
timestamp = "s"
headers = { T = "{timestamp}", S = "{signature}" }
"""


def venue(text: str = KINDS) -> Venue:
    return read_venue("mine.toml", HEAD + text)


def material(secret: str, kind: str = "") -> KeyMaterial:
    return KeyMaterial("K", bytearray(secret.encode()), kind=kind)


def headers_of(secret: str, kind: str = "") -> dict[str, str]:
    lines, *_ = sealer_of(venue(), material(secret, kind)).sign(NOW_MS, b"", "GET", TARGET, b"")
    return dict(line.split(": ", 1) for line in lines.decode().split("\r\n")[:-1])


def test_how_each_kind_signs_is_said_in_a_few_words() -> None:
    assert {scheme.name: scheme.signature for scheme in venue().schemes.values()} == {
        "hmac": "sha256 hex",
        "ed25519": "base64 pct",
        "rsa": "sha512 pss base64",
        "es256": "base64url",
    }
    static = venue('static = true\n[signing.headers]\nS = "{secret}"\n')
    assert (static.signing.name, static.signing.signature) == ("static", "none: the secret itself is sent")


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        ("ed25519", "pem"),
        ("ed25519", "seed58"),
        ("ed25519", "pair58"),
        ("es256", "pem"),
        ("es256", "old-pem"),
    ],
)
def test_the_stored_key_decides_how_it_signs(kind: str, form: str) -> None:
    key = key_of(kind, "mine")
    headers = headers_of(FORMS[form](key))
    text = headers["S"].replace("%2B", "+").replace("%2F", "/").replace("%3D", "=")
    padded = text.replace("-", "+").replace("_", "/") + "=="
    assert verifies(public_of(key), b"GET/a?b=1", base64.b64decode(padded))
    assert headers.keys() == ({"T", "S"} if kind == "es256" else {"KEY", "S"})


def test_a_key_signs_the_same_however_it_is_stored() -> None:
    key = key_of("ed25519", "mine")
    sealers = [sealer_of(venue(), material(FORMS[form](key))) for form in ("pem", "seed58", "pair58")]
    assert len({sealer.proof for sealer in sealers}) == 1
    assert len({sealer.fingerprint() for sealer in sealers}) == 1
    other = sealer_of(venue(), material(FORMS["pem"](key_of("ed25519", "other"))))
    assert other.proof != sealers[0].proof


def test_a_kind_has_its_own_settings_and_the_venue_those_of_the_first() -> None:
    mine = venue()
    assert [*mine.schemes] == [Kind.HMAC, Kind.ED25519, Kind.RSA, Kind.ES256]
    assert (mine.signing.encoding, mine.schemes[Kind.RSA].padding) == ("hex", "pss")
    assert mine.own_headers == {"key", "s", "t"}
    assert mine.of_kind(Kind.ES256).signing.timestamp == "s"


def test_a_kind_that_is_not_taken_or_not_the_one_that_is_set_is_refused() -> None:
    only = venue('[signing.headers]\nS = "{signature}"\n')
    with pytest.raises(ValueError, match="is an Ed25519 private key, but Mine accepts HMAC secrets"):
        sealer_of(only, material(FORMS["pem"](key_of("ed25519", "mine"))))
    with pytest.raises(ValueError, match="requires rsa"):
        headers_of("secret", "rsa")
    assert headers_of("secret", "hmac")["KEY"] == "K"


def test_a_static_secret_is_sent_itself() -> None:
    text = 'static = true\n[signing.headers]\nAuthorization = "Basic {basic|base64}"\n'
    text += '[signing.parts]\nbasic = "{api_key}:{secret}"\n'
    static = read_venue("mine.toml", HEAD.replace('message = "{method}{target}"\n', "") + text)
    sealer = sealer_of(static, material("s3cret"))
    assert sealer.sign(NOW_MS, b"", "GET", TARGET, b"")[0] == b"Authorization: Basic SzpzM2NyZXQ=\r\n"
    assert static.signing.keeps_secret
    assert sealer.key_lines() == b""


def test_a_call_is_signed_by_its_name() -> None:
    text = '[signing.headers]\nS = "{signature}"\n[signing.by_route]\n"POST /order" = "orderExecute"\n'
    mine = read_venue("mine.toml", HEAD.replace("{method}{target}", "i={by_route}{body|as_form|lamp}") + text)
    sealer, target = sealer_of(mine, material("secret")), parse_target("/order", "")
    assert sealer.message(NOW_MS, b"", "POST", target, b'{"a":1}') == b"i=orderExecute&a=1"
    for method, raw in (("GET", "/order"), ("POST", "/order/"), ("POST", "/Order")):
        with pytest.raises(ValueError, match="its file has no name for this one"):
            sealer.message(NOW_MS, b"", method, parse_target(raw, ""), b"")


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("[signing.kinds]\ndsa = {}", "6: unknown key dsa; did you mean rsa?"),
        ('[signing.kinds]\nrsa = { encodin = "hex" }', "6: unknown key encodin; did you mean encoding?"),
        (
            '[signing.kinds.rsa]\nencoding = "base46"',
            "6: encoding = 'base46' is unknown; did you mean base64?",
        ),
        (
            'encoding = "hex|nope"',
            "5: encoding = 'hex|nope' is not an encoding and filters, as base64|pct is",
        ),
        (
            'encoding = "hex|hmac"',
            "5: encoding = 'hex|hmac' is not an encoding and filters, as base64|pct is",
        ),
        ('json_empty = ["FETCH"]', "5: 'FETCH' in json_empty is not a method"),
        ('[signing.headers]\nA = "{secret}"', "5: {secret} needs static = true: the secret itself is sent"),
        (
            'static = true\nquery = "k={secret}"',
            "6: query may not have {secret}: a secret is sent in headers alone",
        ),
        (
            'static = true\nform_end = { POST = "k={p}" }\n[signing.parts]\np = "{secret|base64}"',
            "6: form_end may not have {secret}: a secret is sent in headers alone",
        ),
        (
            'static = true\n[signing.json]\nk = "{secret}"',
            "6: json may not have {secret}: a secret is sent in headers alone",
        ),
        (
            '[signing.headers]\nA = "{p}"\n[signing.parts]\np = "{body}"',
            "6: A: in a header, {p} must end with one of the filters base58, base64, ",
        ),
    ],
)
def test_mistakes_of_a_file_are_told(text: str, cause: str) -> None:
    with pytest.raises(VenueError) as raised:
        venue(text)
    assert str(raised.value).startswith(f"mine.toml:{cause}")
