"""The bots and what each proves itself by. Tokens are read here, and only their digests stay."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass

from sealgate.config import Config
from sealgate.core.admission import Bot
from sealgate.core.routes import Permission
from sealgate.gateway.keys.sources import SecretError, read_secret, wipe


@dataclass(frozen=True, slots=True)
class Roster:
    """Bots by the SHA-256 of their token, by uid, by name; and who is local where there are no bots.

    `named` are all of them, for the names in client certificates.
    """

    tokens: Mapping[bytes, Bot]
    users: Mapping[int, Bot]
    named: Mapping[str, Bot]
    local_users: frozenset[int] | None


def read_roster(config: Config, environ: Mapping[str, str]) -> Roster:
    """Return the bots of the configuration. Raises SecretError where a token cannot be had."""
    named = {name: _bot(config, name) for name in config.bots}
    users = {bot.uid: named[name] for name, bot in config.bots.items() if bot.uid is not None}
    return Roster(_read_tokens(config, named, environ), users, named, _local_users(config))


def _bot(config: Config, name: str) -> Bot:
    settings = config.bots[name]
    return Bot(name, config.keys_of(name), frozenset(map(Permission, settings.may)), settings.weight)


def _read_tokens(config: Config, named: Mapping[str, Bot], environ: Mapping[str, str]) -> dict[bytes, Bot]:
    tokens: dict[bytes, Bot] = {}
    for name, settings in config.bots.items():
        if settings.token is None:
            continue
        digest = _digest(settings.token, environ)
        if digest in tokens:
            cause = f"the bots {tokens[digest].name} and {name} have the same token"
            raise SecretError(settings.token, cause, "give each its own")
        tokens[digest] = named[name]
    return tokens


def _digest(reference: str, environ: Mapping[str, str]) -> bytes:
    token = read_secret(reference, environ)
    digest = hashlib.sha256(token).digest()
    wipe(token)
    return digest


def _local_users(config: Config) -> frozenset[int] | None:
    """Where the socket lets a group in, its mode decides who is local."""
    return frozenset({os.geteuid(), 0}) if config.listen.unix_mode == "0600" else None
