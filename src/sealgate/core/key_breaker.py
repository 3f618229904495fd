"""The health of an API key: what the exchange says of it, and when a refused one is tried again.

A key that the exchange calls invalid, or that may not be used from this address, is disabled: each further
request would only be refused too, and hammering with a revoked key looks like an attack. It is tried again at
growing distances, for ever, because a key may come back (a whitelist that was corrected, an exchange that
erred). One request at a time is the trial; while it is under way the others are still refused.

A signature that is refused disables nothing: what was asked for may be the cause. Several in a row, with none
that was taken among them, or one of the gateway's own read, are trouble with the secret or `[signing]`, which
people must learn of.

What a reply means is its verdict (core/venues/replies.py). A 401 that no rule knows speaks against a key that
is tried, and against none that is in use.
"""

from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from http import HTTPStatus

from sealgate.core.venues.replies import Means, Verdict

FIRST_GAP_S = 5.0
LONGEST_GAP_S = 600.0
MANY_MISMATCHES = 3

# Refusals that may be given before anybody has looked at the key.
_UNTELLING = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})


class KeyFault(StrEnum):
    """Why the exchange does not take a key, in words."""

    INVALID = "the exchange calls it invalid"
    ADDRESS = "this machine's address is not in its whitelist"


_FAULTS = {Means.KEY: KeyFault.INVALID, Means.ADDRESS: KeyFault.ADDRESS}
_AGAINST = frozenset({Means.KEY, Means.ADDRESS, Means.SIGNATURE})


def is_mismatch(verdict: Verdict) -> bool:
    """Ask whether a reply to a signed request refuses its signature, or does not find it."""
    return verdict.means is Means.SIGNATURE


def key_fault(verdict: Verdict) -> KeyFault | None:
    """Return what a reply to a signed request says against its key, None where it says nothing."""
    return _FAULTS.get(verdict.means)


class KeyVerdict(Enum):
    """What a reply to a signed read says of a key and its secret before they are taken into use."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNSURE = "unsure"


def judge_key(status: int, verdict: Verdict) -> KeyVerdict:
    """Judge key and secret by the reply to a signed read.

    A 401 that no rule knows speaks against them; any other error that is not about them says nothing.
    """
    if verdict.means is Means.DONE:
        return KeyVerdict.ACCEPTED
    is_unknown_401 = status == HTTPStatus.UNAUTHORIZED and verdict.means is Means.REFUSED
    is_against = verdict.means in _AGAINST or is_unknown_401
    return KeyVerdict.REFUSED if is_against else KeyVerdict.UNSURE


@dataclass(frozen=True, slots=True)
class BreakerState:
    """One key's state. `now` and all times are seconds on one clock that nobody sets.

    `fault` is None while the key is in use; `since` is when that began, or when it was disabled. `trial_at`
    is when a trial may go. `failures` counts the refusals in a row; a key that comes back keeps them for as
    long as its last gap was, so that one that comes and goes is not hammered either. `mismatches` counts
    the signatures that were refused since one was taken; `is_confirmed`, that one of them was the gateway's
    own read, in which nothing else can be wrong. `is_proven`: a request was answered as only one whose key
    and secret are good is; one that is refused may not have been looked at that far. A fault ends it.
    `advice` is what to do about the mismatches.
    """

    fault: KeyFault | None = None
    since: float = 0.0
    trial_at: float = 0.0
    failures: int = 0
    mismatches: int = 0
    is_confirmed: bool = False
    is_proven: bool = False
    advice: str = ""

    @property
    def is_unknown(self) -> bool:
        """Whether nothing has shown yet that the key is good, nor that it is at fault."""
        return self.fault is None and not self.is_proven

    @property
    def trouble(self) -> str | None:
        """What is wrong with a key that is in use, in words."""
        if self.fault is not None or not (self.is_confirmed or self.mismatches >= MANY_MISMATCHES):
            return None
        which = "signature" if self.mismatches == 1 else f"{self.mismatches} signatures"
        return f"the exchange refused its last {which}"

    @property
    def gap_s(self) -> float:
        """The distance from one trial to the next."""
        doublings = min(max(0, self.failures - 1), 16)
        return min(LONGEST_GAP_S, FIRST_GAP_S * 2.0**doublings)

    def may_go(self, now: float) -> bool:
        """Whether a request with this key may be sent; where it is disabled, that one is the trial."""
        return self.fault is None or now >= self.trial_at

    def tried(self, now: float) -> "BreakerState":
        """Return the state once a trial goes; if nothing is heard of it, the next one goes a gap later."""
        return self if self.fault is None else replace(self, trial_at=now + self.gap_s)

    def refused(self, fault: KeyFault, sent_at: float, now: float) -> "BreakerState":
        """Return the state after a reply that speaks against the key.

        Requests that were under way when it was disabled are no trials: theirs says nothing new.
        """
        if self.fault is not None and sent_at < self.since:
            return self
        is_forgotten = self.fault is None and now > self.since + self.gap_s
        failures = 1 if is_forgotten else self.failures + 1
        since = now if self.fault is None else self.since
        return BreakerState(fault, since, failures=failures).tried(now)

    def answered(self, status: int, verdict: Verdict, sent_at: float, now: float) -> "BreakerState":
        """Return the state after any other reply: one that shows that the key was taken ends the matter."""
        is_done = verdict.means is Means.DONE
        is_telling = is_done or (verdict.means is Means.REFUSED and status not in _UNTELLING)
        if sent_at < self.since or not is_telling:
            return self
        is_proven = self.is_proven or is_done
        if self.fault is not None:
            return BreakerState(None, now, 0.0, self.failures, is_proven=is_proven)
        if self.mismatches == 0 and is_proven is self.is_proven:
            return self
        return replace(self, mismatches=0, is_confirmed=False, is_proven=is_proven, advice="")

    def mismatched(self, advice: str = "") -> "BreakerState":
        """Return the state after a reply that refused the signature; `advice` is what to do about it."""
        return replace(self, mismatches=self.mismatches + 1, advice=advice)

    def confirmed(self) -> "BreakerState":
        """Return the state once the gateway's own read was among them, unless one was taken since."""
        return replace(self, is_confirmed=True) if self.mismatches else self
