"""The decision after each attempt, as a table: pass the reply on, resend, or give up.

The rule: an order is resent only if the exchange stated that it did not execute, or if no byte of it left the
gateway. In doubt, the outcome is `unknown`, and nothing is resent.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sealgate.exchange.failure import Failure, FailureKind
from sealgate.machine.findings import sentence
from sealgate.orders.outcome import Conclusion
from sealgate.venues.replies import Means, Verdict

RATE_LIMITED = "rate_limited"  # the reason of a resend after a rate limit
TIMESTAMP = "timestamp"  # the reason of a resend after a resync of the clock
NONCE = "nonce"  # the reason of a resend with a higher nonce than the refused one
RESENDS = 2  # after failures of one kind: an exchange that fails three times in a row is down
_BACKOFF_S = 0.1
# Each member is looked up only once: the pipeline uses them after every reply.
_DONE: Final = Means.DONE
_TIMESTAMP: Final = Means.TIMESTAMP
_NONCE: Final = Means.NONCE
_UNKNOWN: Final = Means.UNKNOWN
_DID: Final = Conclusion.DONE
_DID_NOT: Final = Conclusion.REFUSED
_MAY_HAVE: Final = Conclusion.UNKNOWN


class Replay(StrEnum):
    """The requests that are resent after a 429 (`limits.replay_429`)."""

    ALL = "all"
    READS = "reads"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Deliver:
    """Pass the reply on."""

    conclusion: Conclusion


@dataclass(frozen=True, slots=True)
class Again:
    """Resend, with a new timestamp and signature, not before `after_s`.

    `reason` is a label; `conclusion` holds if the deadline passes first.
    """

    reason: str
    conclusion: Conclusion
    after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Reply with one of the gateway's own reasons."""

    slug: str
    detail: str
    conclusion: Conclusion


_DELIVER = {conclusion: Deliver(conclusion) for conclusion in Conclusion}

# After a failure: may an order be resent, may a read; else the reason, and what the bot may conclude.
_FAILURES: dict[FailureKind, tuple[bool, bool, str, Conclusion]] = {
    # No byte left the gateway. With FULL, the request has already waited for a connection.
    FailureKind.FULL: (False, False, "queue_full", Conclusion.NOT_SENT),
    FailureKind.UNREACHABLE: (True, True, "upstream_unreachable", Conclusion.NOT_SENT),
    FailureKind.PROXY: (True, True, "upstream_unreachable", Conclusion.NOT_SENT),
    FailureKind.CONNECT_TIMEOUT: (True, True, "upstream_timeout", Conclusion.NOT_SENT),
    # The exchange may have executed it: only a read may be resent, while there is time.
    FailureKind.LOST: (False, True, "upstream_broken", Conclusion.UNKNOWN),
    FailureKind.LATE: (False, False, "upstream_timeout", Conclusion.UNKNOWN),
}


def after_failure(failure: Failure, *, is_read: bool, resends: int, time_left_s: float) -> Again | GiveUp:
    """Decide after an attempt without a complete reply; `resends` counts those after such failures."""
    may_order, may_read, slug, conclusion = _FAILURES[failure.kind]
    may_repeat = may_read if is_read else may_order
    after_s = _BACKOFF_S * 2**resends
    if may_repeat and resends < RESENDS and after_s < time_left_s:
        return Again(failure.kind.value, conclusion, after_s)
    is_ours = failure.is_own or failure.kind is FailureKind.PROXY
    told = failure.detail if is_ours else f"the exchange gave no answer: {failure.detail}"
    return GiveUp(slug, sentence(told), conclusion)


def after_reply(verdict: Verdict, *, is_read: bool, replay: str, resends: Collection[str]) -> Deliver | Again:
    """Decide after a complete reply; `resends` are the reasons of the resends so far.

    In all three cases of a resend the exchange has refused the request, so it did not execute.
    """
    # 1. Refused because of the rate limit: resend as often as the deadline and the setting allow.
    if verdict.is_limited and (replay == Replay.ALL or (replay == Replay.READS and is_read)):
        return Again(RATE_LIMITED, Conclusion.REFUSED)
    # 2. Refused because of its timestamp, and 3. of its nonce: resend once each, with a new one.
    if verdict.means is _TIMESTAMP and TIMESTAMP not in resends:
        return Again(TIMESTAMP, Conclusion.REFUSED)
    if verdict.means is _NONCE and NONCE not in resends:
        return Again(NONCE, Conclusion.REFUSED)
    return _DELIVER[conclude(verdict, is_read=is_read)]


def conclude(verdict: Verdict, *, is_read: bool) -> Conclusion:
    """Return what a reply lets the bot conclude. A read executes nothing, so it is never `unknown`."""
    if verdict.means is _DONE:
        return _DID
    if verdict.means is _UNKNOWN and not is_read:
        return _MAY_HAVE
    return _DID_NOT
