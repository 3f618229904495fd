"""From the configuration to what takes secrets to make: they are read here, once.

They leave as HMAC states and digests.
"""

import hashlib
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sealgate.config import Config
from sealgate.config.redis_url import check_redis_url, is_redis_url
from sealgate.core.signing import Encoding, Scheme, SecretIs, SignedTarget, Signer, fits
from sealgate.gateway.keys.key import Secret, SigningKey
from sealgate.gateway.keys.roster import Roster, read_roster
from sealgate.gateway.keys.sources import SecretError, read_secret, wipe


@dataclass(frozen=True, slots=True)
class Parts:
    """What takes reading files to make. `ca_digest` is of the content of `upstream.ca_file`."""

    roster: Roster
    keys: Mapping[str, SigningKey]
    ca_digest: bytes
    redis: Secret | None = None


def read_parts(config: Config, environ: Mapping[str, str]) -> Parts:
    """Read all files. Raises SecretError, OSError; blocks, so that a running gateway calls it in a thread."""
    keys = {alias: build_key(config, alias, environ) for alias in config.keys}
    ca_file = config.upstream.ca_file
    certificates = b"" if ca_file is None else ca_file.read_bytes()
    return Parts(
        read_roster(config, environ),
        keys,
        hashlib.sha256(certificates).digest(),
        read_redis(config.limits.redis, environ),
    )


def build_scheme(config: Config) -> Scheme:
    """Return the signing settings as the signer takes them."""
    signing = config.venue.signing
    return Scheme(
        prefix=config.upstream.prefix,
        encoding=Encoding(signing.encoding),
        secret_is=SecretIs(signing.secret),
        target=SignedTarget.PATH_AND_QUERY if config.venue.signs_query else SignedTarget.PATH,
    )


def build_key(config: Config, alias: str, environ: Mapping[str, str]) -> SigningKey:
    """Read a key's secrets. Raises SecretError."""
    secret = read_secret(config.keys[alias].secret, environ)
    try:
        return key_with(config, alias, secret, environ)
    finally:
        wipe(secret)


def key_with(config: Config, alias: str, secret: bytearray, environ: Mapping[str, str]) -> SigningKey:
    """Make a key of its secret, which the caller wipes. Raises SecretError."""
    key = config.keys[alias]
    try:
        signer = Signer(build_scheme(config), secret)
    except ValueError as error:
        raise SecretError(key.secret, str(error), "correct the secret or signing.secret_is") from None
    session = read_session(key.session, environ) if key.session else None
    return SigningKey(alias, key.api_key, config.venue.header_prefix, key.recv_window_ms, signer, session)


def build_candidates(config: Config, alias: str, environ: Mapping[str, str]) -> dict[Scheme, SigningKey]:
    """Return a key for each signature scheme that its secret allows, the prefix being as configured.

    Raises SecretError.
    """
    key = config.keys[alias]
    secret = read_secret(key.secret, environ)
    try:
        signers = [Signer(scheme, secret) for scheme in _schemes(config) if fits(scheme.secret_is, secret)]
    finally:
        wipe(secret)
    return {
        signer.scheme: SigningKey(alias, key.api_key, config.venue.header_prefix, key.recv_window_ms, signer)
        for signer in signers
    }


def _schemes(config: Config) -> Iterator[Scheme]:
    for parts in itertools.product(Encoding, SecretIs, SignedTarget):
        yield Scheme(config.upstream.prefix, *parts)


def read_session(reference: str, environ: Mapping[str, str]) -> Secret:
    """Read a session token. Raises SecretError."""
    buffer = read_secret(reference, environ)
    try:
        token = buffer.decode("ascii")
    except UnicodeDecodeError:
        token = ""
    if not token.isprintable() or not token or " " in token:
        raise SecretError(reference, "a session token is printable ASCII without spaces", "store it again")
    return Secret(token)


def read_redis(setting: str, environ: Mapping[str, str]) -> Secret | None:
    """Return the URL of the Redis that is set, None where none is. Raises SecretError."""
    if not setting or is_redis_url(setting):
        return Secret(setting) if setting else None
    url = read_secret(setting, environ)
    try:
        text = url.decode("ascii")
        check_redis_url(text)
    except ValueError:
        fix = 'store "redis://:PASSWORD@HOST:PORT/0" there'
        raise SecretError(setting, "there is no URL of a Redis", fix) from None
    finally:
        wipe(url)
    return Secret(text)
