"""Reads an account's keys from the exchange, each user's list once, with the session tokens of the keys."""

import os
from dataclasses import dataclass
from http import HTTPStatus
from typing import NamedTuple, NoReturn
from urllib.parse import quote

from sealgate.config import Config
from sealgate.diagnose.arguments import checked_target, known_alias
from sealgate.diagnose.probe import direct_upstream, read
from sealgate.exchange.failure import Failure
from sealgate.exchange.pool import Upstream
from sealgate.keys.key import Secret, bearer_line, by_session
from sealgate.keys.key_audit import NOT_LISTED, KeyFinding, OwnKey, audit
from sealgate.keys.key_records import AuditEntry, ListedKey, list_audit, list_keys
from sealgate.keys.parts import read_session
from sealgate.machine.findings import REACH, Level, error_words
from sealgate.machine.loop import run
from sealgate.machine.system import System
from sealgate.machine.terminal import leave, leave_with_error, shortened

_NEW_SESSION = "It is wrong or has expired: store a new session token where keys.ALIAS.session points."
# Where what helps is not what helps a bot.
_ADVICE = {
    "headers_missing": _NEW_SESSION,
    "session_invalid": _NEW_SESSION,
    "rate_limited": "Wait, and run it again.",
}


@dataclass(frozen=True, slots=True)
class KeysOptions:
    """What was asked for: the key whose session is used, the one to look at, and how much of its log."""

    alias: str | None
    api_key: str | None
    limit: int | None


@dataclass(frozen=True, slots=True)
class Account:
    """What was read. `now` is epoch seconds by this host's clock; `log` is None where none was asked for."""

    keys: tuple[ListedKey, ...]
    aliases: dict[str, str]
    findings: tuple[KeyFinding, ...]
    log: tuple[AuditEntry, ...] | None
    now: float

    @property
    def has_failed(self) -> bool:
        """Whether anything is so wrong that the command fails."""
        return any(finding.level is Level.FAIL for finding in self.findings)


def read_account(config: Config, options: KeysOptions) -> Account:
    """Read what was asked for; leave with exit code 1 where the exchange does not give it."""
    return run(_read_account(config, options))


async def _read_account(config: Config, options: KeysOptions) -> Account:
    async with direct_upstream(config) as upstream:
        return await _KeyLists(config, upstream).account(options)


def bots_may(config: Config, alias: str) -> frozenset[str]:
    """Return what bots may do with a key; without any, every local program may do all."""
    if not config.bots:
        return frozenset({"read", "trade"})
    return frozenset[str]().union(
        *(bot.may for name, bot in config.bots.items() if alias in config.keys_of(name))
    )


class _Listed(NamedTuple):
    """A key, and whose session lists it."""

    key: ListedKey
    alias: str
    session: Secret


class _KeyLists:
    def __init__(self, config: Config, upstream: Upstream) -> None:
        self._config = config
        self._upstream = upstream

    async def account(self, options: KeysOptions) -> Account:
        listed = await self._list_all(options.alias)
        now = System().wall()
        found = audit([one.key for one in listed.values()], self._own(), now)
        findings = tuple(one for one in found if self._is_meant(one, options.alias))
        aliases = {key.api_key: alias for alias, key in self._config.keys.items()}
        if options.api_key is None:
            return Account(tuple(one.key for one in listed.values()), aliases, findings, None, now)
        api_key = self._meant(options.api_key, listed)
        own = tuple(one for one in findings if one.api_key == api_key)
        if api_key not in listed:
            return Account((), aliases, own, None, now)
        log = await self._log(listed[api_key], options.limit)
        return Account((listed[api_key].key,), aliases, own, log, now)

    async def _list_all(self, alias: str | None) -> dict[str, _Listed]:
        """Return the keys of each user whose session there is, by id."""
        listed: dict[str, _Listed] = {}
        for name, session in self._sessions(alias).items():
            for key in await self._list(name, session):
                listed.setdefault(key.api_key, _Listed(key, name, session))
        return listed

    def _is_meant(self, finding: KeyFinding, alias: str | None) -> bool:
        """Pass over the keys of other users, where one user's session was chosen."""
        is_missing = finding.kind == NOT_LISTED
        return alias is None or not is_missing or finding.api_key == self._config.keys[alias].api_key

    def _sessions(self, alias: str | None) -> dict[str, Secret]:
        """Return the session tokens to use by alias, each token once."""
        venue, keys = self._config.venue, self._config.keys
        if not venue.key_list:
            leave_with_error(
                f"{venue.title} lists its keys only in its own app or website; "
                "whether this one is accepted, `sealgate check` shows"
            )
        asked = tuple(keys) if alias is None else (known_alias(self._config, alias),)
        references = {name: reference for name in asked if (reference := keys[name].session)}
        if not references:
            leave_with_error(
                f"keys.{asked[0]}.session is not set; store a session token and name it there, "
                'as in session = "file:main.session"'
            )
        cmd_env = self._config.cmd_env
        tokens = {name: read_session(one, os.environ, cmd_env) for name, one in references.items()}
        return {names[0]: token for token, names in by_session(tokens).items()}

    def _own(self) -> list[OwnKey]:
        config = self._config
        return [OwnKey(name, key.api_key, bots_may(config, name)) for name, key in config.keys.items()]

    def _meant(self, given: str, listed: dict[str, _Listed]) -> str:
        if given in self._config.keys:
            return self._config.keys[given].api_key
        found = [api_key for api_key in listed if given in (api_key, shortened(api_key))]
        if len(found) != 1:
            cause = "several keys match" if found else "the list has no such key"
            leave(f"{given}: {cause}; give an alias, or a whole id of `sealgate keys list --json`")
        return found[0]

    async def _list(self, alias: str, session: Secret) -> list[ListedKey]:
        path = self._config.venue.key_list
        keys = list_keys(await self._read(alias, session, path))
        return _not_a_list(path) if keys is None else keys

    async def _log(self, listed: _Listed, limit: int | None) -> tuple[AuditEntry, ...]:
        path = f"{self._config.venue.key_list}/{quote(listed.key.api_key, safe='')}/audit"
        query = "" if limit is None else f"?limit={limit}"
        entries = list_audit(await self._read(listed.alias, listed.session, path + query))
        return tuple(_not_a_list(path) if entries is None else entries)

    async def _read(self, alias: str, session: Secret, path: str) -> bytes:
        target = checked_target(path, self._config.upstream.prefix)
        answer = await read(self._upstream, target.raw, bearer_line(session))
        if isinstance(answer, Failure):
            leave(f"{self._config.base_url} cannot be reached: {answer.detail}; {REACH}")
        if answer.status != HTTPStatus.OK:
            advice = _ADVICE.get(answer.verdict.kind, answer.verdict.advice).replace("ALIAS", alias)
            words = error_words(answer.status, answer.verdict.words, (session.reveal(),))
            leave(f"{target.path}, with the session of {alias}: {words}. {advice}")
        return answer.body


def _not_a_list(path: str) -> NoReturn:
    leave(f"{path}: the answer is not what the exchange documents; check base_url and upstream.prefix")
