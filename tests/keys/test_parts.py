"""From a configuration's references to keys, tokens and digests: what is read, refused and wiped."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from rig.backends import the_exchange
from rig.private_keys import new_key, private
from rig.station import make_config
from rig.tls import Authority
from sealgate.config import Config
from sealgate.http.target import parse_target
from sealgate.keys import parts as parts_module
from sealgate.keys.key import Secret, SigningKey
from sealgate.keys.parts import (
    Roster,
    build_candidates,
    build_key,
    read_parts,
    read_redis,
    read_roster,
    read_session,
)
from sealgate.keys.signing_choices import Encoding, SecretIs, SignedTarget
from sealgate.keys.sources import SecretError, read_secret
from sealgate.venues.key_kinds import Kind

URL = "https://api.example.com"
HEX = "00ff" * 8
ENVIRON = {"HEX": HEX, "TEXT": "correct horse", "SESSION": "tok-1", "TOKEN": "token-of-grid"}
KEY = {"api_key": "ak-1", "secret": "env:HEX", "recv_window_ms": 4000}


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[bytearray]:
    """Return what was read, to be looked at later."""
    seen: list[bytearray] = []

    def noting(reference: str, *others: Any) -> bytearray:
        seen.append(read_secret(reference, *others))
        return seen[-1]

    monkeypatch.setattr(parts_module, "read_secret", noting)
    return seen


def key_of(config: Config, environ: Mapping[str, str]) -> SigningKey:
    return build_key(config, the_exchange(config), "main", environ)


def is_wiped(secrets: list[bytearray]) -> bool:
    return bool(secrets) and not any(map(any, secrets))


def test_a_key_is_as_its_settings_say_and_its_secret_is_wiped(read: list[bytearray]) -> None:
    config = make_config(URL, keys={"main": KEY}, signing={"header_prefix": "X-EX-"})
    key = key_of(config, ENVIRON)
    assert (key.alias, key.api_key, key.recv_window_ms, key.session) == ("main", "ak-1", 4000, None)
    _, lines, _ = key.sign_read(1, b"", "GET", parse_target("/v1/trade/x", "/v1/trade"))
    assert lines.startswith(b"X-EX-APIKEY: ak-1\r\nX-EX-TIMESTAMP: 1\r\nX-EX-SIGNATURE: ")
    assert is_wiped(read)


def test_a_passphrase_and_an_accounts_id_go_with_the_signature_and_are_wiped(read: list[bytearray]) -> None:
    keys = {"main": KEY | {"passphrase": "env:PHRASE"}}
    key = key_of(make_config(URL, venue="okx", keys=keys), ENVIRON | {"PHRASE": "open sesame"})
    _, lines, _ = key.sign_read(1, b"", "GET", parse_target("/api/v5/x", ""))
    assert b"OK-ACCESS-PASSPHRASE: open sesame\r\n" in lines
    assert "sesame" not in repr(key)
    assert len(read) == 2
    assert is_wiped(read)


def test_a_private_keys_passphrase_opens_it_and_is_wiped(read: list[bytearray]) -> None:
    """What is opened is told to be of a kind that the exchange does not take."""
    environ = {
        "PEM": private(new_key(Kind.ED25519), passphrase=b"open sesame").decode(),
        "PHRASE": "open sesame",
    }
    keys = {"main": KEY | {"secret": "env:PEM", "secret_passphrase": "env:PHRASE"}}
    with pytest.raises(
        SecretError, match=r"^env:PEM: .* is an Ed25519 private key, but .* accepts HMAC secrets"
    ):
        key_of(make_config(URL, keys=keys), environ)
    with pytest.raises(SecretError, match=r"^env:PEM: .* does not decrypt; correct the passphrase"):
        key_of(make_config(URL, keys=keys), environ | {"PHRASE": "x"})
    assert len(read) == 4
    assert is_wiped(read)


@pytest.mark.parametrize("text", ["a\r\nX-Evil: 1", "a\x00b"])
def test_a_passphrase_that_could_not_be_a_header_is_not_told(text: str) -> None:
    keys = {"main": KEY | {"passphrase": "env:PHRASE"}}
    with pytest.raises(
        SecretError, match=r"^env:PHRASE: a passphrase must be printable text; store it again$"
    ):
        key_of(make_config(URL, venue="okx", keys=keys), ENVIRON | {"PHRASE": text})


def test_a_secret_that_is_not_what_the_settings_say_is_wiped_and_not_told(read: list[bytearray]) -> None:
    keys = {"main": KEY | {"secret": "env:TEXT"}}
    with pytest.raises(
        SecretError, match=r"^env:TEXT: .+; correct the secret or signing.secret_is$"
    ) as refused:
        key_of(make_config(URL, keys=keys, signing={"secret_is": "hex"}), ENVIRON)
    assert "horse" not in str(refused.value)
    assert is_wiped(read)


CANDIDATES = {
    "may be hex, base64 or text": ("env:HEX", set(SecretIs)),
    "is text alone": ("env:TEXT", {SecretIs.UTF8, SecretIs.SHA256HEX}),
}


@pytest.mark.parametrize(("reference", "kinds"), CANDIDATES.values(), ids=CANDIDATES)
def test_a_key_for_each_scheme_that_the_secret_allows(
    read: list[bytearray], reference: str, kinds: set[SecretIs]
) -> None:
    config = make_config(URL, keys={"main": KEY | {"secret": reference, "session": "env:SESSION"}})
    keys = build_candidates(config, the_exchange(config), "main", ENVIRON)
    assert {way.secret_is for way, _ in keys} == kinds
    assert len(keys) == len(kinds) * len(Encoding) * len(SignedTarget)
    for (way, _), key in keys.items():
        assert (key.sealer.scheme.encoding, key.sealer.scheme.secret) == (way.encoding, way.secret_is)
    assert is_wiped(read)


def test_a_private_key_allows_no_way_to_key_an_hmac(read: list[bytearray]) -> None:
    config = make_config(URL, keys={"main": KEY | {"secret": "env:PEM"}})
    environ = {"PEM": private(new_key(Kind.ED25519)).decode()}
    with pytest.raises(
        SecretError, match=r"^env:PEM: .* is an Ed25519 private key, but .* accepts HMAC secrets"
    ):
        build_candidates(config, the_exchange(config), "main", environ)
    assert is_wiped(read)


SESSIONS = {
    "bytes that are no ASCII": "tök",
    "a space": "a b",
    "a tab": "a\tb",
    "a line end": "a\r\nb",
}


@pytest.mark.parametrize("text", SESSIONS.values(), ids=SESSIONS)
def test_a_session_that_could_not_be_a_header_line(text: str) -> None:
    with pytest.raises(SecretError, match=r"^env:S: a session token must be printable ASCII without spaces"):
        read_session("env:S", {"S": text})


REDIS: dict[str, tuple[str, str | None]] = {
    "none": ("", None),
    "the URL itself": ("redis://localhost:6379/0", "redis://localhost:6379/0"),
    "a reference": ("env:R", "redis://:s3cret@localhost:6379/0"),
}


@pytest.mark.parametrize(("setting", "url"), REDIS.values(), ids=REDIS)
def test_where_gateways_meet(read: list[bytearray], setting: str, url: str | None) -> None:
    found = read_redis(setting, {"R": "redis://:s3cret@localhost:6379/0"})
    assert found == (None if url is None else Secret(url))
    assert not any(map(any, read))


NO_REDIS = {
    "another scheme": "http://:s3cret@localhost",
    "no host": "redis://",
    "no port": "redis://:s3cret@localhost:port/0",
    "bytes that are no ASCII": "redis://:s3crét@localhost",
}


@pytest.mark.parametrize("text", NO_REDIS.values(), ids=NO_REDIS)
def test_what_is_no_redis_is_wiped_and_not_told(read: list[bytearray], text: str) -> None:
    with pytest.raises(SecretError, match="env:R: it does not hold a Redis URL; store ") as refused:
        read_redis("env:R", {"R": text})
    assert "s3cr" not in str(refused.value)
    assert is_wiped(read)


def test_certificates_that_went_meanwhile_are_named(authority: Authority, tmp_path: Path) -> None:
    ca_file = Path(authority.write(tmp_path))
    config = make_config(URL, upstream={"ca_file": str(ca_file)}, keys={"main": KEY})
    ca_file.unlink()
    with pytest.raises(FileNotFoundError, match=r"ca\.pem"):
        read_parts(config, ENVIRON)


def roster(bots: dict[str, Any], **tables: Any) -> Roster:
    environ = {"GRID": "token-of-grid", "TWIN": "token-of-grid"}
    return read_roster(make_config(URL, keys={"main": KEY}, bots=bots, **tables), environ)


def test_a_token_of_two_bots_is_refused_by_their_names() -> None:
    with pytest.raises(SecretError) as refused:
        roster({"grid": {"token": "env:GRID"}, "copy": {"token": "env:TWIN"}})
    assert str(refused.value) == "env:TWIN: the bots grid and copy have the same token; give each its own"


@pytest.mark.parametrize(
    ("listen", "local"),
    [({}, frozenset({os.geteuid(), 0})), ({"unix": "/run/s/bots.sock", "unix_mode": "0660"}, None)],
    ids=["ours alone", "its mode decides"],
)
def test_who_is_local(listen: dict[str, str], local: frozenset[int] | None) -> None:
    assert roster({}, listen=listen).local_users == local


FENCES: dict[str, tuple[str, dict[str, Any], bool]] = {
    "a window that the exchange documents": ("okx", {"passphrase": "env:TEXT"}, True),
    "a window that goes with the request": ("bybit", {}, True),
    "no time in the request": ("kraken", {}, False),
    "a time that nobody says how long it holds": ("woo-v1", {}, False),
    "a window that the user sets": ("woo-v1", {"recv_window_ms": 30_000}, True),
}


@pytest.mark.parametrize(("venue", "more", "has_fence"), FENCES.values(), ids=FENCES)
def test_a_fence_is_there_only_where_it_holds(venue: str, more: dict[str, Any], *, has_fence: bool) -> None:
    key = {"api_key": "ak-1", "secret": "env:BASE64", **more}
    config = make_config(URL, venue=venue, keys={"main": key})
    assert key_of(config, {**ENVIRON, "BASE64": "c2VjcmV0"}).has_fence is has_fence
