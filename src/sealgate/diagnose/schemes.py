"""Which signature scheme an exchange accepts: what to ask next, and what each reply teaches.

Two searches, one after the other, so that 32 schemes take 20 signed reads at most, and four of them again
where a reply taught nothing: first how the signature is made (16 ways, asked without a query), then, with a
query, whether that is signed. What the secret cannot be is never asked.

A conclusion is always a contrast: on one path, one signature was refused as a signature, and another was not.
An answer alone teaches nothing, for the path may be open to anybody or refuse everybody; where there is no
such contrast yet, a false signature is sent too.

What spec.md does not show are `signing.encoding`, `signing.secret_is` and `signing.target` (API-key request
signing, Gaps). The order is by what other exchanges do.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from http import HTTPStatus
from typing import NamedTuple

from sealgate.keys.ways import Encoding, SecretIs, SignedTarget, Way
from sealgate.venues.replies import Judge
from sealgate.venues.replies import Verdict as ReplyVerdict

_LONGEST_PAUSE_S = 60.0
_PAUSE_S = 10.0  # after a 429 that states none
_MOST_FALSE = 2  # false signatures


_LIKELY = tuple(
    Way(Encoding(encoding), SecretIs(secret_is))
    for encoding, secret_is in (
        ("hex", "utf8"),
        ("base64", "utf8"),
        ("base64", "base64"),
        ("hex", "hex"),
        ("HEX", "utf8"),
        ("hex", "base64"),
        ("hex", "sha256hex"),
        ("base64", "hex"),
        ("base64url", "utf8"),
        ("base64url", "base64"),
        ("base64", "sha256hex"),
        ("HEX", "hex"),
        ("HEX", "sha256hex"),
        ("HEX", "base64"),
        ("base64url", "hex"),
        ("base64url", "sha256hex"),
    )
)


@dataclass(frozen=True, slots=True)
class Plan:
    """What there is to find out: the ways, most likely first, and the target to ask about first."""

    ways: tuple[Way, ...]
    target: SignedTarget

    @property
    def most_ways(self) -> int:
        """How many signed reads without a query it takes at most, the false ones included."""
        return len(self.ways) + _MOST_FALSE

    @property
    def most_reads(self) -> int:
        """How many signed reads it takes at most, those included that are sent again."""
        return self.most_ways + len(SignedTarget) + MOST_AGAIN


def make_plan(possible: Container[SecretIs], configured: Way, target: SignedTarget) -> Plan:
    """Return the plan. `possible` is what the secret can be; what is configured now is asked about first."""
    ways = [way for way in _LIKELY if way.secret_is in possible]
    return Plan(tuple(sorted(ways, key=lambda way: way != configured)), target)


@dataclass(frozen=True, slots=True)
class Probe:
    """One signed read. A false one carries a signature that is wrong by intention."""

    way: Way
    target: SignedTarget = SignedTarget.PATH
    has_query: bool = False
    is_false: bool = False


class Verdict(Enum):
    """What a reply, or none, says of the signature."""

    ACCEPTED = "accepted"
    PASSED = "passed"  # refused for something else than the signature
    REFUSED = "refused"
    LIMITED = "limited"
    CLOCK = "clock"
    TROUBLE = "trouble"  # of the exchange, or on the way
    KEY_UNKNOWN = "key unknown"
    HEADERS_UNKNOWN = "headers unknown"
    SESSION_WANTED = "session wanted"
    UNREACHABLE = "unreachable"


_BY_KIND = {
    "signature_invalid": Verdict.REFUSED,
    "key_invalid": Verdict.KEY_UNKNOWN,
    "headers_missing": Verdict.HEADERS_UNKNOWN,
    "session_invalid": Verdict.SESSION_WANTED,
    "timestamp_outside": Verdict.CLOCK,
    "timestamp_invalid": Verdict.CLOCK,
    "rate_limited": Verdict.LIMITED,
    "handshake_limited": Verdict.LIMITED,
    "country_refused": Verdict.TROUBLE,
}


def judge_signature(status: int, reply: ReplyVerdict, judge: Judge) -> Verdict:
    """Return what the verdict on a reply to a signed read says of the signature."""
    if status < HTTPStatus.MULTIPLE_CHOICES:
        return Verdict.ACCEPTED
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Verdict.TROUBLE
    # spec.md gives no status for "Invalid signature" and "Invalid timestamp", so the words count under any.
    for assumed in (reply, judge.judge_words(HTTPStatus.UNAUTHORIZED, reply.words)):
        verdict = _BY_KIND.get(assumed.kind)
        if verdict is not None:
            return verdict
    return Verdict.REFUSED if status == HTTPStatus.UNAUTHORIZED else Verdict.PASSED


class ProbeResult(NamedTuple):
    """What came of a probe. `words` tell it to people, `retry_after_s` is what a 429 stated."""

    probe: Probe
    verdict: Verdict
    words: str
    retry_after_s: float | None = None


class End(Enum):
    """How the search ended. Only with FOUND is everything known, with QUERY_UNCLEAR all but the target."""

    FOUND = "found"
    QUERY_UNCLEAR = "query unclear"
    ALL_REFUSED = "all refused"
    PATH_OPEN = "path open"
    PATH_CLOSED = "path closed"
    KEY_UNKNOWN = "key unknown"
    HEADERS_UNKNOWN = "headers unknown"
    SESSION_WANTED = "session wanted"
    CLOCK = "clock"
    LIMITED = "limited"
    TROUBLE = "trouble"
    UNREACHABLE = "unreachable"


class SearchEnd(NamedTuple):
    """The end of a search. `words` are those of the reply that led to it."""

    end: End
    words: str
    way: Way | None = None
    target: SignedTarget | None = None


_FINAL = {
    Verdict.KEY_UNKNOWN: End.KEY_UNKNOWN,
    Verdict.HEADERS_UNKNOWN: End.HEADERS_UNKNOWN,
    Verdict.SESSION_WANTED: End.SESSION_WANTED,
    Verdict.UNREACHABLE: End.UNREACHABLE,
}
# How often a probe that taught nothing is sent again, in all, and what it means when that is used up.
_AGAIN = {
    Verdict.LIMITED: (2, End.LIMITED),
    Verdict.CLOCK: (1, End.CLOCK),
    Verdict.TROUBLE: (1, End.TROUBLE),
}
MOST_AGAIN = sum(most for most, _ in _AGAIN.values())


def next_step(plan: Plan, heard: Sequence[ProbeResult]) -> Probe | SearchEnd:
    """Return the next probe, or the end. `heard` is all that came so far, in order."""
    if heard and heard[-1].verdict in _FINAL:
        return SearchEnd(_FINAL[heard[-1].verdict], heard[-1].words)
    if heard and heard[-1].verdict in _AGAIN:
        return _again(heard)
    return _find_way(plan, [one for one in heard if one.verdict not in _AGAIN])


def pause_s(heard: Sequence[ProbeResult], spacing_s: float) -> float:
    """Return how long to wait before the next probe: the spacing, twice as long after each 429."""
    limited = sum(one.verdict is Verdict.LIMITED for one in heard)
    usual_s = spacing_s * 2.0**limited
    return max(usual_s, _stated_s(heard[-1])) if heard and heard[-1].verdict is Verdict.LIMITED else usual_s


def _stated_s(limited: ProbeResult) -> float:
    return _PAUSE_S if limited.retry_after_s is None else limited.retry_after_s


def _again(heard: Sequence[ProbeResult]) -> Probe | SearchEnd:
    last = heard[-1]
    most, end = _AGAIN[last.verdict]
    is_used_up = sum(one.verdict is last.verdict for one in heard) > most
    is_too_long = last.verdict is Verdict.LIMITED and _stated_s(last) > _LONGEST_PAUSE_S
    return SearchEnd(end, last.words) if is_used_up or is_too_long else last.probe


def _find_way(plan: Plan, told: Sequence[ProbeResult]) -> Probe | SearchEnd:
    plain = [one for one in told if not one.probe.has_query]
    is_contrasted = any(one.verdict is Verdict.REFUSED for one in plain)
    open_to_all = next((one for one in plain if one.probe.is_false and one.verdict is Verdict.ACCEPTED), None)
    if open_to_all is not None:
        return SearchEnd(End.PATH_OPEN, open_to_all.words)
    dead = _dead_ways(plain)
    if len(dead) > 1 and not is_contrasted:
        return SearchEnd(End.PATH_CLOSED, plain[-1].words)
    taken = next((one for one in plain if one.probe.way not in dead and not one.probe.is_false), None)
    if taken is not None:
        false = next((one for one in plain if one.probe == _false(taken.probe)), None)
        is_certain = false is not None or (taken.verdict is Verdict.ACCEPTED and is_contrasted)
        return _find_target(plan, taken.probe.way, told) if is_certain else _false(taken.probe)
    left = next((way for way in plan.ways if way not in dead), None)
    return SearchEnd(End.ALL_REFUSED, plain[-1].words) if left is None else Probe(left)


def _dead_ways(plain: Sequence[ProbeResult]) -> set[Way]:
    """Return the ways that are refused, or get an answer that a false signature gets, too.

    Once false ones got as many answers as are worth asking for, nothing but an accepted one counts.
    """
    false = [one for one in plain if one.probe.is_false and one.verdict is not Verdict.REFUSED]
    words = {one.words for one in false}
    refused = (one for one in plain if one.verdict is Verdict.REFUSED and not one.probe.is_false)
    is_vain = len(false) >= _MOST_FALSE
    passed = (one for one in plain if one.verdict is Verdict.PASSED)
    same = (one for one in passed if is_vain or one.words in words)
    return {one.probe.way for one in (*false, *refused, *same)}


def _false(probe: Probe) -> Probe:
    return replace(probe, is_false=True)


def _find_target(plan: Plan, way: Way, told: Sequence[ProbeResult]) -> Probe | SearchEnd:
    """Go on with a way that is right. The read may be refused for its query, but not as a signature."""
    asked = {one.probe.target: one for one in told if one.probe.has_query}
    is_complete = len(asked) == len(SignedTarget)
    for wanted in (Verdict.ACCEPTED, Verdict.PASSED):
        good = [one for one in asked.values() if one.verdict is wanted]
        if len(good) == 1 and (is_complete or wanted is Verdict.ACCEPTED):
            return SearchEnd(End.FOUND, good[0].words, way, good[0].probe.target)
    if is_complete:
        return SearchEnd(End.QUERY_UNCLEAR, asked[plan.target].words, way)
    targets = sorted(SignedTarget, key=lambda target: target is not plan.target)
    return Probe(way, targets[len(asked)], has_query=True)


# RFC 4648 sections 4 and 5: all that the two alphabets differ in.
_OWN_LETTERS = {Encoding.BASE64: frozenset("+/"), Encoding.BASE64URL: frozenset("-_")}


def tells_encoding(encoding: Encoding, signature: str) -> bool:
    """Ask whether a signature has a letter that the other base64 alphabet lacks.

    One in four has none; an exchange that is lenient about padding reads such a one in either encoding.
    """
    own = _OWN_LETTERS.get(encoding)
    return own is None or not own.isdisjoint(signature)
