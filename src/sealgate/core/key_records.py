"""What the exchange says of API keys: its list of them, and the log of what was done with one.

Which value `expires_at` has for a key without expiry is not shown (spec.md, Resources), so whatever is no
time of our days is taken for none.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from sealgate.core.server_time import is_plausible

WARN_S = 7 * 86_400.0


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """One key's record. `expires_at` is epoch seconds, None where it has no end."""

    expires_at: float | None
    is_active: bool

    def has_ended(self, server_now: float) -> bool:
        """Whether its time is over; `server_now` is epoch seconds."""
        return self.expires_at is not None and self.expires_at <= server_now

    def ends_soon(self, server_now: float) -> bool:
        """Whether somebody should see to a new key; `server_now` is epoch seconds."""
        return self.expires_at is not None and self.expires_at - server_now < WARN_S


@dataclass(frozen=True, slots=True)
class ListedKey:
    """All that the list says of a key; times are epoch seconds, None where there is none."""

    api_key: str
    label: str
    permissions: tuple[str, ...]
    ip_whitelist: tuple[str, ...]
    created_at: float | None
    last_used_at: float | None
    record: KeyRecord


def find_record(body: bytes, api_key: str) -> KeyRecord | None:
    """Return a key's record from the reply to `GET /api-keys`, None where it is not in it."""
    return next((key.record for key in list_keys(body) or () if key.api_key == api_key), None)


def list_keys(body: bytes) -> list[ListedKey] | None:
    """Return the keys of a reply to `GET /api-keys`, None where it is no such reply."""
    keys = _member(body, "keys")
    if not isinstance(keys, list):
        return None
    return [_listed(entry) for entry in keys if isinstance(entry, dict)]


class AuditEntry(NamedTuple):
    """What was done with a key; `at` is epoch seconds, None where it is no time."""

    at: float | None
    action: str
    ip_address: str
    details: str


def list_audit(body: bytes) -> list[AuditEntry] | None:
    """Return the entries of a reply to `GET /api-keys/{api_key}/audit`, None where it is no such reply."""
    entries = _member(body, "audit")
    if not isinstance(entries, list):
        return None
    return [
        AuditEntry(
            _seconds(entry.get("created_at")),
            _text(entry.get("action")),
            _text(entry.get("ip_address")),
            _text(entry.get("details")),
        )
        for entry in entries
        if isinstance(entry, dict)
    ]


def _listed(entry: dict[str, object]) -> ListedKey:
    return ListedKey(
        api_key=_text(entry.get("api_key")),
        label=_text(entry.get("label")),
        permissions=_texts(entry.get("permissions")),
        ip_whitelist=_texts(entry.get("ip_whitelist")),
        created_at=_seconds(entry.get("created_at")),
        last_used_at=_seconds(entry.get("last_used_at")),
        record=KeyRecord(_seconds(entry.get("expires_at")), entry.get("is_active") is not False),
    )


def _member(body: bytes, name: str) -> object:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return document.get(name) if isinstance(document, dict) else None


def _text(value: object) -> str:
    """Return a text that a terminal takes as one: without control characters."""
    if not isinstance(value, str):
        return ""
    return "".join(letter if letter.isprintable() else " " for letter in value)


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(_text, value)) if isinstance(value, list) else ()


def _seconds(value: object) -> float | None:
    """Return the epoch seconds of an ISO 8601 time, in UTC where it names no zone."""
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None
    return seconds if is_plausible(seconds) else None
