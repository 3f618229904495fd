"""The exchange's errors, and those of the way to it: what each is called, and what a person can do about it.

The kind is a slug: metrics are labelled with it, and docs/errors.md has a line of that name. A reply is
matched by its status and by words of its `detail` alone; where neither is known it is `other_4xx` or
`other_5xx`, so that the number of kinds is bounded whatever the exchange says.

Source: spec.md, Errors. NEEDS_TRANSFER has two statuses there, and both are taken.
"""

from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import NamedTuple

from sealgate.core.error_words import detail_of
from sealgate.errors import REASONS


class Whose(StrEnum):
    """Where to look first."""

    BOT = "bot"  # what it asked for
    SETUP = "setup"  # key, secret, clock, signing settings
    UPSTREAM = "upstream"  # the exchange, and the way to it


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """One kind: the statuses it comes with, lower-case words of its `detail` (any of them), the advice.

    Without words the status alone decides; without a status no reply is meant, but that none came.
    """

    statuses: tuple[int, ...]
    words: tuple[str, ...]
    whose: Whose
    advice: str


class UpstreamError(NamedTuple):
    """One error that an attempt met, at `at` by the clock of `now`; `retry_after_s` is what a 429 stated.

    `clock_error_s` is how far off the exchange's clock could be known when the reply came, None without a
    synced clock; `step_s` is by how much that clock was found to have moved since the request was sent.
    """

    kind: str
    at: float
    retry_after_s: float | None = None
    clock_error_s: float | None = None
    step_s: float | None = None


_BOT, _SETUP, _UPSTREAM = Whose.BOT, Whose.SETUP, Whose.UPSTREAM
_IN_APP = "It happens in the app alone; bots cannot do it."

CATALOGUE: dict[str, ErrorRow] = {
    # Key management
    "invalid_permission": ErrorRow((400,), ("invalid permission",), _BOT, _IN_APP),
    "invalid_ip": ErrorRow((400,), ("invalid ip", "invalid cidr"), _BOT, _IN_APP),
    "key_limit": ErrorRow((400,), ("maximum key limit",), _BOT, "Revoke a key in the app: there may be 10."),
    "passkey_failed": ErrorRow((403,), ("passkey",), _BOT, _IN_APP),
    "not_traded": ErrorRow((403,), ("handshake not completed",), _SETUP, "Place one trade in the app first."),
    "key_system_down": ErrorRow((503,), ("api key system",), _UPSTREAM, "Wait; the exchange says so itself."),
    # Authentication
    "headers_missing": ErrorRow(
        (401,), ("missing api key",), _SETUP, "Set `signing.header_prefix` as the exchange documents it."
    ),
    "key_invalid": ErrorRow(
        (401,),
        ("invalid api key",),
        _SETUP,
        "Compare `api_key` with the app; a revoked key never comes back.",
    ),
    "signature_invalid": ErrorRow(
        (401,),
        ("invalid hmac signature", "invalid signature"),
        _SETUP,
        "Check that the secret is this key's. Then `sealgate discover` finds the `[signing]` settings.",
    ),
    "timestamp_outside": ErrorRow(
        (401,),
        ("timestamp outside recv_window",),
        _SETUP,
        "The gateway syncs and sends once more. If it stays, set `recv_window_ms` as the exchange has it.",
    ),
    "timestamp_invalid": ErrorRow(
        (401,),
        ("invalid timestamp",),
        _SETUP,
        "The gateway syncs and sends once more. If it stays, look at the clock offset and at `clock.path`.",
    ),
    "session_invalid": ErrorRow(
        (401,), ("session token",), _SETUP, "Store a new session token where `session` points, then reload."
    ),
    "address_mismatch": ErrorRow(
        (403,), ("address mismatch",), _BOT, "Use the address of the user whose key this is."
    ),
    "permission_missing": ErrorRow(
        (403,), ("api key lacks",), _SETUP, "Give the key this permission in the app, or use another key."
    ),
    "ip_refused": ErrorRow(
        (403,), ("not in api key whitelist",), _SETUP, "Add this machine's public address in the app."
    ),
    # Rate limiting
    "handshake_limited": ErrorRow((429,), ("handshake",), _BOT, "Wait 10 to 15 seconds."),
    "rate_limited": ErrorRow(
        (429,), (), _UPSTREAM, "Nothing to do: the key pauses, then requests go on below the learned limit."
    ),
    # Orders
    "off_tick": ErrorRow((400,), ("price must be divisible",), _BOT, "Round the price to the symbol's tick."),
    "below_minimum": ErrorRow((400,), ("order must have minimum value",), _BOT, "Order for $10 or more."),
    "size_invalid": ErrorRow(
        (400,), ("order has invalid size",), _BOT, "Round to the symbol's size decimals."
    ),
    "price_invalid": ErrorRow((400,), ("order has invalid price",), _BOT, "Send a price above zero."),
    "symbol_unsupported": ErrorRow((400,), ("is not supported",), _BOT, "Take a symbol from /symbols/list."),
    "trading_halted": ErrorRow(
        (400,), ("trading is halted",), _UPSTREAM, "Wait: the exchange halted the symbol."
    ),
    "margin_short": ErrorRow((400,), ("insufficient margin",), _BOT, "Order less, or add USDC."),
    "order_gone": ErrorRow(
        (400,), ("order was never placed",), _BOT, "After /order/modify only the new order ID is valid."
    ),
    "needs_transfer": ErrorRow(
        (409, 449), ("needs_transfer",), _BOT, "Make the one-time transfer for this market in the app."
    ),
    # Positions
    "no_position": ErrorRow(
        (404,), ("no open position",), _BOT, "There is nothing to close: read the positions."
    ),
    "size_exceeds": ErrorRow((400,), ("size exceeds position",), _BOT, "Leave out the size to close it all."),
    # Leverage
    "leverage_exceeds": ErrorRow(
        (400,), ("leverage exceeds maximum",), _BOT, "Stay below the symbol's maxLeverage."
    ),
    "cross_refused": ErrorRow((400,), ("cross margin is not allowed",), _BOT, "Send `is_cross` false."),
    # Deposit and withdrawal
    "deposit_small": ErrorRow((400,), ("below minimum deposit",), _BOT, _IN_APP),
    "balance_short": ErrorRow((400,), ("insufficient balance for withdrawal",), _BOT, _IN_APP),
    "withdrawal_signature": ErrorRow((400,), ("invalid withdrawal signature",), _BOT, _IN_APP),
    # Spot
    "spot_unknown": ErrorRow(
        (400,), ("spot symbol not found",), _BOT, "Take a pair from /spot/symbols/list."
    ),
    "spot_short": ErrorRow(
        (400,), ("insufficient spot balance",), _BOT, "Sell less, or buy the token first."
    ),
    # General
    "validation": ErrorRow((422,), (), _BOT, "Correct the fields that the reply's `detail` lists."),
    "internal": ErrorRow(
        (500,), (), _UPSTREAM, "Look an order up before you send it again: it may have been executed."
    ),
    "other_4xx": ErrorRow((), (), _BOT, "Read the reply: the exchange's documents do not list it."),
    "other_5xx": ErrorRow(
        (), (), _UPSTREAM, "Look an order up before you send it again: it may have been executed."
    ),
    # No reply at all; the slugs are those of core/attempts.py, FailureKind
    "unreachable": ErrorRow((), (), _UPSTREAM, REASONS["upstream_unreachable"].advice),
    "connect_timeout": ErrorRow(
        (), (), _UPSTREAM, "Check the network, and whether a firewall drops packets."
    ),
    "lost": ErrorRow(
        (), (), _UPSTREAM, "Look an order up before you send it again: it may have been executed."
    ),
    "late": ErrorRow(
        (), (), _UPSTREAM, "Raise `upstream.total_timeout` if it is slow often; look orders up."
    ),
}

# The refusals for the timestamp (spec.md, Authentication): what was refused so was certainly not executed.
TIMESTAMP_KINDS = frozenset({"timestamp_outside", "timestamp_invalid"})

_BY_STATUS: dict[int, list[tuple[str, tuple[str, ...]]]] = {}
for _slug, _row in CATALOGUE.items():
    for _status in _row.statuses:
        _BY_STATUS.setdefault(_status, []).append((_slug, _row.words))


def find_kind(status: int, body: bytes) -> str:
    """Return the kind of an error reply; `status` is 400 or above."""
    rows = _BY_STATUS.get(status, ())
    detail = detail_of(body).lower() if rows else ""
    for slug, words in rows:
        if not words or any(word in detail for word in words):
            return slug
    return "other_5xx" if status >= HTTPStatus.INTERNAL_SERVER_ERROR else "other_4xx"


def doc_link(kind: str) -> str:
    """Return where the documents speak of a kind."""
    return f"docs/errors.md#{kind}"
