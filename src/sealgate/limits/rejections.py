"""Why a claim is not sent, in words: that it cannot wait so long, and which pool it would wait for."""

import math

from sealgate.limits.claims import LONGEST_DEADLINE_MS, ONLY, Claim, Rejection
from sealgate.limits.line_sizes import MOST_DIFFERENT
from sealgate.limits.pool import SHUT_OUT, Pool, label_of


def paused(claim: Claim, pool: Pool, pause_s: float) -> Rejection:
    """Reject a claim that cannot wait for the end of a pause; say who chose its length."""
    gate, words = pool.gate, pool.refusal.words
    which, done, refused, does = _pool(pool), "closed", f"requests of {_pool(pool)}", "closes"
    if pool.name in ONLY:
        which, done, refused, does = "this key", "paused", "this key", "pauses"
    elif pool.name == SHUT_OUT:
        which, done, refused, does = "this key or address", "shut out", "this key or address", "pauses"
    if gate.is_stated and pool.refusal.is_documented:
        what = f"{which[0].upper()}{which[1:]} is {done}, as the exchange documents it,"
    elif gate.is_stated:
        what = f"The exchange {done} {which}"
    elif not gate.in_a_row:
        what = f"{which[0].upper()}{which[1:]} is {done}"
    else:
        times = f" {gate.in_a_row} times in a row" if gate.in_a_row > 1 else ""
        what = f"The exchange refused {refused}{times}; the gateway {does} it"
    detail = f"{what} for longer than this request may wait."
    detail += f' The exchange says: "{words}".' if words else ""
    return Rejection(claim, "rate_limited", detail, pause_s)


def too_long(claim: Claim, pool: Pool, wait_s: float, slot_s: float) -> Rejection:
    """Reject a claim whose turn comes too late; say which deadline would do."""
    enough_ms = math.ceil((wait_s + slot_s) * 10) * 100
    limit = "the limit of this key" if pool.name in ONLY else _pool(pool)
    detail = f"{limit[0].upper()}{limit[1:]} has no room before this deadline"
    detail += f"; X-Gateway-Deadline-Ms: {enough_ms} would do." if enough_ms <= LONGEST_DEADLINE_MS else "."
    return Rejection(claim, "deadline_exceeded", detail, wait_s)


def spent(claim: Claim, pool: Pool, spent_s: float) -> Rejection:
    """Reject a claim that cannot wait until the exchange's count begins anew."""
    limit = "its limit" if pool.name in ONLY else _pool(pool)
    detail = f"The exchange says that {limit} is used up for longer than this request may wait."
    return Rejection(claim, "rate_limited", detail, spent_s)


def full(claim: Claim, wait_s: float) -> Rejection:
    """Reject a claim of a bot that has its part of a full queue."""
    detail = "Too many requests wait for this key (limits.queue)."
    return Rejection(claim, "queue_full", detail, wait_s)


def spread(claim: Claim, wait_s: float) -> Rejection:
    """Reject a claim of a bot that waits for too many pools."""
    detail = f"Requests of this bot wait for {MOST_DIFFERENT} different pools; one more is too much."
    return Rejection(claim, "queue_full", detail, wait_s)


def late(claim: Claim) -> Rejection:
    """Reject a claim that has waited until its deadline."""
    return Rejection(claim, "deadline_exceeded", "The deadline of this request passed before its turn came.")


def _pool(pool: Pool) -> str:
    return f"the pool {label_of(pool.place)}"
