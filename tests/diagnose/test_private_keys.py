"""What `sealgate check` says of private keys."""

import base64
import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from rig.private_keys import PRIVATE, VENUE, new_key, private, public_der
from rig.setups import SECRET, Setup, a_setup, lines_of
from sealgate.keys.private_keys import PrivateKey
from sealgate.venues.filters import base58
from sealgate.venues.key_kinds import Kind, Signer

WORDS = {
    Kind.ED25519: "an Ed25519 private key",
    Kind.RSA: "an RSA private key",
    Kind.ES256: "an EC private key",
}


def mine(folder: Path, secret: str, venue: str = VENUE) -> Setup:
    """Return a set-up at a venue that takes each kind of keys."""
    setup = a_setup(folder, "https://exchange.example")
    setup.has(VENUE=str(setup.write("mine.toml", venue)))
    setup.has_key("main", "ak-public-1", secret)
    return setup


async def said_of_key(setup: Setup, level: str) -> list[str]:
    result = await setup.check("--offline")
    return lines_of(result.stdout, f"{level} keys.main")


@pytest.mark.parametrize("kind", PRIVATE)
async def test_a_private_key_is_proved_and_named_with_its_fingerprint(tmp_path: Path, kind: Kind) -> None:
    key = new_key(kind)
    setup = mine(tmp_path, private(key).decode())
    readable, proved = await said_of_key(setup, "ok")
    assert "the secret is readable from file:" in readable
    fingerprint = hashlib.sha256(public_der(key)).hexdigest()[:8]
    assert proved.endswith(
        f"it is {WORDS[kind]}, fingerprint {fingerprint}; its public key verifies a signature that it made"
    )
    assert await said_of_key(setup, "warn") == []


async def test_one_that_its_public_key_does_not_fit_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(key: PrivateKey, padding: str, digest: str) -> Signer:
        return replace(signer(key, padding, digest), sign=lambda _: bytes(64))

    signer = PrivateKey.signer
    monkeypatch.setattr(PrivateKey, "signer", broken)
    setup = mine(tmp_path, private(new_key(Kind.ED25519)).decode())
    (told,) = await said_of_key(setup, "fail")
    assert "its public key refuses a signature that the private key made" in told
    assert "copy the key again, or make a new one with `sealgate keys new --kind KIND`" in told


async def test_a_kind_that_the_exchange_advises_against_is_warned_of(tmp_path: Path) -> None:
    setup = mine(tmp_path, SECRET)
    (told,) = await said_of_key(setup, "warn")
    assert "keys of this kind have expired" in told
    assert "make an Ed25519 key" in told
    readable, kind = await said_of_key(setup, "ok")
    assert "the secret is readable from file:" in readable
    assert "the secret is not a private key, so it is used for HMAC" in kind


async def test_a_secret_that_is_sent_itself_is_told(tmp_path: Path) -> None:
    venue = (
        'name = "mine"\ntitle = "Mine"\n[signing]\nstatic = true\n[signing.headers]\nX-TOKEN = "{secret}"\n'
    )
    setup = mine(tmp_path, SECRET, venue)
    assert any(
        "Mine receives the secret itself with each request" in line for line in await said_of_key(setup, "ok")
    )


async def test_a_key_of_another_kind_than_the_setting_says_is_refused(tmp_path: Path) -> None:
    setup = mine(tmp_path, private(new_key(Kind.ES256)).decode())
    setup.has(KEYS__MAIN__KIND="rsa")
    (told,) = await said_of_key(setup, "fail")
    assert "requires rsa" in told


async def test_a_key_of_a_kind_that_the_exchange_does_not_take_is_refused(tmp_path: Path) -> None:
    setup = mine(tmp_path, private(new_key(Kind.ED25519)).decode(), VENUE.replace("ed25519 = {}\n", ""))
    (told,) = await said_of_key(setup, "fail")
    assert "is an Ed25519 private key, but Mine accepts HMAC secrets, RSA keys or EC keys (ES256)" in told


WRITE: dict[str, Callable[[bytes], bytes]] = {"base64": base64.b64encode, "base58": base58}


@pytest.mark.parametrize("key_text", WRITE)
async def test_an_api_key_that_is_another_public_key_is_told(tmp_path: Path, key_text: str) -> None:
    """Some exchanges name a key by its public key, written as the private one."""
    write = WRITE[key_text]
    key, other = new_key(Kind.ED25519), new_key(Kind.ED25519)
    venue = VENUE.replace("ed25519 = {}", f'ed25519 = {{ key_text = "{key_text}", key_prefix = "ed25519:" }}')
    setup = mine(tmp_path, f"ed25519:{write(key.private_bytes_raw()).decode()}", venue)
    for api_key, is_told in ((key, False), (other, True)):
        setup.has(KEYS__MAIN__API_KEY=f"ed25519:{write(api_key.public_key().public_bytes_raw()).decode()}")
        told = await said_of_key(setup, "fail")
        assert any("api_key is the public key of another private key" in line for line in told) is is_told
