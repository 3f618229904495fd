"""The health of an API key: what the exchange says of it, and when the gateway tries it itself.

There are three cases of a key that a reply calls invalid, or not allowed from this address:

1. A bot's reply says so. Some exchanges say it of one path, or once by mistake, so the key is only in doubt:
   requests pass, and the gateway sends a signed read of its own. Any reply that shows that the key was taken
   ends the doubt.
2. The gateway's own read says so, too. The key is disabled: each further request would only be refused, and
   hammering with a revoked key looks like an attack. The read is repeated at growing distances, for ever,
   because a key may come back (a whitelist that was corrected, an exchange that erred).
3. The venue's file names no signed read. Nothing can confirm the doubt, so the key is never disabled, and the
   exchange's own words reach the bots.

A signature that is refused disables nothing: what was asked for may be the cause. Several in a row, with none
that was taken among them, or one of the gateway's own read, are trouble with the secret or `[signing]`, which
people must learn of.

What a reply means is its verdict (venues/replies.py). A 401 that no rule knows speaks against a key that
is tried, and against none that is in use.
"""

from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from http import HTTPStatus

from sealgate.venues.replies import Means, Verdict

FIRST_GAP_S = 5.0
LONGEST_GAP_S = 600.0
DOUBT_GAP_S = 30.0  # between two reads with a key that is in use: they use up the limit, too
MANY_MISMATCHES = 3

# Refusals that may be given before anybody has looked at the key.
_UNTELLING = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})


class KeyFault(StrEnum):
    """Why the exchange does not take a key, in words."""

    INVALID = "the exchange calls it invalid"
    ADDRESS = "this machine's IP address is not on its whitelist"


_FAULTS = {Means.KEY: KeyFault.INVALID, Means.ADDRESS: KeyFault.ADDRESS}
_AGAINST = frozenset({Means.KEY, Means.ADDRESS, Means.SIGNATURE})


def is_mismatch(verdict: Verdict) -> bool:
    """Return whether a reply says that the signature is wrong or missing."""
    return verdict.means is Means.SIGNATURE


def key_fault(verdict: Verdict) -> KeyFault | None:
    """Return the fault of the key that a reply to a signed request states, None if it states none."""
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

    `fault` is None while the key is in use; `doubt` is what a reply said against a key in use. `since` is
    when the key was taken into use, came into doubt or was disabled; replies to older requests say nothing of
    it. `trial_at` is when the gateway's next read may go. `failures` counts the reads that were refused in a
    row; a key that comes back keeps them for as long as its last gap was, so that one that comes and goes is
    not hammered either. `mismatches` counts the signatures that were refused since one was taken;
    `is_confirmed`, that one of them was the gateway's own read, in which nothing else can be wrong.
    `is_proven`: a request was answered as only one whose key and secret are good is; one that is refused may
    not have been looked at that far. A fault ends it. `advice` is what to do about the mismatches.
    """

    fault: KeyFault | None = None
    since: float = 0.0
    trial_at: float = 0.0
    failures: int = 0
    mismatches: int = 0
    is_confirmed: bool = False
    is_proven: bool = False
    advice: str = ""
    doubt: KeyFault | None = None

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
        """The distance from one of the gateway's reads to the next."""
        if self.fault is None:
            return DOUBT_GAP_S
        return _rest_s(self.failures)

    def is_trial_due(self, now: float) -> bool:
        """Whether the gateway is to send a read, as the key is in doubt or disabled."""
        return (self.fault is not None or self.doubt is not None) and now >= self.trial_at

    def tried(self, now: float) -> "BreakerState":
        """Return the state once such a read goes; without a reply, the next one goes a gap later."""
        return replace(self, trial_at=now + self.gap_s)

    def doubted(self, doubt: KeyFault, sent_at: float, now: float) -> "BreakerState":
        """Return the state after any reply that speaks against the key."""
        if self.fault is not None or self.doubt is not None or sent_at < self.since:
            return self
        is_forgotten = now > self.since + _rest_s(self.failures)
        return replace(self, doubt=doubt, since=now, failures=0 if is_forgotten else self.failures)

    def refused(self, fault: KeyFault, asked_at: float, now: float) -> "BreakerState":
        """Return the state after the gateway's own read, sent from `asked_at` on, was refused.

        A key that has worked is disabled only if it was in doubt before: one reply may be a mistake.
        """
        was_doubted = self.doubt is not None and asked_at >= self.since
        if self.fault is None and self.is_proven and not was_doubted:
            return self
        since = now if self.fault is None else self.since
        return BreakerState(fault, since, failures=self.failures + 1).tried(now)

    def answered(self, status: int, verdict: Verdict, sent_at: float, now: float) -> "BreakerState":
        """Return the state after any other reply: one that shows that the key was taken ends the matter."""
        is_done = verdict.means is Means.DONE
        is_telling = is_done or (verdict.means is Means.REFUSED and status not in _UNTELLING)
        if sent_at < self.since or not is_telling:
            return self
        return self.taken(now, is_proven=self.is_proven or is_done)

    def taken(self, now: float, *, is_proven: bool) -> "BreakerState":
        """Return the state once the exchange was seen to know the key."""
        if self.fault is not None:
            return BreakerState(None, now, 0.0, self.failures, is_proven=is_proven)
        if self.doubt is None and self.mismatches == 0 and is_proven is self.is_proven:
            return self
        since = self.since if self.doubt is None else now
        return replace(
            self, since=since, mismatches=0, is_confirmed=False, is_proven=is_proven, advice="", doubt=None
        )

    def mismatched(self, advice: str = "") -> "BreakerState":
        """Return the state after a reply that refused the signature; `advice` is what to do about it."""
        return replace(self, mismatches=self.mismatches + 1, advice=advice)

    def confirmed(self) -> "BreakerState":
        """Return the state once the gateway's own read was among them, unless one was taken since."""
        return replace(self, is_confirmed=True) if self.mismatches else self


def _rest_s(failures: int) -> float:
    """Return how long a key rests after so many refused reads in a row."""
    doublings = min(max(0, failures - 1), 16)
    return min(LONGEST_GAP_S, FIRST_GAP_S * 2.0**doublings)
