"""The default venue against the errors of spec.md, each with the words that stand there."""

import json

import pytest

from rig.verdicts import ERRORS, judged
from sealgate.exchange.failure import Failure, FailureKind
from sealgate.venues.replies import Whose, doc_link

# spec.md, Errors. What stands for a value there has one here.
SPEC = [
    (400, "Invalid permission value", "invalid_permission"),
    (400, "Invalid IP or CIDR", "invalid_ip"),
    (400, "Maximum key limit reached (10 per user)", "key_limit"),
    (403, "Passkey step-up failed", "passkey_failed"),
    (403, "Trading handshake not completed", "not_traded"),
    (503, "API key system not available", "key_system_down"),
    (401, "Missing API key auth headers", "headers_missing"),
    (401, "Invalid API key", "key_invalid"),
    (401, "Invalid HMAC signature", "signature_invalid"),
    (401, "Invalid signature", "signature_invalid"),
    (401, "Timestamp outside recv_window (5000ms). Server time: 1790000000000", "timestamp_outside"),
    (401, "Invalid timestamp", "timestamp_invalid"),
    (401, "Invalid or expired session token", "session_invalid"),
    (403, "Address mismatch", "address_mismatch"),
    (403, "API key lacks 'read' permission", "permission_missing"),
    (403, "API key lacks 'trade' permission", "permission_missing"),
    (403, "IP 203.0.113.7 not in API key whitelist", "ip_refused"),
    (429, "Rate limit exceeded", "rate_limited"),
    (429, "Handshake rate limit", "handshake_limited"),
    (400, "Price must be divisible by 0.5", "off_tick"),
    (400, "Order must have minimum value of $10", "below_minimum"),
    (400, "Order has invalid size", "size_invalid"),
    (400, "Order has invalid price", "price_invalid"),
    (400, "Symbol 'XYZ' is not supported", "symbol_unsupported"),
    (400, "Trading is halted", "trading_halted"),
    (400, "Insufficient margin", "margin_short"),
    (400, "Insufficient margin to place order", "margin_short"),
    (400, "Order was never placed, already canceled, or filled", "order_gone"),
    (409, "NEEDS_TRANSFER", "needs_transfer"),
    (449, "NEEDS_TRANSFER", "needs_transfer"),
    (404, "No open position found", "no_position"),
    (400, "Size exceeds position", "size_exceeds"),
    (400, "Leverage exceeds maximum", "leverage_exceeds"),
    (400, "Cross margin is not allowed", "cross_refused"),
    (400, "Below minimum deposit", "deposit_small"),
    (400, "Insufficient balance for withdrawal", "balance_short"),
    (400, "Invalid withdrawal signature", "withdrawal_signature"),
    (400, "Spot symbol not found", "spot_unknown"),
    (400, "Insufficient spot balance", "spot_short"),
    (422, "Validation error", "validation"),
    (500, "Internal server error", "internal"),
]
OTHERS = [
    (400, b"something new", "other_4xx"),
    (418, b"", "other_4xx"),
    (400, b'{"detail":"Invalid CIDR"}', "invalid_ip"),
    (502, b"<html>", "other_5xx"),
    (429, b"", "rate_limited"),
    (451, b"", "country_refused"),
    (403, b"<!doctype html>", "firewall"),
    (422, b'{"detail":[{"msg":"x"}]}', "validation"),
    (500, b"\x1f\x8b", "internal"),
    (401, b"Rate limit exceeded", "other_4xx"),
    (
        400,
        b'{"detail":"%b Trading is halted"}' % (b"x" * 65_505),
        "trading_halted",
    ),  # the longest that is read
    (400, b'{"detail":"%b Trading is halted"}' % (b"x" * 65_506), "other_4xx"),
    (401, b"Invalid API key", "other_4xx"),
    (401, b'"Invalid API key"', "other_4xx"),
    (401, b'{"detail":{"msg":"Invalid API key"}}', "other_4xx"),
    (401, b'{"detail":"Invalid HMAC signature","path":"/Invalid API key"}', "signature_invalid"),
    (400, b'{"detail":[{"msg":"x","input":"Trading is halted"}]}', "other_4xx"),
    (400, b'{"detail":[{"msg":"Invalid IP"},{"msg":"x"}]}', "invalid_ip"),
]


@pytest.mark.parametrize(("status", "detail", "kind"), SPEC)
def test_each_error_of_the_specification(status: int, detail: str, kind: str) -> None:
    body = json.dumps({"detail": detail, "timestamp": "2026-01-31T12:00:00Z"}).encode()
    assert judged(status, body).kind == kind
    assert judged(status, json.dumps({"detail": detail.upper()}).encode()).kind == kind


@pytest.mark.parametrize(("status", "body", "kind"), OTHERS)
def test_what_it_does_not_list(status: int, body: bytes, kind: str) -> None:
    assert judged(status, body).kind == kind


def test_every_kind_can_come_and_has_advice() -> None:
    found = {kind for _, _, kind in SPEC} | {kind for _, _, kind in OTHERS}
    unanswered = {fate.value for fate in FailureKind if not Failure(fate, "").is_own}
    assert found | unanswered == set(ERRORS)
    for kind, row in ERRORS.items():
        assert row.verdict.advice.endswith(".")
        assert all(words == words.lower() for words in row.words)
        assert doc_link(row.verdict) == f"docs/errors.md#{kind}"


def test_where_to_look_first() -> None:
    assert [*Whose] == ["bot", "setup", "upstream"]
    looked_at = [ERRORS[kind].verdict.whose for kind in ("off_tick", "signature_invalid", "internal")]
    assert looked_at == [Whose.BOT, Whose.SETUP, Whose.UPSTREAM]
