"""Private keys: from the stored bytes to what signs. A mistake is named with its fix, and no byte of the key.

What stays in memory are the numbers that OpenSSL signs with; each text and buffer on the way is wiped, except
those in which `cryptography` decrypts a key.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from cryptography.exceptions import InternalError, InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding as paddings
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_der_private_key,
    load_pem_private_key,
)

from sealgate.keys.key_texts import (
    BIT_STRING,
    INTEGER,
    OCTET_STRING,
    SEQUENCE,
    Block,
    Wiped,
    blocks,
    break_lines,
    dek_info,
    element,
    from_base58,
    from_base64,
    is_der,
    members,
    part_of,
    private_member,
)
from sealgate.venues.key_kinds import Kind, Signer
from sealgate.venues.scheme import Scheme

LEAST_BITS = 2048  # of RSA
_MOST_BYTES = 5000  # of DER: an RSA key of 8192 bits; to check a larger one would stop all else for seconds
_SEED = 32
_NUMBER = 32  # bytes of r, and of s
_ED25519_SPKI = bytes.fromhex("302a300506032b6570032100")  # what stands before the 32 bytes (RFC 8410)

_STORED = "what is stored as the secret"
_THE_OTHER = "store the private key that belongs to this API key"
_COPY = "copy it again, from its first line to its last"
_NEW = (
    "make one of a kind that the exchange accepts with `sealgate keys new --kind KIND`, "
    "and register its public key there"
)
_CONVERT = "convert it: openssl pkcs8 -topk8 -v2 aes-256-cbc -in FILE -out NEW"

_DAMAGED = ("is a truncated or damaged private key", _COPY)
_UNREADABLE = (
    "is a damaged private key, or of a kind that no exchange accepts",
    f"{_COPY}, or {_NEW}",
)
_LARGE = (f"is a private key of more than {_MOST_BYTES} bytes", _NEW)
_UTF_16 = ("is a text in UTF-16", "save it as UTF-8")
_SEVERAL = ("contains several private keys", "store only one of them")
_CLOSED = ("is an encrypted private key", 'name its passphrase in secret_passphrase, as in "file:/path"')
_NOT_OPENED = (
    "is a private key that its secret_passphrase does not decrypt",
    "correct the passphrase, or copy the key again",
)
_OPEN = ("is not encrypted", "remove secret_passphrase")
_UNKNOWN = ("is a private key with an unsupported encryption", _CONVERT)
_PUBLIC = ("is a public key", _THE_OTHER)
_CERTIFICATE = ("is a certificate", _THE_OTHER)
_PKCS12 = ("is a PKCS #12 file", "extract the key: openssl pkcs12 -in FILE -nocerts -out NEW")
_OPENSSH = "is a private key in OpenSSH's own form"
_SSH_CONVERTS = "convert a copy of it: ssh-keygen -p -m PKCS8 -f COPY"
# What a PEM file or a text is that holds no private key, by what stands in it, the longest first.
_NAMES: Mapping[bytes, tuple[str, str]] = {
    b"PUBLIC KEY": _PUBLIC,
    b"CERTIFICATE REQUEST": ("is a certificate request", _THE_OTHER),
    b"CERTIFICATE": _CERTIFICATE,
    b"PGP ": ("is a PGP key, which no exchange accepts", _NEW),
    b"-----BEGIN ": ("is a PEM file without a private key", _COPY),
    b"PuTTY-User-Key-File": ("is a private key in PuTTY's own form", _NEW),
}
# The ciphers of DEK-Info that `cryptography` reads, and how many hex digits their initialization vector has.
_DIGITS_OF_IV = {b"AES-256-CBC": 32, b"AES-128-CBC": 32, b"DES-EDE3-CBC": 16}
_SSH_PUBLIC = (b"ssh-rsa ", b"ssh-ed25519 ", b"ecdsa-sha2-", b"sk-ssh-", b"sk-ecdsa-")

_DIGESTS: Mapping[str, Callable[[], hashes.HashAlgorithm]] = {
    "sha256": hashes.SHA256,
    "sha384": hashes.SHA384,
    "sha512": hashes.SHA512,
    "sha1": hashes.SHA1,
    "md5": hashes.MD5,
}


class PrivateKeyError(ValueError):
    """A private key cannot be used. `str()` is "cause; fix", without any of the key."""

    def __init__(self, cause: str, fix: str) -> None:
        super().__init__(f"{_STORED} {cause}; {fix}")
        self.cause = f"{_STORED} {cause}"
        self.fix = fix


@dataclass(frozen=True, slots=True)
class PrivateKey:
    """A private key, in OpenSSL's memory."""

    kind: Kind
    _key: Ed25519PrivateKey | RSAPrivateKey | EllipticCurvePrivateKey = field(repr=False)

    @property
    def identity(self) -> bytes:
        """The SHA-256 of its public key (SubjectPublicKeyInfo in DER)."""
        public = self._key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return hashlib.sha256(public).digest()

    def signer(self, padding: str, digest: str) -> Signer:
        """Return what signs with it; padding and digest are for RSA alone."""
        key = self._key
        if isinstance(key, RSAPrivateKey):
            sign, verify = _rsa(key, padding, digest)
        else:
            sign, verify = _ed25519(key) if isinstance(key, Ed25519PrivateKey) else _es256(key)

        def verifies(message: bytes, signature: bytes) -> bool:
            try:
                verify(message, signature)
            except InvalidSignature:
                return False
            return True

        return Signer(self.kind, sign, self.identity, self.kind is Kind.RSA, verifies)


def is_another_key(api_key: str, scheme: Scheme, signer: Signer) -> bool:
    """Whether an API key is an Ed25519 public key, written as `key_text` says, and not that of the signer."""
    if signer.kind is not Kind.ED25519 or scheme.key_text == "pem":
        return False
    text = bytearray(api_key.removeprefix(scheme.key_prefix), "ascii")
    public = from_base64(text) if scheme.key_text == "base64" else from_base58(text)
    if public is None or len(public) != _SEED:
        return False
    return hashlib.sha256(_ED25519_SPKI + public).digest() != signer.identity


# What signs a message, and what raises InvalidSignature where a signature is not that of a message.
_Pair = tuple[Callable[[bytes], bytes], Callable[[bytes, bytes], None]]


def _ed25519(key: Ed25519PrivateKey) -> _Pair:
    public = key.public_key()
    return key.sign, lambda message, signature: public.verify(signature, message)


def _rsa(key: RSAPrivateKey, padding: str, digest: str) -> _Pair:
    public, algorithm = key.public_key(), _DIGESTS[digest]()
    pss = paddings.PSS(paddings.MGF1(algorithm), paddings.PSS.DIGEST_LENGTH)
    scheme = pss if padding == "pss" else paddings.PKCS1v15()
    return (
        lambda message: key.sign(message, scheme, algorithm),
        lambda message, signature: public.verify(signature, message, scheme, algorithm),
    )


def _es256(key: EllipticCurvePrivateKey) -> _Pair:
    public, algorithm = key.public_key(), ECDSA(hashes.SHA256())

    def sign(message: bytes) -> bytes:
        r, s = decode_dss_signature(key.sign(message, algorithm))
        return r.to_bytes(_NUMBER, "big") + s.to_bytes(_NUMBER, "big")

    def verify(message: bytes, signature: bytes) -> None:
        r, s = signature[:_NUMBER], signature[_NUMBER:]
        der = encode_dss_signature(int.from_bytes(r, "big"), int.from_bytes(s, "big"))
        public.verify(der, message, algorithm)

    return sign, verify


def read_private_key(
    secret: bytearray, key_text: str = "pem", prefix: str = "", passphrase: bytearray | None = None
) -> PrivateKey | None:
    """Return the private key that was stored, None where it is none: then it is the secret of an HMAC.

    PEM and DER are read whatever `key_text` says. With "base64" or "base58" so is a text of 32 bytes, an
    Ed25519 seed, or of 64 of which the second half is its public key; `prefix` may stand before it. The
    caller wipes both buffers. Raises PrivateKeyError.
    """
    with Wiped() as wiped:
        if is_der(secret):
            return _of_der(secret, passphrase)
        text = wiped(bytearray(secret))
        if b"-\0-\0-" in text:
            raise PrivateKeyError(*_UTF_16)
        try:
            member = private_member(text)
        except ValueError:
            raise PrivateKeyError(*_DAMAGED) from None
        text = text if member is None else wiped(member)
        break_lines(text)
        key = _of_pem(text, passphrase, wiped) or _of_line(text, key_text, prefix, passphrase, wiped)
    if key is None and member is not None:
        raise PrivateKeyError(*_DAMAGED)
    if key is None and passphrase is not None:
        raise PrivateKeyError(*_OPEN)
    return key


def _of_pem(text: bytearray, passphrase: bytearray | None, wiped: Wiped) -> PrivateKey | None:
    """Read the one private key among the blocks of a PEM file, None where a text is none."""
    private = [block for block in blocks(text) if block.is_private]
    if len(private) > 1:
        raise PrivateKeyError(*_SEVERAL)
    if not private:
        if b"PRIVATE KEY" in text and b"PGP" not in text:
            raise PrivateKeyError(*_DAMAGED)  # one of its lines is not there
        mistake = next((mistake for part, mistake in _NAMES.items() if part in text), None)
        if mistake or text.startswith(_SSH_PUBLIC):
            raise PrivateKeyError(*(mistake or _PUBLIC))
        return None
    return _of_block(text, private[0], passphrase, wiped)


def _of_block(text: bytearray, block: Block, passphrase: bytearray | None, wiped: Wiped) -> PrivateKey:
    """Read a block of PEM that is called a private key."""
    headers = dek_info(text, block)
    body = wiped(part_of(text, headers.end() if headers else block.start, block.end))
    content = from_base64(body)
    if content is None:
        raise PrivateKeyError(*_DAMAGED)
    wiped(content)
    if block.label.startswith("OPENSSH"):
        raise PrivateKeyError(_OPENSSH, _NEW if b"ssh-ed25519" in content else _SSH_CONVERTS)
    if headers is not None:
        if (digits := _DIGITS_OF_IV.get(headers["cipher"])) is None:
            raise PrivateKeyError(*_UNKNOWN)
        if len(headers["iv"]) != digits:  # at a shorter one, `cryptography` panics
            raise PrivateKeyError(*_DAMAGED)
        return _opened(load_pem_private_key, block.encrypted_pem(headers, body), passphrase)
    if not is_der(content):
        raise PrivateKeyError(*_DAMAGED)
    return _of_der(content, passphrase)


def _of_line(
    text: bytearray, key_text: str, prefix: str, passphrase: bytearray | None, wiped: Wiped
) -> PrivateKey | None:
    """Read base64 of DER, or a seed as `key_text` has it; None where a text is neither."""
    start = len(prefix) if (has_prefix := bool(prefix) and text.startswith(prefix.encode())) else 0
    line = wiped(part_of(text, start, len(text)))
    data = wiped(from_base64(line) or bytearray())
    if is_der(data):
        return _of_der(data, passphrase)
    if key_text == "base58":
        data = wiped(from_base58(line) or bytearray())
    key = None if key_text == "pem" else _of_seed(data)
    if key is None and has_prefix:
        raise PrivateKeyError(*_DAMAGED)
    if key is not None and passphrase is not None:
        raise PrivateKeyError(*_OPEN)
    return key


def _of_seed(data: bytearray) -> PrivateKey | None:
    """Read an Ed25519 seed, alone or with its public key behind it; None where bytes are neither."""
    if len(data) not in {_SEED, 2 * _SEED}:
        return None
    with memoryview(data) as view:
        key = Ed25519PrivateKey.from_private_bytes(view[:_SEED])
        is_pair = key.public_key().public_bytes_raw() == view[_SEED:]
    return PrivateKey(Kind.ED25519, key) if is_pair or len(data) == _SEED else None


def _of_der(data: bytearray, passphrase: bytearray | None) -> PrivateKey:
    """Read DER: a private key is a version and more, an encrypted one an algorithm and octets."""
    try:
        inner = members(data, element(data, 0, len(data)))
    except ValueError:
        raise PrivateKeyError(*_DAMAGED) from None
    tags, version = [one.tag for one in inner], inner[0]
    if tags[0] == INTEGER:
        if version.end - version.start != 1:  # the modulus of an RSAPublicKey
            raise PrivateKeyError(*_PUBLIC)
        if data[version.start] > 1:
            raise PrivateKeyError(*_PKCS12)
        if passphrase is not None:
            raise PrivateKeyError(*_OPEN)
        return _load(data)
    if tags == [SEQUENCE, OCTET_STRING]:  # an EncryptedPrivateKeyInfo (RFC 5958 section 3)
        return _opened(load_der_private_key, data, passphrase)
    raise PrivateKeyError(*(_PUBLIC if tags == [SEQUENCE, BIT_STRING] else _CERTIFICATE))


def _opened(load: Callable[..., object], data: bytearray, passphrase: bytearray | None) -> PrivateKey:
    """Read an encrypted private key by its passphrase."""
    if passphrase is None:
        raise PrivateKeyError(*_CLOSED)
    if len(data) > 2 * _MOST_BYTES:  # it may be in base64
        raise PrivateKeyError(*_LARGE)
    try:
        key = load(data, passphrase, unsafe_skip_rsa_key_validation=True)
    except (UnsupportedAlgorithm, InternalError):
        raise PrivateKeyError(*_UNREADABLE) from None
    except (ValueError, TypeError) as error:
        # Only the text tells an unknown cipher from a wrong passphrase, by which a key may also look damaged.
        is_unknown = "unknown" in str(error).lower()
        raise PrivateKeyError(*(_UNKNOWN if is_unknown else _NOT_OPENED)) from None
    return _usable(key)


def _load(data: bytearray) -> PrivateKey:
    """Read a private key in DER that is not encrypted."""
    if len(data) > _MOST_BYTES:
        raise PrivateKeyError(*_LARGE)
    try:
        # To check an RSA key takes a second, in which no other thread goes on: a signature proves it instead.
        key = load_der_private_key(data, None, unsafe_skip_rsa_key_validation=True)
    except (ValueError, TypeError, UnsupportedAlgorithm, InternalError):  # the last: a seed of another length
        raise PrivateKeyError(*_UNREADABLE) from None
    return _usable(key)


def _is_sound(key: RSAPrivateKey) -> bool:
    """Whether a signature of an RSA key is one by its public key."""
    scheme, algorithm = paddings.PKCS1v15(), hashes.SHA256()
    try:
        key.public_key().verify(key.sign(b"", scheme, algorithm), b"", scheme, algorithm)
    except (InvalidSignature, ValueError, InternalError):
        return False
    return True


def _usable(key: object) -> PrivateKey:
    """Return a key of a kind with which exchanges sign."""
    if isinstance(key, Ed25519PrivateKey):
        return PrivateKey(Kind.ED25519, key)
    if isinstance(key, RSAPrivateKey):
        if key.key_size < LEAST_BITS:
            cause = f"is an RSA key of {key.key_size} bits, fewer than the {LEAST_BITS} required"
            raise PrivateKeyError(cause, _NEW)
        if not _is_sound(key):
            raise PrivateKeyError(*_UNREADABLE)
        return PrivateKey(Kind.RSA, key)
    if isinstance(key, EllipticCurvePrivateKey):
        if not isinstance(key.curve, SECP256R1):
            raise PrivateKeyError(f"is a key on the curve {key.curve.name}, but ES256 needs P-256", _NEW)
        return PrivateKey(Kind.ES256, key)
    algorithm = type(key).__name__.removesuffix("PrivateKey")
    raise PrivateKeyError(f"is a {algorithm} key, which no exchange accepts", _NEW)
