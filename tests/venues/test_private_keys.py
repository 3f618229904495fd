"""What the comparison with ccxt lets pass of a signature that may differ each time."""

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from rig.private_keys import base58, from_base58
from venues.private_keys import key_of, public_of
from venues.through import Case, Sent, settled, signed_by_ccxt

MESSAGE = b"what ccxt signed"


def signature_of(message: bytes) -> bytes:
    key = key_of("es256", "real")
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    r, s = decode_dss_signature(key.sign(message, ec.ECDSA(SHA256())))
    return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def written(signature: bytes) -> str:
    return base64.urlsafe_b64encode(signature).decode().rstrip("=")


@pytest.fixture
def case() -> Case:
    signature = signature_of(MESSAGE)
    public = public_of(key_of("es256", "real"))
    return {
        "signed": {
            "url": "https://exchange.test/a?b=c",
            "headers": {"Authorization": f"Bearer token.{written(signature)}"},
            "body": "",
        },
        "proof": {"public": public, "message": MESSAGE.hex(), "signature": signature.hex()},
    }


def sent(authorization: str) -> Sent:
    return Sent("/a?b=c", [("Authorization", authorization)], b"")


def test_another_signature_of_the_same_message_is_as_good(case: Case) -> None:
    other = signature_of(MESSAGE)
    assert other.hex() != case["proof"]["signature"]
    assert settled(case, sent(f"Bearer token.{written(other)}")) == signed_by_ccxt(case)


@pytest.mark.parametrize(
    "authorization",
    [
        f"Bearer token.{written(signature_of(b'another message'))}",
        f"Bearer tokem.{written(signature_of(MESSAGE))}",
        f"Bearer token.{written(signature_of(MESSAGE))}=",
        f"Bearer token.{base64.b64encode(signature_of(MESSAGE)).decode()}",
        "Bearer token.",
        "Bearer token.x",
        "token",
    ],
)
def test_nothing_else_is(case: Case, authorization: str) -> None:
    assert settled(case, sent(authorization)) == sent(authorization) != signed_by_ccxt(case)


def test_base58_keeps_zeros_at_the_beginning() -> None:
    for value in (b"", b"\0", b"\0\0\x01", bytes(range(64))):
        assert from_base58(base58(value)) == value
    assert base58(b"\0\0\x28\x7f\xb4\xcd") == "11233QC4"  # draft-msporny-base58-03, section 5
