"""The default venue signs as spec.md says, in each way that spec.md leaves open; the secret is not kept."""

import base64
import gc
import hashlib
import hmac
import traceback
from typing import Any

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from sealgate.config.venues import default_venue
from sealgate.diagnose.schemes import tells_encoding
from sealgate.http.target import Target, parse_target
from sealgate.keys.private_keys import PrivateKeyError
from sealgate.keys.signer import KeyMaterial, sealer_of
from sealgate.keys.signing_choices import Encoding, SecretIs, SignedTarget
from sealgate.venues.sealer import Sealer

PREFIX = "/v1/trade"
FINGERPRINT = hmac.digest(b"c4a4", b"sealgate: fingerprint of a secret", "sha256").hex()[:8]
ORDER = parse_target(f"{PREFIX}/order", PREFIX)


def sealer(
    secret: bytearray,
    encoding: Encoding = Encoding.HEX,
    secret_is: SecretIs = SecretIs.UTF8,
    target: SignedTarget = SignedTarget.PATH,
) -> Sealer:
    venue = default_venue().overridden(
        encoding=encoding, secret=secret_is, signs_query=target is SignedTarget.PATH_AND_QUERY
    )
    return sealer_of(venue, KeyMaterial("ak", secret), "https://api.example.com")


def signature(by: Sealer, timestamp_ms: int, method: str, target: Target, body: bytes) -> str:
    lines, _, _, _ = by.sign(timestamp_ms, b"", method, target, body)
    return lines.decode().splitlines()[-1].removeprefix("X-SERVICE-SIGNATURE: ")


@pytest.mark.parametrize(
    ("choice", "raw", "message"),
    [
        pytest.param(SignedTarget.PATH, "/v1/trade/", b"5PUT/{}", id="prefix alone"),
        pytest.param(SignedTarget.PATH, "/v1/trade/a?b=1", b"5PUT/a{}", id="query left out"),
        pytest.param(SignedTarget.PATH_AND_QUERY, "/v1/trade/a?b=1", b"5PUT/a?b=1{}", id="query signed"),
        pytest.param(SignedTarget.PATH_AND_QUERY, "/v1/trade/a", b"5PUT/a{}", id="no query to sign"),
        pytest.param(
            SignedTarget.PATH_AND_QUERY,
            "/v1/trade/v1/trade/a%2Cb?c=%2b+%20",
            b"5PUT/v1/trade/a%2Cb?c=%2b+%20{}",
            id="only the first prefix goes, escapes stay",
        ),
    ],
)
def test_the_message_is_what_is_sent_without_the_prefix(
    choice: SignedTarget, raw: str, message: bytes
) -> None:
    by = sealer(bytearray(b"s"), target=choice)
    assert by.message(5, b"", "PUT", parse_target(raw, PREFIX), b"{}") == message


def stored(secret_is: SecretIs, key: bytes) -> tuple[bytes, bytes]:
    """Return (the secret as it is stored, what keys the HMAC)."""
    return {
        SecretIs.UTF8: (key, key),
        SecretIs.HEX: ("".join(f"{octet:02x}" for octet in key).encode(), key),
        SecretIs.BASE64: (base64.standard_b64encode(key), key),
        SecretIs.SHA256HEX: (key, f"{int.from_bytes(hashlib.sha256(key).digest(), 'big'):064x}".encode()),
    }[secret_is]


def written(encoding: Encoding, digest: bytes) -> str:
    plain = base64.standard_b64encode(digest).decode()
    return {
        Encoding.HEX: "".join(f"{octet:02x}" for octet in digest),
        Encoding.UPPER_HEX: "".join(f"{octet:02X}" for octet in digest),
        Encoding.BASE64: plain,
        Encoding.BASE64URL: plain.replace("+", "-").replace("/", "_").replace("=", ""),
    }[encoding]


@given(digest=st.binary(min_size=32, max_size=32))
def test_a_signature_tells_its_encoding_where_the_other_base64_writes_it_otherwise(digest: bytes) -> None:
    encodings = (Encoding.BASE64, Encoding.BASE64URL)
    plain, url = (written(encoding, digest) for encoding in encodings)
    is_telling = plain.rstrip("=") != url
    assert [tells_encoding(*one) for one in zip(encodings, (plain, url), strict=True)] == [is_telling] * 2
    for encoding in (Encoding.HEX, Encoding.UPPER_HEX):
        assert tells_encoding(encoding, written(encoding, digest))


@pytest.mark.parametrize("signed", SignedTarget)
@pytest.mark.parametrize("secret_is", SecretIs)
@pytest.mark.parametrize("encoding", Encoding)
@pytest.mark.slow
@settings(max_examples=5)  # for each of the 32 schemes
@given(
    key=st.binary(min_size=1, max_size=100),
    timestamp_ms=st.integers(0, 10**14),
    method=st.sampled_from(("GET", "POST", "DELETE")),
    query=st.none() | st.from_regex(r"[a-z0-9=&%+]{1,8}", fullmatch=True),
    body=st.binary(max_size=80),
)
def test_agrees_with_the_standard_librarys_hmac(  # noqa: PLR0913 - the three choices and the four parts of a message
    *,
    encoding: Encoding,
    secret_is: SecretIs,
    signed: SignedTarget,
    key: bytes,
    timestamp_ms: int,
    method: str,
    query: str | None,
    body: bytes,
) -> None:
    path = f"{PREFIX}/order"
    raw = path if query is None else f"{path}?{query}"
    secret, hmac_key = stored(secret_is, key)
    try:
        by = sealer(bytearray(secret), encoding, secret_is, signed)
    except PrivateKeyError:
        reject()  # what was drawn begins as a public key or the like does
    signed_part = "/order" if signed is SignedTarget.PATH or query is None else f"/order?{query}"
    message = str(timestamp_ms).encode() + method.encode() + signed_part.encode() + body
    made = signature(by, timestamp_ms, method, Target(raw, path, query), body)
    assert made == written(encoding, hmac.digest(hmac_key, message, "sha256"))


@pytest.mark.parametrize("length", [1, 63, 64, 65, 200])
def test_a_key_may_be_shorter_and_longer_than_a_block(length: int) -> None:
    key = bytes(range(256))[-length:]
    made = signature(sealer(bytearray(key)), 1, "POST", ORDER, b"{}")
    assert made == hmac.digest(key, b"1POST/order{}", "sha256").hex()


@pytest.mark.parametrize(
    ("secret_is", "secret"),
    [
        pytest.param(SecretIs.HEX, b"c4n4ry", id="no hexadecimal"),
        pytest.param(SecretIs.HEX, b"c4a4a", id="odd hexadecimal"),
        pytest.param(SecretIs.HEX, b"0xc4a4", id="hexadecimal with 0x"),
        pytest.param(SecretIs.HEX, b"c4 a4", id="hexadecimal with a space"),
        pytest.param(SecretIs.HEX, b"\xff\xfec4", id="hexadecimal with other octets"),
        pytest.param(SecretIs.BASE64, b"c4n4r", id="base64 cut"),
        pytest.param(SecretIs.BASE64, b"c4n4ry", id="base64 without padding"),
        pytest.param(SecretIs.BASE64, b"c4n4ry==c4n4", id="base64 padded inside"),
        pytest.param(SecretIs.BASE64, b"c4n4\n", id="base64 with a line end"),
        pytest.param(SecretIs.BASE64, b"c4n_-ry=", id="base64url"),
        pytest.param(SecretIs.BASE64, b"\xff\xfec4", id="base64 with other octets"),
    ],
)
def test_a_secret_of_another_kind_is_refused_without_telling_it(secret_is: SecretIs, secret: bytes) -> None:
    with pytest.raises(ValueError, match=f"not {secret_is.value}") as caught:
        sealer(bytearray(secret), secret_is=secret_is)
    told = "".join(traceback.format_exception(caught.value))
    assert secret.decode("latin-1") not in told


@pytest.mark.parametrize("secret_is", SecretIs)
def test_what_signs_does_not_need_the_secret_again(secret_is: SecretIs) -> None:
    """The caller wipes the buffer; what the signer keeps has no trace of it."""
    secret, hmac_key = stored(secret_is, b"c4n4ry-0123456789abcdef")
    buffer = bytearray(secret)
    by = sealer(buffer, secret_is=secret_is)
    buffer[:] = bytes(len(buffer))
    expected = hmac.digest(hmac_key, b"1POST/order{}", "sha256").hex()
    assert [signature(by, 1, "POST", ORDER, b"{}") for _ in range(2)] == [expected] * 2
    assert "c4n4ry" not in repr(gc.get_referents(by))


@pytest.mark.parametrize("secret_is", SecretIs)
def test_what_is_made_of_the_secret_is_wiped_and_not_the_callers_buffer(
    secret_is: SecretIs, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyed: list[bytearray] = []
    new = hmac.new

    def noting(key: bytearray, **more: Any) -> hmac.HMAC:
        keyed.append(key)
        return new(key, **more)

    monkeypatch.setattr(hmac, "new", noting)
    secret, _ = stored(secret_is, b"c4n4ry-0123456789abcdef")
    buffer = bytearray(secret)
    sealer(buffer, secret_is=secret_is)
    assert buffer == secret
    assert [any(key) for key in keyed if key is not buffer] == [False] * (secret_is is not SecretIs.UTF8)


def test_a_fingerprint_tells_secrets_apart_and_nothing_more() -> None:
    prints = [
        sealer(bytearray(secret), secret_is=secret_is).fingerprint()
        for secret_is in (SecretIs.UTF8, SecretIs.HEX)
        for secret in (b"c4a4", b"c4a5", b"c4a4")
    ]
    assert len(set(prints)) == 4
    assert prints[0] == prints[2] == FINGERPRINT


def test_the_default_venue_has_the_time_and_the_window_of_the_specification() -> None:
    venue = default_venue()
    assert (venue.clock_path, venue.recv_window_ms) == ("/v1/trade/time", 5000)
