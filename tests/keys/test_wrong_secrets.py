"""What people store in the place of a secret or a token is named for what it is."""

from collections.abc import Collection

import pytest

from sealgate.keys.wrong_secrets import Shape, in_words, not_a_secret, not_a_token, shape_of, wrong_kind
from sealgate.venues.key_kinds import Kind

API_KEYS = {"main": "ak-public-1", "spot": "ak-public-2", "alone": ""}


def test_an_api_key_in_the_place_of_a_secret_names_the_setting() -> None:
    cause, fix = not_a_secret(bytearray(b"ak-public-2 "), API_KEYS) or ("", "")
    assert cause == "what is stored as the secret is the API key, keys.spot.api_key"
    assert fix.startswith("store the secret of this API key")


@pytest.mark.parametrize("secret", [b"ak-public-3", b"x", b" ", b"-----BEGIN PRIVATE KEY-----"])
def test_what_is_no_api_key_may_be_a_secret(secret: bytes) -> None:
    assert not_a_secret(bytearray(secret), API_KEYS) is None


KINDS: list[tuple[Kind, Collection[Kind], str]] = [
    (Kind.ED25519, [Kind.HMAC], "an Ed25519 private key, but Kraken accepts HMAC secrets"),
    (
        Kind.RSA,
        {Kind.HMAC, Kind.ED25519},
        "an RSA private key, but Kraken accepts HMAC secrets or Ed25519 keys",
    ),
    (Kind.ES256, (Kind.RSA,), "an EC private key, but Kraken accepts RSA keys"),
    (Kind.HMAC, {Kind.ES256: 1}, "not a private key, but Kraken accepts EC keys (ES256)"),
]


@pytest.mark.parametrize(("kind", "takes", "told"), KINDS)
def test_a_key_of_a_kind_that_the_exchange_does_not_take(
    kind: Kind, takes: Collection[Kind], told: str
) -> None:
    cause, fix = wrong_kind(kind, takes, "Kraken")
    assert cause == f"is {told}"
    assert fix == "make such a key there, and store its secret"
    assert told.startswith(in_words(kind))


@pytest.mark.parametrize("text", [b"Bearer abc", b"bearer  abc\n", b"Authorization: Bearer abc"])
def test_a_token_with_its_header_is_told_to_stand_alone(text: bytes) -> None:
    cause, fix = not_a_token(bytearray(text)) or ("", "")
    assert cause == 'the token begins with "Bearer", which belongs to the header'
    assert fix == "store only the token"


@pytest.mark.parametrize("text", [b"abc", b"Bearer", b"bearer-of-bad-news", b"correct horse"])
def test_what_may_be_a_token_is_one(text: bytes) -> None:
    assert not_a_token(bytearray(text)) is None


QUOTE, LINES = "begins or ends with a quote or a space", "has more than one line"
UNSEEN = "has invisible characters, such as a byte order mark, a no-break space or those of UTF-16"
NAMED = "begins with a name, as in API_SECRET=..."


@pytest.mark.parametrize(
    ("secret", "shape"),
    [
        (b"0123456789abcdef0123456789", Shape()),
        (b"as-long-one", Shape()),
        (b"short", Shape(is_shorter=True)),
        (b'"0123456789abcdef"', Shape(QUOTE)),
        (b" 0123456789abcdef", Shape(QUOTE)),
        (b"0123456789abcdef\r", Shape(QUOTE)),
        (b"0123456789\nabcdef", Shape(LINES)),
        (b"c2VjcmV0LWtleQ==", Shape()),
        (b"my-secret-key-0123", Shape()),
        (b"\xef\xbb\xbf0123456789", Shape(UNSEEN)),
        (b"01234\xc2\xa056789", Shape(UNSEEN)),
        (b"0\x001\x002\x003\x004\x005\x00", Shape(UNSEEN)),
        (b"secret=0123456789", Shape(NAMED)),
        (b"export BYBIT_API_SECRET='0123456789'", Shape(NAMED)),
        (b'{"secretKey": "0123456789"}', Shape(NAMED)),
        (b"key = 0123456789", Shape(NAMED)),
        (b"API_KEY: 0123456789", Shape(NAMED)),
        (b"0123456789abcdefkey==", Shape()),
    ],
)
def test_what_a_secret_looks_like(secret: bytes, shape: Shape) -> None:
    assert shape_of(bytearray(secret), "ak-public-1") == shape
