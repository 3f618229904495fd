"""Users, keys and sessions: in memory for speed, written to the store before they are acknowledged."""

import hashlib
import hmac
import logging
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, replace
from ipaddress import IPv4Network, IPv6Network, ip_network

from sealgate.sandbox.records import AuditEntry, Key, Session, User
from sealgate.sandbox.settings import SecretIs
from sealgate.sandbox.signature import hmac_state
from sealgate.sandbox.store import Store, StoreError

LAST_USED_EVERY_S = 5.0

logger = logging.getLogger("sealgate.sandbox")


@dataclass(slots=True)
class LiveKey:
    """A key ready for checking: its HMAC is prepared and its whitelist parsed."""

    record: Key
    state: hmac.HMAC
    networks: tuple[IPv4Network | IPv6Network, ...]
    last_used_ms: int | None

    def current(self) -> Key:
        """Give the record with the last use in it."""
        return replace(self.record, last_used_ms=self.last_used_ms)


class Registry:
    """All that is durable. Memory changes only after the store has."""

    def __init__(self, store: Store, secret_is: SecretIs) -> None:
        self.store = store
        self._secret_is = secret_is
        self._used: set[str] = set()
        self._next_flush_s = 0.0
        self._at_start: list[User | Key | Session | AuditEntry] = []
        self._load()

    def _load(self) -> None:
        self.users = {user.address: user for user in self.store.load(User)}
        self.keys = self._load_keys()
        self._sessions = {session.token_sha256: session for session in self.store.load(Session)}
        self._used.clear()

    def mark_start(self) -> None:
        """Take what there is now for the start, to which `reset` goes back."""
        load = self.store.load
        self._at_start = [*load(User), *load(Key), *load(Session), *load(AuditEntry)]

    def reset(self) -> None:
        """Go back to the start; all else that the store has, is forgotten."""
        self.store.replace_all(self._at_start)
        self._load()

    def _load_keys(self) -> dict[str, LiveKey]:
        try:
            return {key.api_key: self._live(key) for key in self.store.load(Key)}
        except ValueError as error:
            raise StoreError(
                f"the database has a secret that is not {self._secret_is}; start with the --secret-is"
                " that it was made with, or with another file"
            ) from error

    def _live(self, key: Key) -> LiveKey:
        networks = tuple(ip_network(block) for block in key.ip_whitelist)
        return LiveKey(key, hmac_state(key.secret, self._secret_is), networks, key.last_used_ms)

    def save_user(self, user: User) -> None:
        """Add or change a user."""
        self.store.save(user)
        self.users[user.address] = user

    def save_keys(self, keys: Iterable[Key], entries: Iterable[AuditEntry]) -> None:
        """Add or change keys together with their audit entries, in one transaction."""
        changed = tuple(keys)
        self.store.save(*changed, *entries)
        for key in changed:
            self.keys[key.api_key] = self._live(key)

    def keys_of(self, address: str) -> list[LiveKey]:
        """Give a user's keys, oldest first."""
        return [live for live in self.keys.values() if live.record.address == address]

    def live_key(self, api_key: str, server_ms: int) -> LiveKey | None:
        """Give a key that is neither revoked nor expired."""
        live = self.keys.get(api_key)
        is_good = live and not live.record.is_revoked and not live.record.is_expired(server_ms)
        return live if is_good else None

    def save_session(self, token: str, address: str, expires_ms: int) -> None:
        """Add a session."""
        session = Session(_sha256(token), address, expires_ms)
        self.store.save(session)
        self._sessions[session.token_sha256] = session

    def session_address(self, token: str, server_ms: int) -> str | None:
        """Give the address of a session token; None if it is unknown or expired."""
        session = self._sessions.get(_sha256(token))
        return session.address if session and server_ms < session.expires_ms else None

    def touch(self, live: LiveKey, server_ms: int, now_s: float) -> None:
        """Note a key's use; written in batches, because it is for people and no promise."""
        live.last_used_ms = server_ms
        self._used.add(live.record.api_key)
        if now_s >= self._next_flush_s:
            self._next_flush_s = now_s + LAST_USED_EVERY_S
            self.flush()

    def flush(self) -> None:
        """Write the uses noted so far; what cannot be written is logged, and tried again with the next."""
        records = [self.keys[api_key].current() for api_key in self._used]
        try:
            self.store.save(*records)
        except sqlite3.Error as error:
            logger.warning("The last use of %d keys could not be saved: %s", len(records), error)
            return
        for record in records:
            self.keys[record.api_key].record = record
        self._used.clear()


def _sha256(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
