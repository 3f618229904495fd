"""What follows from one attempt, as a table: pass the reply on, send again, or give up.

The rule behind it: an order is sent again only where the exchange said that it did not execute, or where no
byte of it left. When in doubt the outcome is `unknown`, and nothing is sent again.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from sealgate.exchange.failure import Failure, FailureKind
from sealgate.machine.findings import sentence
from sealgate.orders.outcome import Conclusion
from sealgate.venues.replies import Means, Verdict

RATE_LIMITED = "rate_limited"  # the reason of a resend after a refusal for the limit
TIMESTAMP = "timestamp"  # the reason of a resend after a resync of the clock
NONCE = "nonce"  # the reason of a resend with a nonce that is above the one that was refused
RESENDS = 2  # after a failure; what fails three times in a row is down
_BACKOFF_S = 0.1
_DONE, _TIMESTAMP, _NONCE, _UNKNOWN = Means.DONE, Means.TIMESTAMP, Means.NONCE, Means.UNKNOWN
_DID, _DID_NOT, _MAY_HAVE = Conclusion.DONE, Conclusion.REFUSED, Conclusion.UNKNOWN


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

    `reason` is a label; `conclusion` holds if the time runs out first.
    """

    reason: str
    conclusion: Conclusion
    after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class GiveUp:
    """Answer with a reason of our own."""

    slug: str
    detail: str
    conclusion: Conclusion


_DELIVER = {conclusion: Deliver(conclusion) for conclusion in Conclusion}

# (fate, is it a read) -> may it be sent again; else the reason and what the bot may conclude.
_FAILURES: dict[tuple[FailureKind, bool], tuple[bool, str, Conclusion]] = {
    (FailureKind.FULL, True): (False, "queue_full", Conclusion.NOT_SENT),
    (FailureKind.FULL, False): (False, "queue_full", Conclusion.NOT_SENT),
    (FailureKind.UNREACHABLE, True): (True, "upstream_unreachable", Conclusion.NOT_SENT),
    (FailureKind.UNREACHABLE, False): (True, "upstream_unreachable", Conclusion.NOT_SENT),
    (FailureKind.CONNECT_TIMEOUT, True): (True, "upstream_timeout", Conclusion.NOT_SENT),
    (FailureKind.CONNECT_TIMEOUT, False): (True, "upstream_timeout", Conclusion.NOT_SENT),
    (FailureKind.LOST, True): (True, "upstream_broken", Conclusion.UNKNOWN),
    (FailureKind.LOST, False): (False, "upstream_broken", Conclusion.UNKNOWN),
    (FailureKind.LATE, True): (False, "upstream_timeout", Conclusion.UNKNOWN),
    (FailureKind.LATE, False): (False, "upstream_timeout", Conclusion.UNKNOWN),
}


def after_failure(failure: Failure, *, is_read: bool, resends: int, time_left_s: float) -> Again | GiveUp:
    """Decide after an attempt without a whole reply; `resends` counts those for this same cause."""
    may_repeat, slug, conclusion = _FAILURES[failure.kind, is_read]
    after_s = _BACKOFF_S * 2**resends
    if may_repeat and resends < RESENDS and after_s < time_left_s:
        return Again(failure.kind.value, conclusion, after_s)
    told = failure.detail if failure.is_own else f"the exchange gave no answer: {failure.detail}"
    return GiveUp(slug, sentence(told), conclusion)


def after_reply(verdict: Verdict, *, is_read: bool, replay: str, resends: Collection[str]) -> Deliver | Again:
    """Decide after a whole reply; `resends` are the reasons of those that were. Each stamp is mended once."""
    if verdict.is_limited and _may_replay(replay, is_read=is_read):
        return Again(RATE_LIMITED, Conclusion.REFUSED)
    if verdict.means is _TIMESTAMP and TIMESTAMP not in resends:
        return Again(TIMESTAMP, Conclusion.REFUSED)
    if verdict.means is _NONCE and NONCE not in resends:
        return Again(NONCE, Conclusion.REFUSED)
    return _DELIVER[conclude(verdict, is_read=is_read)]


def conclude(verdict: Verdict, *, is_read: bool) -> Conclusion:
    """Return what a reply of the upstream lets the bot conclude: a read executes nothing."""
    if verdict.means is _DONE:
        return _DID
    if verdict.means is _UNKNOWN and not is_read:
        return _MAY_HAVE
    return _DID_NOT


def _may_replay(replay: str, *, is_read: bool) -> bool:
    return replay == Replay.ALL or (replay == Replay.READS and is_read)
