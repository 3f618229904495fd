"""From the configuration to what takes secrets to make: they are read here, once.

They leave as HMAC states and digests.
"""

import contextlib
import hashlib
import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sealgate.config import Config
from sealgate.config.addresses import check_redis_url, is_redis_url
from sealgate.config.settings import Key
from sealgate.config.tree import ExchangeConfig
from sealgate.config.venues import is_scheme_open
from sealgate.keys.key import NO_SECRET, Secret, SigningKey
from sealgate.keys.private_keys import PrivateKeyError
from sealgate.keys.signer import KeyMaterial, sealer_of
from sealgate.keys.signing_choices import Encoding, SecretIs, SignedTarget, Way
from sealgate.keys.sources import SecretError, read_secret, wipe
from sealgate.keys.wrong_secrets import not_a_secret, not_a_token
from sealgate.venues.venue import Venue

_LONGEST_PROXY_PASSWORD = 255  # RFC 1929 section 2


@dataclass(frozen=True, slots=True)
class Roster:
    """The names of bots by the SHA-256 of their token, and by uid; without bots, who is local."""

    tokens: Mapping[bytes, str]
    users: Mapping[int, str]
    local_users: frozenset[int] | None


def read_roster(config: Config, environ: Mapping[str, str]) -> Roster:
    """Return how the bots of the configuration are known. Raises SecretError where a token cannot be had."""
    users = {bot.uid: name for name, bot in config.bots.items() if bot.uid is not None}
    return Roster(_read_tokens(config, environ), users, _local_users(config))


def _read_tokens(config: Config, environ: Mapping[str, str]) -> dict[bytes, str]:
    tokens: dict[bytes, str] = {}
    for name, settings in config.bots.items():
        if settings.token is None:
            continue
        digest = _digest(settings.token, environ, config.cmd_env)
        if digest in tokens:
            cause = f"the bots {tokens[digest]} and {name} have the same token"
            raise SecretError(settings.token, cause, "give each its own")
        tokens[digest] = name
    return tokens


def _digest(reference: str, environ: Mapping[str, str], cmd_env: Sequence[str]) -> bytes:
    token = read_secret(reference, environ, cmd_env)
    try:
        if (fault := not_a_token(token)) is not None:
            raise SecretError(reference, *fault)
        return hashlib.sha256(token).digest()
    finally:
        wipe(token)


def _local_users(config: Config) -> frozenset[int] | None:
    """Where the socket lets a group in, its mode decides who is local."""
    return frozenset({os.geteuid(), 0}) if config.listen.unix_mode == "0600" else None


@dataclass(frozen=True, slots=True)
class ExchangeParts:
    """What takes reading files to make of an exchange. `ca_digest` is of the content of `ca_file`.

    `proxy_password` is empty where there is none.
    """

    keys: Mapping[str, SigningKey]
    ca_digest: bytes
    redis: Secret | None = None
    proxy_password: Secret = NO_SECRET


@dataclass(frozen=True, slots=True)
class Parts:
    """What takes reading files to make. `exchanges` are by name."""

    roster: Roster
    exchanges: Mapping[str, ExchangeParts]


def read_parts(config: Config, environ: Mapping[str, str]) -> Parts:
    """Read all files. Raises SecretError, OSError; blocks, so that a running gateway calls it in a thread."""
    exchanges = {name: _read_exchange(config, one, environ) for name, one in config.served.items()}
    return Parts(read_roster(config, environ), exchanges)


def _read_exchange(config: Config, exchange: ExchangeConfig, environ: Mapping[str, str]) -> ExchangeParts:
    ca_file = exchange.upstream.ca_file
    certificates = b"" if ca_file is None else ca_file.read_bytes()
    return ExchangeParts(
        {alias: build_key(config, exchange, alias, environ) for alias in exchange.keys},
        hashlib.sha256(certificates).digest(),
        read_redis(exchange.limits.redis, environ, config.cmd_env),
        read_proxy_password(exchange, environ, config.cmd_env),
    )


def build_key(config: Config, exchange: ExchangeConfig, alias: str, environ: Mapping[str, str]) -> SigningKey:
    """Read the secrets of a key of an exchange. Raises SecretError."""
    secret = read_secret(config.keys[alias].secret, environ, config.cmd_env)
    try:
        return key_with(config, exchange, alias, secret, environ)
    finally:
        wipe(secret)


def key_with(
    config: Config, exchange: ExchangeConfig, alias: str, secret: bytearray, environ: Mapping[str, str]
) -> SigningKey:
    """Make a key of its secret, which the caller wipes. Raises SecretError."""
    key = exchange.keys[alias]
    with _material(config, key, secret, environ) as material:
        session = read_session(key.session, environ, config.cmd_env) if key.session else None
        return _key(exchange, exchange.venue, material, alias, session)


@contextlib.contextmanager
def _material(
    config: Config, key: Key, secret: bytearray, environ: Mapping[str, str]
) -> Iterator[KeyMaterial]:
    """Read what belongs to a secret; the passphrase of a private key is wiped at the end."""
    fault = not_a_secret(secret, {one: other.api_key for one, other in config.keys.items()})
    if fault is not None:
        raise SecretError(key.secret, *fault)
    passphrase = read_passphrase(key.passphrase, environ, config.cmd_env) if key.passphrase else ""
    reference = key.secret_passphrase
    opening = read_secret(reference, environ, config.cmd_env) if reference else None
    try:
        yield KeyMaterial(
            key.api_key, secret, passphrase, key.uid, str(key.recv_window_ms), key.kind or "", opening
        )
    finally:
        if opening is not None:
            wipe(opening)


def _key(
    exchange: ExchangeConfig, venue: Venue, material: KeyMaterial, alias: str, session: Secret | None = None
) -> SigningKey:
    key = exchange.keys[alias]
    try:
        sealer = sealer_of(venue, material, str(exchange.base_url))
    except PrivateKeyError as error:
        raise SecretError(key.secret, error.cause, error.fix) from None
    except ValueError as error:
        raise SecretError(key.secret, str(error), _fix_of_form(exchange)) from None
    venue = venue.of_kind(sealer.scheme.kind)
    is_set = key.recv_window_ms != venue.recv_window_ms and venue.signing.is_dated
    has_fence = venue.states_window or is_set
    return SigningKey(alias, key.api_key, key.recv_window_ms, sealer, session, has_fence)


def _fix_of_form(exchange: ExchangeConfig) -> str:
    if is_scheme_open(exchange.venue) or exchange.signing.secret_is is not None:
        return "correct the secret or signing.secret_is"
    return f"copy it again, complete and as the exchange shows it: {exchange.venue.title} decodes it"


def build_candidates(
    config: Config, exchange: ExchangeConfig, alias: str, environ: Mapping[str, str]
) -> dict[tuple[Way, SignedTarget], SigningKey]:
    """Return a key for each way to sign that its secret allows, all else being as configured.

    Raises SecretError where the secret cannot be had, or allows none.
    """
    key, refusal = exchange.keys[alias], None
    secret = read_secret(key.secret, environ, config.cmd_env)
    keys: dict[tuple[Way, SignedTarget], SigningKey] = {}
    try:
        with _material(config, key, secret, environ) as material:
            for encoding, secret_is, target in itertools.product(Encoding, SecretIs, SignedTarget):
                venue = exchange.venue.overridden(
                    encoding=encoding,
                    secret=secret_is,
                    signs_query=target is SignedTarget.PATH_AND_QUERY,
                )
                try:
                    keys[Way(encoding, secret_is), target] = _key(exchange, venue, material, alias)
                except SecretError as error:  # the secret cannot be this
                    refusal = error
    finally:
        wipe(secret)
    if refusal is not None and not keys:
        raise refusal
    return keys


def read_passphrase(reference: str, environ: Mapping[str, str], cmd_env: Sequence[str] = ()) -> str:
    """Read what a venue wants beside a secret. Raises SecretError."""
    text = _text(reference, environ, cmd_env, "utf-8")
    if not text or not text.isprintable():
        raise SecretError(reference, "a passphrase must be printable text", "store it again")
    return text


def read_session(reference: str, environ: Mapping[str, str], cmd_env: Sequence[str] = ()) -> Secret:
    """Read a session token. Raises SecretError."""
    token = _text(reference, environ, cmd_env, "ascii")
    if not token.isprintable() or not token or " " in token:
        raise SecretError(
            reference, "a session token must be printable ASCII without spaces", "store it again"
        )
    return Secret(token)


def read_proxy_password(
    exchange: ExchangeConfig, environ: Mapping[str, str], cmd_env: Sequence[str] = ()
) -> Secret:
    """Read the password of an exchange's proxy, an empty one where there is none. Raises SecretError."""
    reference = exchange.upstream.proxy_password
    if reference is None:
        return NO_SECRET
    password = _text(reference, environ, cmd_env, "ascii")
    if not password.isprintable() or not 0 < len(password) <= _LONGEST_PROXY_PASSWORD:
        cause = "a proxy's password must be printable ASCII, of 255 characters at most"
        raise SecretError(reference, cause, "store it again")
    return Secret(password)


def _text(reference: str, environ: Mapping[str, str], cmd_env: Sequence[str], encoding: str) -> str:
    """Read a secret that is text, "" where it is none."""
    buffer = read_secret(reference, environ, cmd_env)
    try:
        return buffer.decode(encoding)
    except UnicodeDecodeError:
        return ""
    finally:
        wipe(buffer)


def read_redis(setting: str, environ: Mapping[str, str], cmd_env: Sequence[str] = ()) -> Secret | None:
    """Return the URL of the Redis that is set, None where none is. Raises SecretError."""
    if not setting or is_redis_url(setting):
        return Secret(setting) if setting else None
    url = read_secret(setting, environ, cmd_env)
    try:
        text = url.decode("ascii")
        check_redis_url(text)
    except ValueError:
        fix = 'store "redis://:PASSWORD@HOST:PORT/0" there'
        raise SecretError(setting, "it does not hold a Redis URL", fix) from None
    finally:
        wipe(url)
    return Secret(text)
