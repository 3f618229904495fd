"""What people store in the place of a secret or a token is named for what it is."""

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from sealgate.keys.wrong_secrets import Shape, not_a_secret, not_a_token, shape_of

KEYS: dict[str, PrivateKeyTypes] = {
    "Ed25519": ed25519.Ed25519PrivateKey.generate(),
    "RSA": rsa.generate_private_key(65537, 2048),
    "EC": ec.generate_private_key(ec.SECP256R1()),
}
API_KEYS = {"main": "ak-public-1", "spot": "ak-public-2"}
PEM, DER = Encoding.PEM, Encoding.DER


def private(kind: str, encoding: Encoding, form: PrivateFormat) -> bytes:
    return KEYS[kind].private_bytes(encoding, form, NoEncryption())


def public(kind: str, encoding: Encoding, form: PublicFormat) -> bytes:
    return KEYS[kind].public_key().public_bytes(encoding, form)


def name_of(secret: bytes) -> str:
    """Return what a text is called, "" where it may be a secret."""
    found = not_a_secret(bytearray(secret), API_KEYS)
    return (
        "" if found is None else found[0].removeprefix("what is stored as the secret is ").partition(",")[0]
    )


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
def test_a_private_key_is_named_by_its_kind(kind: str, form: PrivateFormat) -> None:
    if kind == "Ed25519" and form is not PrivateFormat.PKCS8:
        return
    pem = private(kind, PEM, form)
    named = f"an {kind} private key"
    for text in (pem, pem.rstrip(), pem.replace(b"\n", b"\r\n"), pem.replace(b"\n", b"\\n")):
        assert name_of(text) == named
    assert name_of(b"Bag Attributes\n    localKeyID: 01\n" + pem) == named
    der = private(kind, DER, form)
    assert name_of(der) == "a private key (DER)"
    assert name_of(der[:-1]) == "a private key (DER)"
    if form is PrivateFormat.PKCS8 or kind == "EC":
        assert name_of(base64.b64encode(der)) == named


def test_larger_keys_are_named_alike() -> None:
    key = rsa.generate_private_key(65537, 4096)
    der = key.private_bytes(DER, PrivateFormat.PKCS8, NoEncryption())
    assert name_of(base64.b64encode(der)) == "an RSA private key"
    spki = key.public_key().public_bytes(DER, PublicFormat.SubjectPublicKeyInfo)
    assert name_of(base64.b64encode(spki)) == "a public key"


@pytest.mark.parametrize("kind", KEYS)
def test_a_public_key_is_one(kind: str) -> None:
    spki = PublicFormat.SubjectPublicKeyInfo
    assert name_of(public(kind, PEM, spki)) == "a public key"
    assert name_of(base64.b64encode(public(kind, DER, spki))) == "a public key"
    assert name_of(public(kind, Encoding.OpenSSH, PublicFormat.OpenSSH)) == "a public key"


def test_what_else_pem_holds_is_named() -> None:
    key = KEYS["Ed25519"]
    assert name_of(key.private_bytes(PEM, PrivateFormat.OpenSSH, NoEncryption())) == "an OpenSSH private key"
    locked = key.private_bytes(PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"pw"))
    assert name_of(locked) == "an encrypted private key"
    assert name_of(b"-----BEGIN CERTIFICATE-----\nMII\n") == "a certificate"
    assert name_of(b"-----BEGIN PGP MESSAGE-----\nx") == "a PEM file"
    assert name_of(b'{"name": "organizations/1", "privateKey": "-----"}').startswith(
        "the file of a private key"
    )


def test_an_api_key_in_the_place_of_a_secret_names_the_setting() -> None:
    cause, fix = not_a_secret(bytearray(b"ak-public-2 "), API_KEYS) or ("", "")
    assert cause == "what is stored as the secret is the API key, keys.spot.api_key"
    assert fix.startswith("store the secret that belongs to it")


@pytest.mark.parametrize(
    "secret",
    [
        *(b"0", b"0\x02", b"00ff" * 8, b"0" * 64, bytes(range(256)), b"correct horse battery staple"),
        *(
            b'{"a": 1}',
            b"MC4",
            base64.b64encode(bytes(64)),
            b"-----",
            b"ssh-keys",
            b"0\x82",
            b"0\x03\x02\x02\x00",
        ),
        base64.b64encode(b"012345678901" + base64.b64decode(b"MC4CAQAwBQYDK2Vw")),
    ],
)
def test_what_may_be_a_secret_is_one(secret: bytes) -> None:
    assert name_of(secret) == ""


@pytest.mark.parametrize("text", [b"Bearer abc", b"bearer  abc\n", b"Authorization: Bearer abc"])
def test_a_token_with_its_header_is_told_to_stand_alone(text: bytes) -> None:
    cause, fix = not_a_token(bytearray(text)) or ("", "")
    assert cause == 'the token begins with "Bearer", which belongs to the header'
    assert fix == "store the token alone"


@pytest.mark.parametrize("text", [b"abc", b"Bearer", b"bearer-of-bad-news", b"correct horse"])
def test_what_may_be_a_token_is_one(text: bytes) -> None:
    assert not_a_token(bytearray(text)) is None


QUOTE, LINES = "begins or ends with a quote or a space", "has more than one line"
UNSEEN = "has characters that nobody sees, such as a byte order mark, a no-break space or those of UTF-16"
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
