"""Key management: create, list, update, revoke, revoke all, audit. spec.md, "Endpoints"."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from sealgate.sandbox.catalogue import ApiError
from sealgate.sandbox.clock import Moment, iso
from sealgate.sandbox.key_rules import KeyOptions, checked_audit_limit, key_changes, new_key_options
from sealgate.sandbox.message import Call
from sealgate.sandbox.models.keys import (
    AuditLine,
    AuditLog,
    AuditQuery,
    CreatedKey,
    CreateKey,
    KeyList,
    KeyRecord,
    RevokedKey,
    RevokedKeys,
    UpdatedKey,
    UpdateKey,
)
from sealgate.sandbox.models.wire import Nothing
from sealgate.sandbox.records import AuditEntry, Key
from sealgate.sandbox.registry import LiveKey, Registry
from sealgate.sandbox.settings import SandboxSettings
from sealgate.sandbox.signature import new_secret
from sealgate.sandbox.system import System

KEYS_PER_USER = 10
FAR_MS = 253_402_300_799_999  # the last millisecond of the year 9999
SAVE_IT = "Save the api_secret now: it is shown only this once and cannot be retrieved again."

NO_EXPIRY = {"null": None, "empty": "", "far": iso(FAR_MS)}


class KeyDesk:
    """The six calls. `is_available` false makes all of them answer 503."""

    def __init__(self, registry: Registry, settings: SandboxSettings, system: System) -> None:
        self._registry = registry
        self._settings = settings
        self._system = system
        self.is_available = True

    def create(self, call: Call[CreateKey]) -> CreatedKey:
        """Create an API key; the secret is in this reply only."""
        with self._key_system():
            options = new_key_options(call.input, call.now, self._settings)
            self._check_prerequisites(call.address, options.permissions)
            if len(self._slots(call)) >= KEYS_PER_USER:
                raise ApiError("key_limit")
            return self._created(self.make(call.address, options, call.now, call.client_ip))

    def make(self, address: str, options: KeyOptions, now: Moment, client_ip: str) -> Key:
        """Make a key and store it with its audit entry."""
        settings = self._settings
        key = Key(
            api_key=self._system.token(settings.api_key_bytes).hex(),
            address=address,
            secret=new_secret(self._system.token(settings.api_secret_bytes), settings.secret_is),
            label=options.label,
            permissions=options.permissions,
            ip_whitelist=options.ip_whitelist,
            created_ms=now.server_ms,
            expires_ms=options.expires_ms,
            last_used_ms=None,
            recv_window_ms=settings.recv_window_ms,
            is_revoked=False,
        )
        entry = _audit_entry(key, "key_created", f"API key '{key.label}' created", now, client_ip)
        self._registry.save_keys([key], [entry])
        return key

    def list_keys(self, call: Call[Nothing]) -> KeyList:
        """List API keys, without secrets."""
        with self._key_system():
            keys = self._registry.keys_of(call.address)
            shown = [live for live in keys if self._settings.list_revoked or not live.record.is_revoked]
            return KeyList(keys=[self._record(live, call.now) for live in shown])

    def update(self, call: Call[UpdateKey]) -> UpdatedKey:
        """Update an API key: only what is in the body changes, only what changed is listed."""
        with self._key_system():
            key = self._own(call).current()
            if key.is_revoked:
                raise ApiError("key_unknown", status=self._settings.unknown_key_status)
            changes = key_changes(call.input, key, self._settings)
            if "permissions" in call.input.model_fields_set:
                self._check_prerequisites(call.address, tuple(call.input.permissions))
            names = list(changes)
            if changes:
                entry = _audit_entry(
                    key, self._settings.audit_updated, f"Changed {', '.join(names)}", call.now, call.client_ip
                )
                self._registry.save_keys([replace(key, **changes)], [entry])
            return UpdatedKey(success=True, api_key=key.api_key, updated_fields=names)

    def revoke(self, call: Call[Nothing]) -> RevokedKey:
        """Revoke an API key for good."""
        with self._key_system():
            key = self._own(call).current()
            if key.is_revoked:
                raise ApiError("key_unknown", status=self._settings.unknown_key_status)
            self._revoke([key], call)
            return RevokedKey(success=True, message=f"API key {key.api_key} revoked")

    def revoke_all(self, call: Call[Nothing]) -> RevokedKeys:
        """Revoke every active API key."""
        with self._key_system():
            keys = [live.current() for live in self._registry.keys_of(call.address)]
            active = [key for key in keys if not key.is_revoked]
            self._revoke(active, call)
            return RevokedKeys(success=True, revoked_count=len(active))

    def audit(self, call: Call[AuditQuery]) -> AuditLog:
        """Read the audit log of an API key."""
        with self._key_system():
            limit = checked_audit_limit(call.input.limit, self._settings)
            api_key = self._own(call).record.api_key
            entries = self._registry.store.audit(api_key, limit, self._settings.audit_order)
            return AuditLog(
                api_key=api_key, audit=[_audit_line(entry) for entry in entries], count=len(entries)
            )

    @contextmanager
    def _key_system(self) -> Iterator[None]:
        """Answer 503 when switched off, and when the database fails."""
        if not self.is_available:
            raise ApiError("key_system_down")
        try:
            yield
        except sqlite3.Error as error:
            raise ApiError("key_system_down") from error

    def _own(self, call: Call[Any]) -> LiveKey:
        """Find the key of the path; another user's is as unknown as any."""
        live = self._registry.keys.get(call.params["api_key"])
        if live is None or live.record.address != call.address:
            raise ApiError("key_unknown", status=self._settings.unknown_key_status)
        return live

    def _slots(self, call: Call[Any]) -> list[LiveKey]:
        keys = self._registry.keys_of(call.address)
        return [
            live for live in keys if self._settings.revoked_use_slots or self._is_live(live.record, call.now)
        ]

    def _is_live(self, key: Key, now: Moment) -> bool:
        return not key.is_revoked and not key.is_expired(now.server_ms)

    def _check_prerequisites(self, address: str, permissions: tuple[str, ...]) -> None:
        user = self._registry.users[address]
        if not user.onboarded:
            raise ApiError("not_onboarded")
        if "trade" in permissions and not user.traded:
            raise ApiError("not_traded")

    def _revoke(self, keys: list[Key], call: Call[Any]) -> None:
        action = self._settings.audit_revoked
        entries = [
            _audit_entry(key, action, f"API key '{key.label}' revoked", call.now, call.client_ip)
            for key in keys
        ]
        self._registry.save_keys([replace(key, is_revoked=True) for key in keys], entries)

    def _expires_at(self, key: Key) -> str | None:
        return NO_EXPIRY[self._settings.no_expiry] if key.expires_ms is None else iso(key.expires_ms)

    def _record(self, live: LiveKey, now: Moment) -> KeyRecord:
        key = live.record
        is_expired = key.is_expired(now.server_ms) and not self._settings.expired_is_active
        return KeyRecord(
            api_key=key.api_key,
            label=key.label,
            permissions=list(key.permissions),
            ip_whitelist=list(key.ip_whitelist),
            created_at=iso(key.created_ms),
            expires_at=self._expires_at(key),
            last_used_at=None if live.last_used_ms is None else iso(live.last_used_ms),
            is_active=not key.is_revoked and not is_expired,
        )

    def _created(self, key: Key) -> CreatedKey:
        return CreatedKey(
            api_key=key.api_key,
            api_secret=key.secret,
            label=key.label,
            permissions=list(key.permissions),
            ip_whitelist=list(key.ip_whitelist),
            created_at=iso(key.created_ms),
            expires_at=self._expires_at(key),
            message=SAVE_IT,
        )


def _audit_entry(key: Key, action: str, details: str, now: Moment, client_ip: str) -> AuditEntry:
    return AuditEntry(0, key.api_key, action, client_ip, now.server_ms, details)


def _audit_line(entry: AuditEntry) -> AuditLine:
    return AuditLine(
        action=entry.action,
        ip_address=entry.ip_address,
        created_at=iso(entry.created_ms),
        details=entry.details,
    )
