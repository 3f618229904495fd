"""What the exchange says of API keys: its list of them, and the log of what was done with one.

Which value `expires_at` has for a key without expiry is not shown (spec.md, Resources), so whatever is no
time of our days is taken for none.
"""

import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import NamedTuple

from sealgate.venues.server_time import is_plausible

DAY_S = 86_400.0
_WARN_DAYS = 7


class KeyState(Enum):
    """What a key is, by its record."""

    GOOD = "good"
    ENDS_SOON = "ends soon"  # somebody should see to a new one
    ENDED = "ended"
    INACTIVE = "inactive"


@dataclass(frozen=True, slots=True)
class KeyRecord:
    """One key's record. `expires_at` is epoch seconds, None where it has no end."""

    expires_at: float | None
    is_active: bool

    def state(self, server_now: float) -> KeyState:
        """Return what it is at `server_now`, epoch seconds. One whose time is over is no more than that."""
        days_left = self.days_left(server_now)
        if days_left <= 0:
            return KeyState.ENDED
        if not self.is_active:
            return KeyState.INACTIVE
        return KeyState.ENDS_SOON if days_left < _WARN_DAYS else KeyState.GOOD

    def days_left(self, server_now: float) -> float:
        """Return how many days it has from `server_now`, epoch seconds: infinite where it has no end."""
        return math.inf if self.expires_at is None else (self.expires_at - server_now) / DAY_S


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
    key = find_key(body, api_key)
    return None if key is None else key.record


def find_key(body: bytes, api_key: str) -> ListedKey | None:
    """Return all that the reply to `GET /api-keys` says of a key, None where it is not in it."""
    return next((key for key in list_keys(body) or () if key.api_key == api_key), None)


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
