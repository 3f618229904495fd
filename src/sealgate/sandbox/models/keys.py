"""Key management: the tables of spec.md, "Resources and their fields" and "Endpoints"."""

from typing import Annotated, Any

from pydantic import Field

from sealgate.sandbox.models.wire import Wire

# Any string passes validation, because a wrong permission is a 400 of the catalogue and not a 422.
Permission = Annotated[str, Field(json_schema_extra={"enum": ["read", "trade"]})]
Permissions = Annotated[list[Permission], Field(max_length=8, json_schema_extra={"minItems": 1})]
IpBlock = Annotated[str, Field(description="an IP address or a CIDR block", max_length=64)]
Whitelist = Annotated[list[IpBlock], Field(max_length=100, description="empty: unrestricted")]
ExpiresAt = Annotated[Any, Field(description="ISO 8601 UTC", json_schema_extra={"type": ["string", "null"]})]


class CreateKey(Wire):
    """Body of POST /api-keys."""

    label: str = ""
    permissions: Permissions = Field(default_factory=lambda: ["read"])
    ip_whitelist: Whitelist = Field(default_factory=list)
    expires_days: Annotated[int, Field(ge=1, description="omit for no expiration")] | None = None


class UpdateKey(Wire):
    """Body of PATCH /api-keys/{api_key}; what is absent stays."""

    label: str = ""
    permissions: Permissions = Field(default_factory=lambda: ["read"])
    ip_whitelist: Whitelist = Field(default_factory=list)


class KeyRecord(Wire):
    """A key as the list shows it; never with its secret."""

    api_key: str
    label: str
    permissions: list[Permission]
    ip_whitelist: list[str]
    created_at: str
    expires_at: ExpiresAt
    last_used_at: str | None
    is_active: bool


class KeyList(Wire):
    """Reply of GET /api-keys."""

    keys: list[KeyRecord]


class CreatedKey(Wire):
    """Reply of POST /api-keys: the only one that ever holds the secret."""

    api_key: str
    api_secret: str
    label: str
    permissions: list[Permission]
    ip_whitelist: list[str]
    created_at: str
    expires_at: ExpiresAt
    message: str


class UpdatedKey(Wire):
    """Reply of PATCH /api-keys/{api_key}."""

    success: bool
    api_key: str
    updated_fields: list[str]


class RevokedKey(Wire):
    """Reply of DELETE /api-keys/{api_key}."""

    success: bool
    message: str


class RevokedKeys(Wire):
    """Reply of DELETE /api-keys/all."""

    success: bool
    revoked_count: int


class AuditQuery(Wire):
    """Query of GET /api-keys/{api_key}/audit."""

    limit: Annotated[int, Field(ge=1)] = 20


class AuditLine(Wire):
    """One audit entry."""

    action: str
    ip_address: str
    created_at: str
    details: str


class AuditLog(Wire):
    """Reply of GET /api-keys/{api_key}/audit."""

    api_key: str
    audit: list[AuditLine]
    count: int


class Handshake(Wire):
    """Body of the handshake (shape not shown in spec.md)."""

    user_address: Annotated[str, Field(min_length=1, max_length=100)]


class SessionGrant(Wire):
    """Reply of the handshake (shape not shown in spec.md)."""

    session_token: str
    user_address: str
    expires_at: str
