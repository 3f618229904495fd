"""Read an account's keys from the exchange: each user's list once, with the session tokens of the keys."""

import os
from dataclasses import dataclass
from http import HTTPStatus
from typing import NamedTuple, NoReturn
from urllib.parse import quote

from sealgate.config import Config, ExchangeConfig
from sealgate.diagnose.arguments import checked_target, known_alias
from sealgate.diagnose.causes import fix_of_own_read
from sealgate.diagnose.probe import direct_upstream, read
from sealgate.exchange.failure import Failure
from sealgate.exchange.pool import Upstream
from sealgate.keys.key import Secret, bearer_line, by_session
from sealgate.keys.key_audit import NOT_LISTED, KeyFinding, OwnKey, audit
from sealgate.keys.key_records import AuditEntry, ListedKey, list_audit, list_keys
from sealgate.keys.parts import read_proxy_password, read_session
from sealgate.machine.findings import REACH, error_words
from sealgate.machine.system import System
from sealgate.machine.terminal import leave, leave_with_error, shortened


@dataclass(frozen=True, slots=True)
class Account:
    """The keys read at an exchange, with findings and log.

    `now` is epoch seconds on this machine's clock; `log` is None unless requested.
    """

    exchange: str
    keys: tuple[ListedKey, ...]
    aliases: dict[str, str]
    findings: tuple[KeyFinding, ...]
    log: tuple[AuditEntry, ...] | None
    now: float


def bots_may(config: Config, alias: str) -> frozenset[str]:
    """Return what bots may do with a key; without bots, every local program may do everything."""
    if not config.bots:
        return frozenset({"read", "trade"})
    return frozenset[str]().union(
        *(bot.may for name, bot in config.bots.items() if alias in config.keys_of(name))
    )


class _Listed(NamedTuple):
    """A key, and the alias whose session lists it."""

    key: ListedKey
    alias: str
    session: Secret


async def read_account(
    config: Config,
    exchange: ExchangeConfig,
    session_of: str | None,
    api_key: str | None = None,
    limit: int | None = None,
) -> Account:
    """Read the keys at an exchange, or one key with `limit` entries of its log.

    The session token is that of the alias `session_of`; without it, each available token is used. Exits with
    code 1 if a read fails.
    """
    path, listed = exchange.venue.key_list, dict[str, _Listed]()
    proxy_password = read_proxy_password(exchange, os.environ, config.cmd_env)
    async with direct_upstream(exchange, proxy_password) as upstream:
        # 1. The keys of each user with a session.
        for alias, session in _sessions(config, exchange, session_of).items():
            keys = list_keys(await _read(exchange, upstream, alias, session, path))
            for key in _not_a_list(path) if keys is None else keys:
                listed.setdefault(key.api_key, _Listed(key, alias, session))
        # 2. Their problems. If one user's session was chosen, missing keys may belong to other users.
        own = [OwnKey(alias, key.api_key, bots_may(config, alias)) for alias, key in exchange.keys.items()]
        chosen = {exchange.keys[session_of].api_key} if session_of else {key.api_key for key in own}
        now = System().wall()
        findings = [
            finding
            for finding in audit([one.key for one in listed.values()], own, now)
            if finding.kind != NOT_LISTED or finding.api_key in chosen
        ]
        # 3. All keys, or one key with its log.
        log = None
        if api_key is not None:
            api_key = _meant(exchange, api_key, listed)
            findings = [finding for finding in findings if finding.api_key == api_key]
            listed = {api_key: listed[api_key]} if api_key in listed else {}
            for key, alias, session in listed.values():
                of_key = f"{path}/{quote(key.api_key, safe='')}/audit"
                query = "" if limit is None else f"?limit={limit}"
                entries = list_audit(await _read(exchange, upstream, alias, session, of_key + query))
                log = tuple(_not_a_list(of_key) if entries is None else entries)
    aliases = {key.api_key: alias for alias, key in exchange.keys.items()}
    keys_listed = tuple(one.key for one in listed.values())
    return Account(exchange.name, keys_listed, aliases, tuple(findings), log, now)


def _sessions(config: Config, exchange: ExchangeConfig, alias: str | None) -> dict[str, Secret]:
    """Return the session tokens to use, by alias, each token once."""
    if not exchange.venue.key_list:
        leave_with_error(
            f"{exchange.venue.title} lists its keys only in its own app or website; "
            "`sealgate check` shows whether it accepts this one"
        )
    asked = tuple(exchange.keys) if alias is None else (known_alias(exchange, alias),)
    references = {name: reference for name in asked if (reference := exchange.keys[name].session)}
    if not references:
        leave_with_error(
            f"keys.{asked[0]}.session is not set; store a session token and name it there, "
            'as in session = "file:main.session"'
        )
    tokens = {name: read_session(one, os.environ, config.cmd_env) for name, one in references.items()}
    return {names[0]: token for token, names in by_session(tokens).items()}


def _meant(exchange: ExchangeConfig, given: str, listed: dict[str, _Listed]) -> str:
    """Return the API key for an alias, an id or a shortened id."""
    if given in exchange.keys:
        return exchange.keys[given].api_key
    found = [api_key for api_key in listed if given in (api_key, shortened(api_key))]
    if len(found) != 1:
        cause = "several keys match" if found else "the list has no such key"
        leave(f"{given}: {cause}; give an alias, or a whole id of `sealgate keys list --json`")
    return found[0]


async def _read(
    exchange: ExchangeConfig, upstream: Upstream, alias: str, session: Secret, path: str
) -> bytes:
    target = checked_target(path, exchange.upstream.prefix)
    answer = await read(upstream, target.raw, bearer_line(session))
    if isinstance(answer, Failure):
        leave(f"{exchange.base_url} cannot be reached: {answer.detail}; {REACH}")
    if answer.status != HTTPStatus.OK:
        words = error_words(answer.status, answer.verdict.words, (session.reveal(),))
        fix = fix_of_own_read(answer.verdict, alias)
        leave(f"{target.path}, with the session of {alias}: {words}{f'; {fix}' if fix else ''}")
    return answer.body


def _not_a_list(path: str) -> NoReturn:
    leave(f"{path}: the reply differs from the exchange's documents; check base_url and upstream.prefix")
