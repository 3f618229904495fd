"""The error catalogue: every row of spec.md's Errors part, and our own rows where it shows none.

A row is named by its slug, which is also the verdict in the journal. `ApiError` carries a row to the one
place that turns it into a reply.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """One row: the HTTP status, and the `detail` text with the values it names."""

    status: int
    detail: str


CATALOGUE: Mapping[str, Row] = MappingProxyType(
    {
        # Key management (messages not shown, conditions stated)
        "invalid_permission": Row(400, "Invalid permission: {value}. Use 'read' or 'trade'"),
        "invalid_ip": Row(400, "Invalid IP or CIDR: {value}"),
        "key_limit": Row(400, "Maximum key limit reached (10 per user)"),
        "passkey_failed": Row(403, "Passkey step-up failed"),
        "not_onboarded": Row(403, "Onboarding not completed"),
        "not_traded": Row(403, "Trading handshake not completed"),
        "key_system_down": Row(503, "API key system not available"),
        "key_unknown": Row(404, "API key not found"),
        # Authentication
        "headers_missing": Row(401, "Missing API key auth headers"),
        "key_invalid": Row(401, "Invalid API key"),
        "signature_invalid": Row(401, "Invalid HMAC signature"),
        "timestamp_outside": Row(
            401, "Timestamp outside recv_window ({recv_window}ms). Server time: {server_ms}"
        ),
        "timestamp_invalid": Row(401, "Invalid timestamp"),
        "session_invalid": Row(401, "Invalid or expired session token"),
        "address_mismatch": Row(403, "Address mismatch"),
        "permission_missing": Row(403, "API key lacks '{permission}' permission"),
        "ip_refused": Row(403, "IP {client_ip} not in API key whitelist"),
        # Rate limiting
        "rate_limited": Row(429, "Rate limit exceeded"),
        "handshake_limited": Row(429, "Handshake rate limit"),
        # Orders
        "off_tick": Row(400, "Price must be divisible by {tick}"),
        "below_minimum": Row(400, "Order must have minimum value of $10"),
        "size_invalid": Row(400, "Order has invalid size"),
        "price_invalid": Row(400, "Order has invalid price"),
        "symbol_unsupported": Row(400, "Symbol '{symbol}' is not supported"),
        "halted": Row(400, "Trading is halted"),
        "margin_short": Row(400, "Insufficient margin"),
        "margin_short_to_place": Row(400, "Insufficient margin to place order"),
        "order_gone": Row(400, "Order was never placed, already canceled, or filled"),
        "needs_transfer": Row(409, "NEEDS_TRANSFER"),
        # Positions
        "no_position": Row(404, "No open position found"),
        "size_exceeds": Row(400, "Size exceeds position"),
        # Leverage
        "leverage_exceeds": Row(400, "Leverage exceeds maximum"),
        "cross_refused": Row(400, "Cross margin is not allowed"),
        # Deposit and withdrawal
        "deposit_small": Row(400, "Below minimum deposit"),
        "balance_short": Row(400, "Insufficient balance for withdrawal"),
        "withdrawal_signature": Row(400, "Invalid withdrawal signature"),
        # Spot
        "spot_unknown": Row(400, "Spot symbol not found"),
        "spot_short": Row(400, "Insufficient spot balance"),
        # General
        "validation": Row(422, "Validation error"),
        "internal": Row(500, "Internal server error"),
        # Not shown: HTTP's own conditions
        "bad_http": Row(400, "Bad request"),
        "not_found": Row(404, "Not found"),
        "user_unknown": Row(404, "User not found"),
        "method_refused": Row(405, "Method not allowed"),
        "body_too_large": Row(413, "Request body too large"),
        "upgrade_required": Row(426, "This is a WebSocket"),
        "fault": Row(503, "Injected fault"),
    }
)


class ApiError(Exception):
    """The request is answered with a row of the catalogue.

    `values` fill the detail's placeholders; `status` and `headers` override and add to the row, `detail`
    replaces the text (422 has an array there).
    """

    def __init__(
        self,
        slug: str,
        *,
        status: int | None = None,
        headers: Mapping[str, str] | None = None,
        detail: list[dict[str, Any]] | None = None,
        **values: object,
    ) -> None:
        row = CATALOGUE[slug]
        self.slug = slug
        self.status = status or row.status
        self.headers = dict(headers or {})
        self.detail: str | list[dict[str, Any]] = row.detail.format(**values) if detail is None else detail
        super().__init__(self.detail)
