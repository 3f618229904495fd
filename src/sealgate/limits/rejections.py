"""Why a claim (a request in the queue) is not sent, in words: its deadline, a pause, or a full queue."""

import math

from sealgate.limits.claims import LONGEST_DEADLINE_MS, ONLY, Claim, Rejection
from sealgate.limits.line_sizes import MOST_DIFFERENT
from sealgate.limits.pool import SHUT_OUT, Pool, label_of


def paused(claim: Claim, pool: Pool, pause_s: float) -> Rejection:
    """Reject a claim that cannot wait for the end of a pause; say who set its length."""
    gate, words = pool.gate, pool.refusal.words
    which, done, refused, does = _pool(pool), "closed", f"requests of {_pool(pool)}", "closes"
    if pool.name in ONLY:
        which, done, refused, does = "this key", "paused", "this key", "pauses"
    elif pool.name == SHUT_OUT:
        which, done, refused, does = "this key or IP address", "blocked", "this key or IP address", "pauses"
    if gate.is_stated and pool.refusal.is_documented:
        what = f"{which[0].upper()}{which[1:]} is {done}, as the exchange documents it,"
    elif gate.is_stated:
        what = f"The exchange {done} {which}"
    elif not gate.in_a_row:
        what = f"{which[0].upper()}{which[1:]} is {done}"
    else:
        times = f" {gate.in_a_row} times in a row" if gate.in_a_row > 1 else ""
        what = f"The exchange refused {refused}{times}; the gateway {does} it"
    detail = f"{what} until after this request's deadline."
    detail += f' The exchange says: "{words}".' if words else ""
    return Rejection(claim, "rate_limited", detail, pause_s)


def too_long(claim: Claim, pool: Pool, wait_s: float, slot_s: float) -> Rejection:
    """Reject a claim whose turn would come too late; state a deadline that would be enough."""
    enough_ms = math.ceil((wait_s + slot_s) * 10) * 100
    limit = "rate limit of this key" if pool.name in ONLY else _pool(pool).removeprefix("the ")
    detail = f"The {limit} leaves no room for this request before its deadline"
    enough = f"; X-Gateway-Deadline-Ms: {enough_ms} would be enough."
    detail += enough if enough_ms <= LONGEST_DEADLINE_MS else "."
    return Rejection(claim, "deadline_exceeded", detail, wait_s)


def spent(claim: Claim, pool: Pool, spent_s: float) -> Rejection:
    """Reject a claim that cannot wait until the exchange's count restarts."""
    limit = "its rate limit" if pool.name in ONLY else _pool(pool)
    detail = f"The exchange reports that {limit} is used up until after this request's deadline."
    return Rejection(claim, "rate_limited", detail, spent_s)


def full(claim: Claim, wait_s: float) -> Rejection:
    """Reject a claim of a bot that already has its part of a full queue."""
    detail = "Too many requests are waiting for this key (limits.queue)."
    return Rejection(claim, "queue_full", detail, wait_s)


def spread(claim: Claim, wait_s: float) -> Rejection:
    """Reject a claim of a bot that waits for too many pools."""
    detail = f"Requests of this bot are waiting for {MOST_DIFFERENT} different pools, which is the maximum."
    return Rejection(claim, "queue_full", detail, wait_s)


def late(claim: Claim) -> Rejection:
    """Reject a claim that waited until its deadline."""
    return Rejection(claim, "deadline_exceeded", "The deadline of this request passed before its turn came.")


def _pool(pool: Pool) -> str:
    return f"the pool {label_of(pool.place)}"
