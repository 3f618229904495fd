"""What the exchange's list of API keys says of one of them: until when it holds, and whether it is active.

Which value `expires_at` has for a key without expiry is not shown (spec.md, Resources), so whatever is no
time of our days is taken for none.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

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


def find_record(body: bytes, api_key: str) -> KeyRecord | None:
    """Return a key's record from the reply to `GET /api-keys`, None where it is not in it."""
    for record in _records(body):
        if record.get("api_key") == api_key:
            return KeyRecord(_seconds(record.get("expires_at")), record.get("is_active") is not False)
    return None


def _records(body: bytes) -> Iterator[dict[str, object]]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return
    keys = document.get("keys") if isinstance(document, dict) else None
    if isinstance(keys, list):
        yield from (record for record in keys if isinstance(record, dict))


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
