"""Private keys as `cryptography` writes them, in each form in which exchanges and programs hand them out."""

import base64
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed448, ed25519, padding, rsa, x25519
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from hypothesis import given
from hypothesis import strategies as st

from rig.private_keys import base58, new_key
from sealgate.config.venues import built_in_venue
from sealgate.keys.private_keys import PrivateKey, PrivateKeyError, is_another_key, read_private_key
from sealgate.venues.key_kinds import Kind

PEM, DER = Encoding.PEM, Encoding.DER
PKCS8, TRADITIONAL = PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL
OPEN, PASSPHRASE = NoEncryption(), b"correct horse"
LOCKED = BestAvailableEncryption(PASSPHRASE)
# RFC 8032 section 7.1, test 2.
SEED = bytes.fromhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
PUBLIC = bytes.fromhex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")
SIGNED_72 = bytes.fromhex(
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
    "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
)


@cache
def key_of(kind: str) -> Any:
    return ed25519.Ed25519PrivateKey.from_private_bytes(SEED) if kind == "ed25519" else new_key(kind)


KINDS = ["ed25519", "rsa", "es256"]


def written(
    kind: str,
    encoding: Encoding = PEM,
    form: PrivateFormat = PKCS8,
    lock: KeySerializationEncryption = OPEN,
) -> bytes:
    written: bytes = key_of(kind).private_bytes(encoding, form, lock)
    return written


def read(
    secret: bytes, key_text: str = "pem", prefix: str = "", passphrase: bytes = b""
) -> PrivateKey | None:
    """Read a key, after a look that the caller's buffers stay as they are."""
    buffer = bytearray(secret)
    key = read_private_key(buffer, key_text, prefix, bytearray(passphrase) if passphrase else None)
    assert buffer == secret
    return key


def is_of(key: PrivateKey | None, kind: str) -> bool:
    """Whether a key is the one of a kind: by its public key, and by a signature."""
    public = key_of(kind).public_key()
    spki = public.public_bytes(DER, PublicFormat.SubjectPublicKeyInfo)
    digest = hashes.Hash(hashes.SHA256())
    digest.update(spki)
    assert key is not None
    return (key.kind, key.identity) == (Kind(kind), digest.finalize())


def mistake(secret: bytes, *more: Any, **named: Any) -> str:
    """Return what is told of a key that cannot be used: cause and fix in one line, and nothing of it."""
    with pytest.raises(PrivateKeyError) as caught:
        read(secret, *more, **named)
    told = str(caught.value)
    assert told == f"{caught.value.cause}; {caught.value.fix}"
    assert "\n" not in told
    assert told.count("; ") == 1
    assert not any(line and line in told.encode() for line in secret.splitlines() if len(line) > 20)
    return told.removeprefix("what is stored as the secret ")


TEXTS: Mapping[str, Callable[[bytes], bytes]] = {
    "as it is": bytes,
    "CRLF": lambda pem: pem.replace(b"\n", b"\r\n"),
    "without the last line end": bytes.rstrip,
    "with empty lines around": lambda pem: b"\n\n" + pem + b"\n\n",
    r"on one line with \n": lambda pem: pem.replace(b"\n", b"\\n"),
    r"on one line with \r\n, in quotes": lambda pem: b'"' + pem.replace(b"\n", b"\\r\\n") + b'"',
    r"on one line with \\n": lambda pem: pem.replace(b"\n", b"\\\\n"),
    "on one line with spaces": lambda pem: pem.replace(b"\n", b" "),
    "indented": lambda pem: b"  " + pem.replace(b"\n", b"\n  "),
    "after a byte order mark": lambda pem: b"\xef\xbb\xbf" + pem,
    "with bag attributes": lambda pem: (
        b"Bag Attributes\n    localKeyID: 01 02\nKey Attributes: <No Attributes>\n" + pem
    ),
    "behind parameters": lambda pem: (
        b"-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n" + pem
    ),
    "before a certificate": lambda pem: (
        pem + b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
    ),
    "in the file that Coinbase offers": lambda pem: json.dumps(
        {"name": "organizations/1/apiKeys/2", "privateKey": pem.decode()}
    ).encode(),
    "in other JSON": lambda pem: json.dumps({"privateKey": pem.decode(), "id": "x"}, indent=2).encode(),
}
FORMS = [(kind, PKCS8) for kind in KINDS] + [(kind, TRADITIONAL) for kind in ("rsa", "es256")]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize(("kind", "form"), FORMS)
def test_pem_is_read(kind: str, form: PrivateFormat, text: Callable[[bytes], bytes]) -> None:
    assert is_of(read(text(written(kind, PEM, form))), kind)
    locked = text(written(kind, PEM, form, LOCKED))
    assert is_of(read(locked, passphrase=PASSPHRASE), kind)
    assert mistake(locked) == (
        'is an encrypted private key; name its passphrase in secret_passphrase, as in "file:/path"'
    )


@pytest.mark.parametrize(("kind", "form"), FORMS)
def test_der_is_read_as_bytes_and_as_base64(kind: str, form: PrivateFormat) -> None:
    der = written(kind, DER, form)
    for secret in (der, base64.b64encode(der), base64.b64encode(der) + b"\n", base64.urlsafe_b64encode(der)):
        assert is_of(read(secret), kind)
        assert is_of(read(secret, "base58"), kind)
    if form is PKCS8:
        locked = written(kind, DER, form, LOCKED)
        assert is_of(read(locked, passphrase=PASSPHRASE), kind)
        assert is_of(read(base64.b64encode(locked), passphrase=PASSPHRASE), kind)


def test_ed25519_signs_as_in_rfc_8032() -> None:
    key = read(written("ed25519"))
    assert key is not None
    signer = key.signer("pkcs1v15", "sha256")
    assert (signer.kind, signer.sign(b"\x72"), signer.is_slow) == (Kind.ED25519, SIGNED_72, False)
    assert signer.identity == key.identity


@pytest.mark.parametrize("digest", ["sha256", "sha384", "sha512", "sha1", "md5"])
@pytest.mark.parametrize("scheme", ["pkcs1v15", "pss"])
def test_rsa_signs_by_padding_and_digest(scheme: str, digest: str) -> None:
    key = read(written("rsa"))
    assert key is not None
    signer = key.signer(scheme, digest)
    assert (signer.kind, signer.is_slow) == (Kind.RSA, True)
    algorithm = getattr(hashes, digest.upper())()
    pss = padding.PSS(padding.MGF1(algorithm), algorithm.digest_size)
    public = key_of("rsa").public_key()
    public.verify(
        signer.sign(b"GET/x"), b"GET/x", padding.PKCS1v15() if scheme == "pkcs1v15" else pss, algorithm
    )


def test_es256_signs_r_and_s_in_64_bytes() -> None:
    """RFC 7518 section 3.4; they are never DER, and short numbers keep their zeros."""
    key = read(written("es256"))
    assert key is not None
    signer = key.signer("pkcs1v15", "sha512")
    assert (signer.kind, signer.is_slow) == (Kind.ES256, False)
    signatures = [signer.sign(b"GET/x") for _ in range(3000)]
    assert {len(signature) for signature in signatures} == {64}
    assert any(0 in (signature[0], signature[32]) for signature in signatures)
    r, s = (int.from_bytes(part, "big") for part in (signatures[0][:32], signatures[0][32:]))
    key_of("es256").public_key().verify(encode_dss_signature(r, s), b"GET/x", ec.ECDSA(hashes.SHA256()))


@pytest.mark.parametrize("kind", KINDS)
def test_a_signature_is_verified_with_the_public_key(kind: str) -> None:
    key = read(written(kind))
    assert key is not None
    for padding_name in ("pkcs1v15", "pss"):
        signer = key.signer(padding_name, "sha256")
        signature = signer.sign(b"GET/x")
        assert signer.verifies is not None
        assert signer.verifies(b"GET/x", signature)
        assert not signer.verifies(b"GET/y", signature)
        assert not signer.verifies(b"GET/x", signature[:-1] + bytes([signature[-1] ^ 1]))


@pytest.mark.parametrize("seed", [SEED, SEED + PUBLIC], ids=["seed", "seed and public key"])
def test_a_seed_is_read_where_the_venue_hands_them_out(seed: bytes) -> None:
    for key_text, text in {"base64": base64.b64encode(seed), "base58": base58(seed).encode()}.items():
        for secret in (text, text + b"\n", text.rstrip(b"="), b"ed25519:" + text):
            assert is_of(read(secret, key_text, "ed25519:"), "ed25519")
        assert is_of(read(json.dumps({"id": "x", "privateKey": text.decode()}).encode(), key_text), "ed25519")
        assert read(text) is None
        assert read(b"ed25519:" + text, key_text) is None
    assert read(base64.b64encode(seed), "base58") is None
    escaped = (
        json.dumps({"privateKey": base64.b64encode(seed).decode()})
        .replace("/", r"\/")
        .replace("=", r"\u003d")
    )
    assert is_of(read(escaped.encode(), "base64"), "ed25519")


def test_whether_an_api_key_is_another_public_key() -> None:
    key = read(base64.b64encode(SEED), "base64")
    assert key is not None
    signer = key.signer("", "")
    scheme = built_in_venue("woofipro").signing
    assert scheme.key_text == "base58"
    own, other = base58(PUBLIC).encode().decode(), base58(SEED).encode().decode()
    assert is_another_key(other, scheme, signer)
    assert is_another_key(f"ed25519:{other}", scheme, signer)
    for api_key in (own, f"ed25519:{own}", "0", "2"):
        assert not is_another_key(api_key, scheme, signer)
    in_base64 = replace(scheme, key_text="base64")
    assert not is_another_key(base64.b64encode(PUBLIC).decode(), in_base64, signer)
    assert is_another_key(base64.b64encode(SEED).decode(), in_base64, signer)
    assert not is_another_key(other, replace(scheme, key_text="pem"), signer)
    assert not is_another_key(other, scheme, replace(signer, kind=Kind.RSA))


def test_a_seed_with_zeros_in_front_is_read_in_base58() -> None:
    seed = bytes(3) + SEED[3:]
    key = read(base58(seed).encode(), "base58")
    same = ed25519.Ed25519PrivateKey.from_private_bytes(seed)
    assert key is not None
    assert key.signer("", "").sign(b"x") == same.sign(b"x")


def test_64_bytes_are_a_key_only_with_its_public_key() -> None:
    """Kraken's HMAC secrets have as many, and look the same."""
    for second in (bytes(32), PUBLIC[:-1] + b"\0", SEED):
        assert read(base64.b64encode(SEED + second), "base64") is None
    assert read(base64.b64encode(SEED[:-1]), "base64") is None


HMAC_SECRETS = {
    "hex": b"00ff" * 8,
    "zeros": b"0" * 64,
    "words": b"correct horse battery staple",
    "0 and its own length": b"0B" + b"x" * 66,
    "0 and a length of two bytes": b"0" + "\u0082".encode() + b"xxxx",
    "all bytes": bytes(range(256)),
    "base64 of 64 bytes": base64.b64encode(bytes(range(64))),
    "base64 that begins as DER": base64.b64encode(b"0" + bytes(63)),
    "JSON without a key": b'{"secret": "x"}',
    "a word": b"ssh-keys",
    "backslashes": b"a\\nb\\",
    "one character": b"0",
    "base64 of a part of a byte": b"MC4CA",
    "base64 with a letter behind its padding": b"MC4=CA==",
    "a long text": b"x" * 200,
    "not in base58": b"0OIl",
    "bytes that are no text": b"\xff\xfe\x00",
    "the start of DER": b"0\x82",
    "a length without an end": b"0\x80\x02\x01\x00",
    "other DER": b"\x04\x03\x02\x01\x00",
}


@pytest.mark.parametrize("key_text", ["pem", "base64", "base58"])
@pytest.mark.parametrize("secret", HMAC_SECRETS.values(), ids=HMAC_SECRETS)
def test_another_secret_is_no_private_key(secret: bytes, key_text: str) -> None:
    assert read(secret, key_text) is None
    assert mistake(secret, key_text, passphrase=b"x") == "is not encrypted; remove secret_passphrase"


CUT = "is a truncated or damaged private key; copy it again, from its first line to its last"
UNREADABLE = "is a damaged private key, or of a kind that no exchange accepts; copy it again"
THE_OTHER = "store the private key that belongs to this API key"
NEW = (
    "make one of a kind that the exchange accepts with `sealgate keys new --kind KIND`, "
    "and register its public key there"
)


def spki(kind: str, encoding: Encoding, form: PublicFormat = PublicFormat.SubjectPublicKeyInfo) -> bytes:
    written: bytes = key_of(kind).public_key().public_bytes(encoding, form)
    return written


@pytest.mark.parametrize("wrong", [("e",), ("d", "dmp1"), ("d", "iqmp")])
def test_an_rsa_key_that_does_not_sign_as_its_public_key_says_is_named(wrong: tuple[str, ...]) -> None:
    """With one wrong number alone OpenSSL may still sign rightly, by the others."""
    numbers = key_of("rsa").private_numbers()
    parts = {name: getattr(numbers, name) for name in ("p", "q", "d", "dmp1", "dmq1", "iqmp")}
    public = {"e": numbers.public_numbers.e, "n": numbers.public_numbers.n}
    for name in wrong:
        (public if name in public else parts)[name] += 2
    other = rsa.RSAPrivateNumbers(**parts, public_numbers=rsa.RSAPublicNumbers(**public))
    key = other.private_key(unsafe_skip_rsa_key_validation=True)
    assert mistake(key.private_bytes(DER, PrivateFormat.PKCS8, NoEncryption())).startswith(UNREADABLE)


@pytest.mark.parametrize("kind", KINDS)
def test_a_public_key_is_named(kind: str) -> None:
    forms = [spki(kind, PEM), spki(kind, DER), base64.b64encode(spki(kind, DER))]
    forms.append(spki(kind, Encoding.OpenSSH, PublicFormat.OpenSSH))
    if kind == "rsa":
        forms += [spki(kind, one, PublicFormat.PKCS1) for one in (PEM, DER)]
    for secret in forms:
        assert mistake(secret) == f"is a public key; {THE_OTHER}"


def test_a_certificate_is_named() -> None:
    pem = trustme.CA().cert_pem.bytes()
    der = base64.b64decode(b"".join(pem.splitlines()[1:-1]))
    for certificate in (pem, der):
        assert mistake(certificate) == f"is a certificate; {THE_OTHER}"
    request = b"-----BEGIN CERTIFICATE REQUEST-----\nMIIB\n-----END CERTIFICATE REQUEST-----\n"
    assert mistake(request) == f"is a certificate request; {THE_OTHER}"


@pytest.mark.parametrize(
    ("kind", "fix"),
    [
        ("rsa", "convert a copy of it: ssh-keygen -p -m PKCS8 -f COPY"),
        ("es256", "convert a copy of it: ssh-keygen -p -m PKCS8 -f COPY"),
        ("ed25519", NEW),  # ssh-keygen knows no other form of it
    ],
)
def test_an_openssh_key_is_named_with_what_converts_it(kind: str, fix: str) -> None:
    secret = written(kind, PEM, PrivateFormat.OpenSSH)
    assert mistake(secret) == f"is a private key in OpenSSH's own form; {fix}"


OTHER_KEYS: dict[str, tuple[Callable[[], Any], str]] = {
    "secp256k1": (
        lambda: ec.generate_private_key(ec.SECP256K1()),
        f"is a key on the curve secp256k1, but ES256 needs P-256; {NEW}",
    ),
    "P-384": (
        lambda: ec.generate_private_key(ec.SECP384R1()),
        f"is a key on the curve secp384r1, but ES256 needs P-256; {NEW}",
    ),
    "RSA of 1024 bits": (
        lambda: rsa.generate_private_key(65537, 1024),  # noqa: S505 - it is to be refused
        f"is an RSA key of 1024 bits, fewer than the 2048 required; {NEW}",
    ),
    "DSA": (lambda: dsa.generate_private_key(2048), f"is a DSA key, which no exchange accepts; {NEW}"),
    "X25519": (
        x25519.X25519PrivateKey.generate,
        f"is a X25519 key, which no exchange accepts; {NEW}",
    ),
    "Ed448": (ed448.Ed448PrivateKey.generate, f"is a Ed448 key, which no exchange accepts; {NEW}"),
}


@pytest.mark.parametrize(("make", "told"), OTHER_KEYS.values(), ids=OTHER_KEYS)
def test_a_key_of_another_algorithm_is_named(make: Callable[[], Any], told: str) -> None:
    key = make()
    assert mistake(key.private_bytes(PEM, PKCS8, OPEN)) == told
    assert mistake(key.private_bytes(DER, PKCS8, LOCKED), passphrase=PASSPHRASE) == told


@pytest.mark.parametrize(("kind", "form"), FORMS)
def test_a_wrong_a_missing_and_a_needless_passphrase(kind: str, form: PrivateFormat) -> None:
    needless = "is not encrypted; remove secret_passphrase"
    for passphrase in (b"wrong", PASSPHRASE + b"\n"):
        assert mistake(written(kind, PEM, form, LOCKED), passphrase=passphrase) == NOT_OPENED
    for secret in (written(kind, PEM, form), written(kind, DER, form)):
        assert mistake(secret, passphrase=PASSPHRASE) == needless
    if kind == "ed25519":
        assert mistake(base64.b64encode(SEED), "base64", passphrase=PASSPHRASE) == needless


@pytest.mark.parametrize(("kind", "form"), FORMS)
def test_a_key_that_is_cut_off_is_named_wherever_it_ends(kind: str, form: PrivateFormat) -> None:
    pem = written(kind, PEM, form)
    lines = pem.splitlines()
    for size in range(30, len(pem) - 2, 7):
        assert mistake(pem[:size]) == CUT
    for missing in range(len(lines)):
        rest = [line for at, line in enumerate(lines) if at != missing]
        assert mistake(b"\n".join(rest)).startswith((CUT, UNREADABLE.partition(";")[0]))
    assert mistake(pem.replace(lines[1][5:6], b"!", 1)) == CUT
    locked = written(kind, PEM, form, LOCKED).splitlines()
    short = b"\n".join([*locked[:-2], locked[-1]])
    assert mistake(short, passphrase=PASSPHRASE).startswith(
        (CUT, "is a private key that its secret_passphrase does not decrypt")
    )


LARGE = "is a private key of more than 5000 bytes; "


def test_an_encrypted_key_that_is_far_too_large_is_not_decrypted() -> None:
    large = b"0\x82\x2a\xfe" + b"0\x00" + b"\x04\x82\x2a\xf8" + bytes(11_000)
    assert mistake(large, passphrase=PASSPHRASE).startswith(LARGE)


DAMAGED: dict[str, tuple[bytes, str]] = {
    "a member that has no end": (b'{"privateKey": "-----BEGIN', CUT),
    "a member that ends in a backslash": (b'{"privateKey": "\\', CUT),
    "an escape that is none": (b'{"privateKey": "\\u00zz"}', CUT),
    "two members": (b'{"privateKey": "a", "x": {"privateKey": "b"}}', CUT),
    "a member with another text": (b'{"privateKey": "abc"}', CUT),
    "a member with letters that are no ASCII": (b'{"privateKey": "\\u20ac\\t"}', CUT),
    "nothing between the lines": (b"-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n", CUT),
    "DER in DER that is none": (b"0\x05\x02\x01\x00\x30\x09", CUT),
    "a seed of 31 bytes": (
        bytes.fromhex("302d020100300506032b65700421041f") + SEED[:31],
        UNREADABLE,
    ),
    "a number of 160,000 bits": (b"0\x82\x4e\x27\x02\x01\x00\x02\x82\x4e\x20" + b"\x7f" * 20_000, LARGE),
    "nothing but first lines": (b"-----BEGIN PRIVATE KEY-----" * 2_400, CUT),
    "a version alone": (b"0\x05\x02\x01\x00\x05\x00", UNREADABLE),
    "no member": (b"0\x03\x05\x05\x05", CUT),
    "an empty version": (b"0\x03\x02\x00\x05", CUT),
    "another version": (b"0\x06\x02\x01\x02\x02\x01\x00", "is a PKCS #12 file"),
    "a PGP key": (
        b"-----BEGIN PGP PRIVATE KEY BLOCK-----\nx\n-----END PGP PRIVATE KEY BLOCK-----",
        f"is a PGP key, which no exchange accepts; {NEW}",
    ),
    "parameters alone": (
        b"-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n",
        "is a PEM file without a private key; ",
    ),
    "a key of PuTTY": (b"PuTTY-User-Key-File-3: ssh-rsa\n", f"is a private key in PuTTY's own form; {NEW}"),
}


@pytest.mark.parametrize(("secret", "told"), DAMAGED.values(), ids=DAMAGED)
def test_what_is_no_key_is_named(secret: bytes, told: str) -> None:
    assert mistake(secret).startswith(told)


def test_several_keys_a_text_in_utf_16_and_a_pkcs12_file_are_named() -> None:
    pem = written("ed25519")
    assert mistake(pem + pem) == "contains several private keys; store only one of them"
    assert mistake(pem.decode().encode("utf-16")) == "is a text in UTF-16; save it as UTF-8"
    packed = serialize_key_and_certificates(b"x", key_of("es256"), None, None, OPEN)
    assert mistake(packed) == (
        "is a PKCS #12 file; extract the key: openssl pkcs12 -in FILE -nocerts -out NEW"
    )


def test_a_prefix_before_what_is_no_key() -> None:
    assert mistake(b"ed25519:abc", "base58", "ed25519:") == CUT
    assert read(b"ed25519", "base58", "ed25519:") is None


# The seed of RFC 8032 above; written by OpenSSL.
DES3_BY_SHA1 = (
    "MHwwQAYJKoZIhvcNAQUNMDMwGwYJKoZIhvcNAQUMMA4ECBW33SHdiTqTAgIIADAUBggqhkiG9w0DBwQIb01So/ctiCYEOI5E/zPCNB0X"
    "G1EKZxZ/Ykxw8FiUjRMGw78cb+80/KoRD0UQuYm+qPcJdl+K7cBt/TIJYvDiif8H"
)
PBES1 = (
    "MFgwHAYKKoZIhvcNAQwBAzAOBAiTaYuIIs+SaAICCAAEOBkJ597wBg+sayx5x+6ooMSzjKWQC8+bEFs4sA5Mn4LpXRwaYIRhX+9sC63+"
    "f/m00/9kx3uP6tGY"
)
OTHER_CURVE = (  # prime239v1
    "MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAjsDdqEfZ+rRQICCAAwDAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEEvp"
    "jNLe9JND6zWMUeeFyhkEgZD7mpLVEXyvX/k6V32XqCvAMOfAIEFGXqww2EwaqvHs5mbIKSZMqz/nlrm8VTF4LZJwEMv28mrhPKiBWcYP"
    "VqMO6bjq/gEAoU8mR/+F+REmsmLkVsQ/9/E2oPJZ+0W4Zjk0ZEjLrGJfR8Z3/UO7VKj+WQTtdRov1jQp9F0ZR9DBYaELjMwkxS82f0BK"
    "T350EqU="
)


def test_an_older_encryption_is_opened() -> None:
    for secret in (DES3_BY_SHA1, PBES1):
        assert is_of(read(secret.encode(), passphrase=PASSPHRASE), "ed25519")


NOT_OPENED = (
    "is a private key that its secret_passphrase does not decrypt; "
    "correct the passphrase, or copy the key again"
)
UNKNOWN = (
    "is a private key with an unsupported encryption; "
    "convert it: openssl pkcs8 -topk8 -v2 aes-256-cbc -in FILE -out NEW"
)
# What stands in the DER of an encrypted key, and what is put in its place.
REPLACED: dict[str, tuple[str, str, str]] = {
    "another scheme": ("2a864886f70d01050d", "2a864886f70d01050e", UNKNOWN),
    "another way to the key": ("2a864886f70d01050c", "2a864886f70d01050b", UNKNOWN),
    "another hash": ("2a864886f70d0209", "2a864886f70d0219", UNKNOWN),
    "another cipher": ("60864801650304012a", "60864801650304012b", UNKNOWN),
    "no rounds": ("02020800", "02020000", NOT_OPENED),
    "an IV that is not alone": ("0410(?=[0-9a-f]{32}0440)", "040f", NOT_OPENED),
}


@pytest.mark.parametrize(("old", "new", "told"), REPLACED.values(), ids=REPLACED)
def test_an_encryption_that_is_not_known_or_damaged_is_named(old: str, new: str, told: str) -> None:
    changed, count = re.subn(old, new, written("ed25519", DER, PKCS8, LOCKED).hex())
    assert count == 1
    assert mistake(bytes.fromhex(changed), passphrase=PASSPHRASE) == told


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        (b"RC2-CBC,0123456789ABCDEF", UNKNOWN),
        (b"AES-192-CBC,0123456789ABCDEF0123456789ABCDEF", UNKNOWN),
        (b"AES-256-CBC,0123456789ABCDEF", CUT),
        (b"DES-EDE3-CBC,0123456789ABCDEF0123456789ABCDEF", CUT),
        (b"AES-256-CBC,0123456789ABCDEF0123456789ABCDEF", NOT_OPENED),
    ],
)
def test_an_older_form_that_is_not_known_or_damaged_is_named(headers: bytes, told: str) -> None:
    pem = re.sub(rb"AES-256-CBC,\w+", headers, written("rsa", PEM, TRADITIONAL, LOCKED))
    assert mistake(pem, passphrase=PASSPHRASE) == told


def test_an_encrypted_key_on_a_curve_that_is_not_known_is_named() -> None:
    assert mistake(OTHER_CURVE.encode(), passphrase=PASSPHRASE).startswith(UNREADABLE)


@cache
def stored() -> list[bytes]:
    """Return keys in each form, to be damaged."""
    pems = [written(kind, PEM, form, lock) for kind, form in FORMS for lock in (OPEN, LOCKED)]
    ders = [written(kind, DER, form) for kind, form in FORMS] + [written("es256", DER, PKCS8, LOCKED)]
    jsons = [json.dumps({"name": "x", "privateKey": pem.decode()}).encode() for pem in pems]
    seeds = [
        base64.b64encode(SEED + PUBLIC),
        b"ed25519:" + base58(SEED).encode(),
        DES3_BY_SHA1.encode(),
        PBES1.encode(),
    ]
    return [*pems, *ders, *jsons, *map(base64.b64encode, ders), *seeds]


PIECES = [b"", b"\\", b"\n", b'"', b"0", b"\x02", b"=", b"-----BEGIN ", b"\\u00", b"\xff", b"1"]
edits = st.lists(
    st.tuples(st.integers(0, 3000), st.integers(0, 40), st.sampled_from(PIECES)), min_size=1, max_size=4
)


@given(
    st.integers(0, 99),
    edits,
    st.sampled_from(["pem", "base64", "base58"]),
    st.sampled_from([b"", PASSPHRASE]),
)
def test_whatever_is_damaged_is_read_or_refused_with_cause_and_fix(
    which: int, changes: list[tuple[int, int, bytes]], key_text: str, passphrase: bytes
) -> None:
    secret = (secrets := stored())[which % len(secrets)]
    for at, length, piece in changes:
        start = at % (len(secret) + 1)
        secret = secret[:start] + piece + secret[start + length :]
    key, told = None, "; "
    try:
        key = read(secret, key_text, "ed25519:", passphrase)
    except PrivateKeyError as error:
        told = str(error)
    assert told.count("; ") == 1
    assert key is None or key.signer("pkcs1v15", "sha256").sign(b"x")
