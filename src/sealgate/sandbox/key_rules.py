"""What a key may be: the rules on the fields of create and update. Pure; raises `ApiError`."""

from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any

from sealgate.sandbox.catalogue import ApiError
from sealgate.sandbox.clock import Moment
from sealgate.sandbox.models.keys import CreateKey, UpdateKey
from sealgate.sandbox.records import Key
from sealgate.sandbox.settings import SandboxSettings
from sealgate.sandbox.validation import invalid_field

AUDIT_MAX = 100
PERMISSIONS = ("read", "trade")
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class KeyOptions:
    """What a new key is to be."""

    label: str
    permissions: tuple[str, ...]
    ip_whitelist: tuple[str, ...]
    expires_ms: int | None


def new_key_options(body: CreateKey, now: Moment, settings: SandboxSettings) -> KeyOptions:
    """Check what a new key is to be."""
    return KeyOptions(
        checked_label(body.label, settings),
        checked_permissions(body.permissions),
        checked_whitelist(body.ip_whitelist),
        expiry_ms(body.expires_days, now, settings),
    )


def key_changes(body: UpdateKey, key: Key, settings: SandboxSettings) -> dict[str, Any]:
    """Give the fields that are in the body and differ from the key's, in the order of spec.md."""
    wanted: dict[str, Any] = {
        "label": checked_label(body.label, settings),
        "permissions": checked_permissions(body.permissions),
        "ip_whitelist": checked_whitelist(body.ip_whitelist),
    }
    given = [name for name in wanted if name in body.model_fields_set]
    return {name: wanted[name] for name in given if wanted[name] != getattr(key, name)}


def checked_label(label: str, settings: SandboxSettings) -> str:
    """Give the label, if it is not too long."""
    if len(label) > settings.label_max:
        raise invalid_field(
            "body", "label", message=f"String should have at most {settings.label_max} characters"
        )
    return label


def checked_permissions(permissions: list[str]) -> tuple[str, ...]:
    """Give the permissions in the order of spec.md, each once; 400 for any other value and for none."""
    for value in permissions:
        if value not in PERMISSIONS:
            raise ApiError("invalid_permission", value=repr(value))
    if not permissions:
        raise ApiError("invalid_permission", value="an empty list")
    return tuple(name for name in PERMISSIONS if name in permissions)


def checked_whitelist(blocks: list[str]) -> tuple[str, ...]:
    """Give the blocks as they came; 400 for one that is no IP address and no CIDR block."""
    for block in blocks:
        try:
            ip_network(block)
        except ValueError:
            raise ApiError("invalid_ip", value=repr(block)) from None
    return tuple(blocks)


def expiry_ms(days: int | None, now: Moment, settings: SandboxSettings) -> int | None:
    """Give the server time at which a key expires; None for never."""
    if days is None:
        return None
    if days > settings.expires_days_max:
        raise invalid_field(
            "body", "expires_days", message=f"Input should be at most {settings.expires_days_max}"
        )
    return now.server_ms + days * DAY_MS


def checked_audit_limit(limit: int, settings: SandboxSettings) -> int:
    """Refuse or cut down a limit above the maximum, by option."""
    if limit > AUDIT_MAX and settings.audit_over_max == "reject":
        raise invalid_field("query", "limit", message=f"Input should be at most {AUDIT_MAX}")
    return min(limit, AUDIT_MAX)
