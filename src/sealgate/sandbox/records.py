"""What the exchange remembers: frozen values, one table row each."""

from dataclasses import dataclass, field
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class User:
    """An account and the prerequisites it has met."""

    address: str
    onboarded: bool
    traded: bool


@dataclass(frozen=True, slots=True)
class Key:
    """An API key. The secret is kept because the HMAC needs it, and shown once, when it is made."""

    api_key: str
    address: str
    secret: str = field(repr=False)
    label: str
    permissions: tuple[str, ...]
    ip_whitelist: tuple[str, ...]
    created_ms: int
    expires_ms: int | None
    last_used_ms: int | None
    recv_window_ms: int
    is_revoked: bool

    def is_expired(self, server_ms: int) -> bool:
        """Whether expires_at has been reached."""
        return self.expires_ms is not None and server_ms >= self.expires_ms


@dataclass(frozen=True, slots=True)
class Session:
    """A session token, kept as its SHA-256 only."""

    token_sha256: str
    address: str
    expires_ms: int


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One lifecycle action on a key. `n` orders them; 0 until stored."""

    n: int
    api_key: str
    action: str
    ip_address: str
    created_ms: int
    details: str


@dataclass(frozen=True, slots=True)
class Order:
    """A resting order; `size` is what is left of it."""

    order_id: int
    address: str
    symbol: str
    is_buy: bool
    size: Decimal
    filled: Decimal
    price: Decimal
    client_order_id: str | None
    created_ms: int

    @property
    def notional(self) -> Decimal:
        """Its value at its own price."""
        return self.size * self.price


@dataclass(frozen=True, slots=True)
class Holdings:
    """All that a user has besides orders.

    By symbol or token: `positions` are signed sizes, `tokens` amounts, `margins` leverage and `is_cross`.
    """

    address: str
    usdc: Decimal
    has_transferred: bool
    next_nonce: int
    positions: tuple[tuple[str, str], ...]
    tokens: tuple[tuple[str, str], ...]
    margins: tuple[tuple[str, int, bool], ...]


@dataclass(frozen=True, slots=True)
class Price:
    """A price that was set."""

    symbol: str
    mark: Decimal
