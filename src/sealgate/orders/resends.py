"""What follows from one attempt, as a table: pass the reply on, send again, or give up.

The rule behind it: an order is sent again only if the exchange said that it did not execute, or if no byte of
it left the gateway. When in doubt the outcome is `unknown`, and nothing is sent again.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from sealgate.exchange.failure import Failure, FailureKind
from sealgate.machine.findings import sentence
from sealgate.orders.outcome import Conclusion
from sealgate.venues.replies import Means, Verdict

RATE_LIMITED = "rate_limited"  # the reason of a resend after a refusal for the limit
TIMESTAMP = "timestamp"  # the reason of a resend after a resync of the clock
NONCE = "nonce"  # the reason of a resend with a nonce above the refused one
RESENDS = 2  # after failures of one kind: an exchange that fails three times in a row is down
_BACKOFF_S = 0.1
# Each member is looked up once: the pipeline asks after every reply.
_DONE: Final = Means.DONE
_TIMESTAMP: Final = Means.TIMESTAMP
_NONCE: Final = Means.NONCE
_UNKNOWN: Final = Means.UNKNOWN
_DID: Final = Conclusion.DONE
_DID_NOT: Final = Conclusion.REFUSED
_MAY_HAVE: Final = Conclusion.UNKNOWN


class Replay(StrEnum):
    """What is sent again after a 429 (`limits.replay_429`)."""

    ALL = "all"
    READS = "reads"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Deliver:
    """Pass the reply on."""

    conclusion: Conclusion


@dataclass(frozen=True, slots=True)
class Again:
    """Send once more, stamped and signed anew, not before `after_s`.

    `reason` is a label; `conclusion` holds if the deadline passes first.
    """

    reason: str
    conclusion: Conclusion
    after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Answer with one of the gateway's own reasons."""

    slug: str
    detail: str
    conclusion: Conclusion


_DELIVER = {conclusion: Deliver(conclusion) for conclusion in Conclusion}

# After a failure: may an order be sent again, and may a read; else the reason, and what the bot may conclude.
_FAILURES: dict[FailureKind, tuple[bool, bool, str, Conclusion]] = {
    # No byte left the gateway. With FULL, it has already waited for one of the connections.
    FailureKind.FULL: (False, False, "queue_full", Conclusion.NOT_SENT),
    FailureKind.UNREACHABLE: (True, True, "upstream_unreachable", Conclusion.NOT_SENT),
    FailureKind.PROXY: (True, True, "upstream_unreachable", Conclusion.NOT_SENT),
    FailureKind.CONNECT_TIMEOUT: (True, True, "upstream_timeout", Conclusion.NOT_SENT),
    # The exchange may have executed it: only a read may be repeated, while there is time.
    FailureKind.LOST: (False, True, "upstream_broken", Conclusion.UNKNOWN),
    FailureKind.LATE: (False, False, "upstream_timeout", Conclusion.UNKNOWN),
}


def after_failure(failure: Failure, *, is_read: bool, resends: int, time_left_s: float) -> Again | GiveUp:
    """Decide after an attempt without a whole reply; `resends` counts those for failures of this kind."""
    may_order, may_read, slug, conclusion = _FAILURES[failure.kind]
    may_repeat = may_read if is_read else may_order
    after_s = _BACKOFF_S * 2**resends
    if may_repeat and resends < RESENDS and after_s < time_left_s:
        return Again(failure.kind.value, conclusion, after_s)
    is_ours = failure.is_own or failure.kind is FailureKind.PROXY
    told = failure.detail if is_ours else f"the exchange gave no answer: {failure.detail}"
    return GiveUp(slug, sentence(told), conclusion)


def after_reply(verdict: Verdict, *, is_read: bool, replay: str, resends: Collection[str]) -> Deliver | Again:
    """Decide after a whole reply; `resends` are the reasons of the resends so far.

    In all three cases of a resend the exchange has refused the request, so it did not execute.
    """
    # 1. Refused for the limit: as often as its deadline allows, if the setting does.
    if verdict.is_limited and (replay == Replay.ALL or (replay == Replay.READS and is_read)):
        return Again(RATE_LIMITED, Conclusion.REFUSED)
    # 2. Refused for its timestamp, and 3. for its nonce: once each, with a new one.
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
