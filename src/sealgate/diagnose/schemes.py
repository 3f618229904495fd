"""The search for the signature scheme that an exchange accepts: the next probe, and the lesson of each reply.

There are two searches, one after the other, so that 32 schemes take 20 signed reads at most, plus four
repeats of probes without a lesson: first how the signature is made (16 ways, without a query), then, with a
query, whether the query is signed. Encodings that the secret cannot have are not tried.

A conclusion always rests on a contrast: on one path, one signature was refused as a signature, and another
was not. A single answer teaches nothing, because the path may be open to everybody or refuse everybody; until
there is such a contrast, a false signature is sent as well.

The exchange's documents leave open `signing.encoding`, `signing.secret_is` and `signing.target`. The order of
the ways follows the habits of other exchanges.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from http import HTTPStatus
from typing import NamedTuple

from sealgate.diagnose.causes import HEADERS_MISSING, SESSION_INVALID
from sealgate.keys.signing_choices import Encoding, SecretIs, SignedTarget, Way
from sealgate.machine.findings import REACH
from sealgate.venues.replies import Judge, Means, Verdict

_LONGEST_PAUSE_S = 60.0
_PAUSE_S = 10.0  # after a 429 without a stated wait
_MOST_FALSE = 2  # false signatures

# Encoding and use of the secret, likeliest first.
_WAYS = """
hex/utf8 base64/utf8 base64/base64 hex/hex HEX/utf8 hex/base64 hex/sha256hex base64/hex base64url/utf8
base64url/base64 base64/sha256hex HEX/hex HEX/sha256hex HEX/base64 base64url/hex base64url/sha256hex
"""
_LIKELY = tuple(
    Way(Encoding(encoding), SecretIs(secret_is))
    for encoding, _, secret_is in (way.partition("/") for way in _WAYS.split())
)


@dataclass(frozen=True, slots=True)
class Plan:
    """The scope of a search: the ways, likeliest first, and the target to try first."""

    ways: tuple[Way, ...]
    target: SignedTarget

    @property
    def most_reads(self) -> int:
        """The most signed reads needed, including false ones and repeats."""
        return len(self.ways) + _MOST_FALSE + len(SignedTarget) + sum(_AGAIN.values())


def make_plan(possible: Container[SecretIs], configured: Way, target: SignedTarget) -> Plan:
    """Return the plan. `possible` are the uses that the secret allows; the configured way comes first."""
    ways = [way for way in _LIKELY if way.secret_is in possible]
    return Plan(tuple(sorted(ways, key=lambda way: way != configured)), target)


@dataclass(frozen=True, slots=True)
class Probe:
    """One signed read. A false one carries a deliberately wrong signature."""

    way: Way
    target: SignedTarget = SignedTarget.PATH
    has_query: bool = False
    is_false: bool = False


class Lesson(Enum):
    """The lesson of a reply, or of its absence, about the signature."""

    ACCEPTED = "accepted"
    PASSED = "passed"  # refused for another reason than the signature
    REFUSED = "refused"
    LIMITED = "limited"
    CLOCK = "clock"
    TROUBLE = "trouble"  # at the exchange, or in the network
    KEY_UNKNOWN = "key unknown"
    HEADERS_UNKNOWN = "headers unknown"
    SESSION_WANTED = "session wanted"
    UNREACHABLE = "unreachable"


_BY_KIND = {HEADERS_MISSING: Lesson.HEADERS_UNKNOWN, SESSION_INVALID: Lesson.SESSION_WANTED}
_BY_MEANS = {
    Means.SIGNATURE: Lesson.REFUSED,
    Means.KEY: Lesson.KEY_UNKNOWN,
    Means.TIMESTAMP: Lesson.CLOCK,
    Means.LIMITED: Lesson.LIMITED,
    Means.BANNED: Lesson.LIMITED,
    Means.COUNTRY: Lesson.TROUBLE,
}


def lesson_of(status: int, reply: Verdict, judge: Judge) -> Lesson:
    """Return the lesson of the verdict on a reply to a signed read."""
    if status < HTTPStatus.MULTIPLE_CHOICES:
        return Lesson.ACCEPTED
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Lesson.TROUBLE
    # The documents give no status for "Invalid signature" and "Invalid timestamp", so the text counts alone.
    for verdict in (reply, judge.judge_words(HTTPStatus.UNAUTHORIZED, reply.words)):
        lesson = _BY_KIND.get(verdict.kind) or _BY_MEANS.get(verdict.means)
        if lesson is not None:
            return lesson
    return Lesson.REFUSED if status == HTTPStatus.UNAUTHORIZED else Lesson.PASSED


class ProbeResult(NamedTuple):
    """The result of a probe. `words` are for people, `retry_after_s` is the wait stated by a 429."""

    probe: Probe
    lesson: Lesson
    words: str
    retry_after_s: float | None = None


class End(Enum):
    """The end of the search: a discovery, or a lesson of the same name.

    Only FOUND means that everything is known; QUERY_UNCLEAR, everything except the target.
    """

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


# What each end means, and the fix. `words` are the text of the exchange or of the system.
ENDS: dict[End, str] = {
    End.QUERY_UNCLEAR: (
        "it is still open whether the query is signed: with ?{query} the exchange answered {words}; "
        "give --path a query that this path takes, as in --path '{path}?NAME=VALUE'"
    ),
    End.ALL_REFUSED: (
        "all signatures were refused ({words}), so it is not the scheme. Most likely the secret does not "
        "belong to {api_key}: compare keys.{alias} with the exchange's list. Otherwise upstream.prefix "
        "({prefix}) is not what this exchange leaves out of the signed path, or a proxy changes the "
        "path"
    ),
    End.PATH_OPEN: (
        "{path} is answered even without a valid signature, so it proves nothing; "
        "choose another with --path, such as {prefix}/user/ADDRESS/positions with your own address"
    ),
    End.PATH_CLOSED: (
        "{path} is answered with {words}, whatever the signature is; "
        "choose another with --path, and check upstream.prefix and the key's whitelist and permissions"
    ),
    End.KEY_UNKNOWN: (
        "the exchange does not know the key {api_key} ({words}); "
        "compare keys.{alias}.api_key with the exchange's list of keys: a revoked key never becomes "
        "valid again"
    ),
    End.HEADERS_UNKNOWN: (
        "the exchange cannot find the signature's headers ({words}); "
        "set signing.header_prefix to what it documents; it is {header_prefix} now"
    ),
    End.SESSION_WANTED: (
        "{path} requires a session token, not a signature ({words}); use --path to choose a read that "
        "is signed"
    ),
    End.CLOCK: (
        "the exchange refuses the timestamp, although it follows the exchange's own time ({words}); "
        "check clock.path and clock.field, and the recv_window that the exchange has for the key"
    ),
    End.LIMITED: (
        "the exchange's rate limit is reached ({words}); stop other programs that use this key, wait, "
        "and run it again, more slowly, with --every"
    ),
    End.TROUBLE: "the exchange is failing: {words}; try again later",
    End.UNREACHABLE: f"{{base_url}} cannot be reached: {{words}}; {REACH}",
}


class SearchEnd(NamedTuple):
    """The end of a search. `words` are the text of the reply that led to it."""

    end: End
    words: str
    way: Way | None = None
    target: SignedTarget | None = None


_FINAL = frozenset({Lesson.KEY_UNKNOWN, Lesson.HEADERS_UNKNOWN, Lesson.SESSION_WANTED, Lesson.UNREACHABLE})
# The most repeats of probes without a lesson, in all.
_AGAIN = {Lesson.LIMITED: 2, Lesson.CLOCK: 1, Lesson.TROUBLE: 1}


def next_step(plan: Plan, heard: Sequence[ProbeResult]) -> Probe | SearchEnd:
    """Return the next probe, or the end. `heard` has all results so far, in order."""
    if heard:
        last = heard[-1]
        most = _AGAIN.get(last.lesson)
        # 1. Lessons that end any search: every other probe would get the same answer.
        # 2. Repeat a probe without a lesson, unless the repeats are used up or the pause is too long.
        is_used_up = most is not None and sum(one.lesson is last.lesson for one in heard) > most
        is_too_long = last.lesson is Lesson.LIMITED and _stated_s(last) > _LONGEST_PAUSE_S
        if last.lesson in _FINAL or is_used_up or is_too_long:
            return SearchEnd(End(last.lesson.value), last.words)
        if most is not None:
            return last.probe
    # 3. All other results are conclusive.
    return _find_way(plan, [one for one in heard if one.lesson not in _AGAIN])


def _stated_s(limited: ProbeResult) -> float:
    return _PAUSE_S if limited.retry_after_s is None else limited.retry_after_s


def pause_s(heard: Sequence[ProbeResult], spacing_s: float) -> float:
    """Return the wait before the next probe: the spacing, doubled after each 429."""
    limited = sum(one.lesson is Lesson.LIMITED for one in heard)
    usual_s = spacing_s * 2.0**limited
    return max(usual_s, _stated_s(heard[-1])) if heard and heard[-1].lesson is Lesson.LIMITED else usual_s


def _find_way(plan: Plan, told: Sequence[ProbeResult]) -> Probe | SearchEnd:
    plain = [one for one in told if not one.probe.has_query]
    is_contrasted = any(one.lesson is Lesson.REFUSED for one in plain)
    dead = _dead_ways(plain)
    # 1. A path that accepts a false signature proves nothing, nor does one that refuses all signatures alike.
    open_to_all = next((one for one in plain if one.probe.is_false and one.lesson is Lesson.ACCEPTED), None)
    if open_to_all is not None:
        return SearchEnd(End.PATH_OPEN, open_to_all.words)
    if len(dead) > 1 and not is_contrasted:
        return SearchEnd(End.PATH_CLOSED, plain[-1].words)
    # 2. A way that was not refused is right if a false signature was refused, or gets another answer.
    taken = next((one for one in plain if one.probe.way not in dead and not one.probe.is_false), None)
    if taken is not None:
        false = replace(taken.probe, is_false=True)
        is_accepted = taken.lesson is Lesson.ACCEPTED and is_contrasted
        is_certain = is_accepted or any(one.probe == false for one in plain)
        return _find_target(plan, taken.probe.way, told) if is_certain else false
    # 3. Try the likeliest of the remaining ways.
    left = next((way for way in plan.ways if way not in dead), None)
    return SearchEnd(End.ALL_REFUSED, plain[-1].words) if left is None else Probe(left)


def _dead_ways(plain: Sequence[ProbeResult]) -> set[Way]:
    """Return the ways that are refused, or get the same answer as a false signature.

    Once enough false signatures were answered, only an accepted signature counts.
    """
    false = [one for one in plain if one.probe.is_false and one.lesson is not Lesson.REFUSED]
    words = {one.words for one in false}
    refused = (one for one in plain if one.lesson is Lesson.REFUSED and not one.probe.is_false)
    is_vain = len(false) >= _MOST_FALSE
    passed = (one for one in plain if one.lesson is Lesson.PASSED)
    same = (one for one in passed if is_vain or one.words in words)
    return {one.probe.way for one in (*false, *refused, *same)}


def _find_target(plan: Plan, way: Way, told: Sequence[ProbeResult]) -> Probe | SearchEnd:
    """Continue with the right way. The read may be refused for its query, but not for its signature."""
    asked = {one.probe.target: one for one in told if one.probe.has_query}
    is_complete = len(asked) == len(SignedTarget)
    for wanted in (Lesson.ACCEPTED, Lesson.PASSED):
        good = [one for one in asked.values() if one.lesson is wanted]
        if len(good) == 1 and (is_complete or wanted is Lesson.ACCEPTED):
            return SearchEnd(End.FOUND, good[0].words, way, good[0].probe.target)
    if is_complete:
        return SearchEnd(End.QUERY_UNCLEAR, asked[plan.target].words, way)
    targets = sorted(SignedTarget, key=lambda target: target is not plan.target)
    return Probe(way, targets[len(asked)], has_query=True)


# The letters in which the two alphabets differ (RFC 4648 sections 4 and 5).
_OWN_LETTERS = {Encoding.BASE64: frozenset("+/"), Encoding.BASE64URL: frozenset("-_")}


def tells_encoding(encoding: Encoding, signature: str) -> bool:
    """Return whether a signature has a letter that the other base64 alphabet lacks.

    One signature in four has none; an exchange that is lenient about padding accepts it in both encodings.
    """
    own = _OWN_LETTERS.get(encoding)
    return own is None or not own.isdisjoint(signature)
