"""The search for the signature scheme, against made-up exchanges that answer without sockets."""

import gzip
import itertools
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealgate.config.venues import default_venue
from sealgate.diagnose.schemes import (
    End,
    Lesson,
    Plan,
    Probe,
    ProbeResult,
    SearchEnd,
    lesson_of,
    make_plan,
    next_step,
    pause_s,
)
from sealgate.keys.signing_choices import Encoding, SecretIs, SignedTarget, Way

PATH, QUERY = SignedTarget
DEFAULT = Way(Encoding.HEX, SecretIs.UTF8)
PLAN = make_plan(set(SecretIs), DEFAULT, PATH)
WAYS = [Way(encoding, secret_is) for encoding in Encoding for secret_is in SecretIs]
SCHEMES = list(itertools.product(WAYS, SignedTarget))
REFUSED = (Lesson.REFUSED, "401 Invalid HMAC signature")
ACCEPTED = (Lesson.ACCEPTED, "200")
Exchange = Callable[[Probe], tuple[Lesson, str]]


def exchange_of(way: Way, target: SignedTarget) -> Exchange:
    def answer(probe: Probe) -> tuple[Lesson, str]:
        is_right = probe.way == way and (probe.target is target or not probe.has_query)
        return ACCEPTED if is_right and not probe.is_false else REFUSED

    return answer


def search(plan: Plan, exchange: Exchange) -> tuple[SearchEnd, list[ProbeResult]]:
    heard: list[ProbeResult] = []
    while isinstance(step := next_step(plan, heard), Probe):
        heard.append(ProbeResult(step, *exchange(step)))
        assert len(heard) <= plan.most_reads
    return step, heard


@pytest.mark.parametrize(("way", "target"), SCHEMES)
def test_every_scheme_is_found(way: Way, target: SignedTarget) -> None:
    finding, heard = search(PLAN, exchange_of(way, target))
    assert (finding.end, finding.way, finding.target) == (End.FOUND, way, target)
    assert len(heard) == len({one.probe for one in heard}) <= PLAN.most_reads
    assert {one.probe.target for one in heard if not one.probe.has_query} == {PATH}


@pytest.mark.parametrize(("way", "target"), SCHEMES)
def test_what_is_configured_is_asked_about_first(way: Way, target: SignedTarget) -> None:
    finding, heard = search(make_plan(set(SecretIs), way, target), exchange_of(way, target))
    assert finding.end is End.FOUND
    assert [one.probe.is_false for one in heard] == [False, True, False]


def test_what_the_secret_cannot_be_is_never_asked() -> None:
    plan = make_plan({SecretIs.UTF8, SecretIs.SHA256HEX}, Way(Encoding.HEX, SecretIs.HEX), PATH)
    finding, heard = search(plan, lambda _: REFUSED)
    assert finding == SearchEnd(End.ALL_REFUSED, REFUSED[1])
    assert {one.probe.way.secret_is for one in heard} == {SecretIs.UTF8, SecretIs.SHA256HEX}
    assert len(heard) == 8


def closed(_: Probe) -> tuple[Lesson, str]:
    return Lesson.PASSED, "404 Not Found"


def with_ids() -> Exchange:
    numbers = itertools.count()
    return lambda _: (Lesson.PASSED, f"404 request {next(numbers)}")


@pytest.mark.parametrize(
    ("exchange", "end", "reads"),
    [
        (lambda _: ACCEPTED, End.PATH_OPEN, 2),
        (closed, End.PATH_CLOSED, 3),
        (with_ids(), End.PATH_CLOSED, 4),
        (lambda _: (Lesson.KEY_UNKNOWN, "401"), End.KEY_UNKNOWN, 1),
        (lambda _: (Lesson.HEADERS_UNKNOWN, "401"), End.HEADERS_UNKNOWN, 1),
        (lambda _: (Lesson.SESSION_WANTED, "401"), End.SESSION_WANTED, 1),
        (lambda _: (Lesson.UNREACHABLE, "refused"), End.UNREACHABLE, 1),
        (lambda _: (Lesson.CLOCK, "401"), End.CLOCK, 2),
        (lambda _: (Lesson.TROUBLE, "503"), End.TROUBLE, 2),
        (lambda _: (Lesson.LIMITED, "429"), End.LIMITED, 3),
    ],
)
def test_what_ends_the_search_early(exchange: Exchange, end: End, reads: int) -> None:
    finding, heard = search(PLAN, exchange)
    assert (finding.end, finding.way, len(heard)) == (end, None, reads)
    assert finding.words == heard[-1].words


def test_a_read_that_is_refused_for_something_else_tells_as_much() -> None:
    """The whitelist, say, is looked at after the signature; the false one shows it."""
    right = exchange_of(Way(Encoding.BASE64, SecretIs.UTF8), QUERY)

    def answer(probe: Probe) -> tuple[Lesson, str]:
        return REFUSED if right(probe) == REFUSED else (Lesson.PASSED, "403 IP not in whitelist")

    finding, heard = search(PLAN, answer)
    assert finding == SearchEnd(End.FOUND, "403 IP not in whitelist", heard[1].probe.way, QUERY)
    assert [one.probe.is_false for one in heard] == [False, False, True, False, False]


@pytest.mark.parametrize("configured", [Encoding.HEX, Encoding.BASE64])
def test_a_form_that_is_refused_as_such_is_not_taken_for_accepted(configured: Encoding) -> None:
    """An exchange may say 400 to what is no hex, whatever it is over."""
    right = exchange_of(Way(Encoding.HEX, SecretIs.HEX), PATH)

    def answer(probe: Probe) -> tuple[Lesson, str]:
        is_hex = probe.way.encoding in (Encoding.HEX, Encoding.UPPER_HEX)
        return right(probe) if is_hex else (Lesson.PASSED, "400 malformed")

    finding, heard = search(make_plan(set(SecretIs), Way(configured, SecretIs.UTF8), PATH), answer)
    assert (finding.end, finding.way) == (End.FOUND, Way(Encoding.HEX, SecretIs.HEX))
    assert sum(one.probe.is_false for one in heard) == 1


@pytest.mark.parametrize(
    ("by_target", "end", "target"),
    [
        ({PATH: Lesson.PASSED, QUERY: Lesson.REFUSED}, End.FOUND, PATH),
        ({PATH: Lesson.REFUSED, QUERY: Lesson.PASSED}, End.FOUND, QUERY),
        ({PATH: Lesson.PASSED, QUERY: Lesson.ACCEPTED}, End.FOUND, QUERY),
        ({PATH: Lesson.PASSED, QUERY: Lesson.PASSED}, End.QUERY_UNCLEAR, None),
        ({PATH: Lesson.REFUSED, QUERY: Lesson.REFUSED}, End.QUERY_UNCLEAR, None),
    ],
)
def test_whether_the_query_is_signed(
    by_target: dict[SignedTarget, Lesson], end: End, target: SignedTarget | None
) -> None:
    def answer(probe: Probe) -> tuple[Lesson, str]:
        if probe.has_query:
            return by_target[probe.target], "as it is"
        return REFUSED if probe.is_false else ACCEPTED

    finding, _ = search(PLAN, answer)
    assert (finding.end, finding.way, finding.target) == (end, DEFAULT, target)


@pytest.mark.parametrize("lesson", [Lesson.CLOCK, Lesson.TROUBLE, Lesson.LIMITED])
@pytest.mark.parametrize("spoilt", range(4))
def test_it_is_as_if_what_taught_nothing_had_not_come(spoilt: int, lesson: Lesson) -> None:
    right, numbers = exchange_of(DEFAULT, QUERY), itertools.count()
    finding, heard = search(
        PLAN, lambda probe: (lesson, "not now") if next(numbers) == spoilt else right(probe)
    )
    undisturbed = search(PLAN, right)
    del heard[spoilt]
    assert (finding, heard) == undisturbed


@pytest.mark.parametrize(("stated_s", "is_waited_for"), [(60.0, True), (60.1, False)])
def test_a_pause_that_is_too_long_is_not_waited_for(stated_s: float, *, is_waited_for: bool) -> None:
    limited = ProbeResult(Probe(DEFAULT), Lesson.LIMITED, "429", stated_s)
    assert next_step(PLAN, [limited]) == (limited.probe if is_waited_for else SearchEnd(End.LIMITED, "429"))


OPEN_ENDED = [
    *[Lesson.REFUSED, Lesson.PASSED] * 4,
    *(Lesson.ACCEPTED, Lesson.LIMITED, Lesson.CLOCK, Lesson.TROUBLE),
]


@given(st.data())
def test_whatever_the_exchange_answers_the_search_ends_in_time(data: st.DataObject) -> None:
    """`search` holds the bound."""
    answer = st.tuples(st.sampled_from(OPEN_ENDED), st.sampled_from("abc"))
    finding, _ = search(PLAN, lambda _: data.draw(answer))
    assert (finding.end is End.FOUND) is (finding.target is not None)


def test_answers_that_are_never_the_same_cost_two_false_signatures_at_most() -> None:
    numbers = itertools.count()

    def answer(probe: Probe) -> tuple[Lesson, str]:
        is_hex = probe.way.encoding in (Encoding.HEX, Encoding.UPPER_HEX)
        return REFUSED if is_hex else (Lesson.PASSED, f"400 request {next(numbers)}")

    finding, heard = search(PLAN, answer)
    assert (finding.end, finding.words) == (End.ALL_REFUSED, heard[-1].words)
    assert sum(one.probe.is_false for one in heard) == 2


def test_the_most_reads_that_are_promised_can_come() -> None:
    spoilt = iter([Lesson.LIMITED, Lesson.LIMITED, Lesson.CLOCK, Lesson.TROUBLE])
    open_to_all = {PLAN.ways[1]: "400 a", PLAN.ways[2]: "400 b"}

    def answer(probe: Probe) -> tuple[Lesson, str]:
        verdict = next(spoilt, None)
        if verdict is not None:
            return verdict, "not now"
        if probe.way in open_to_all:
            return Lesson.PASSED, open_to_all[probe.way]
        return ACCEPTED if probe.way == PLAN.ways[-1] and not probe.has_query else REFUSED

    finding, heard = search(PLAN, answer)
    assert finding.end is End.QUERY_UNCLEAR
    assert len(heard) == PLAN.most_reads == 24


LIMITED = ProbeResult(Probe(DEFAULT), Lesson.LIMITED, "429", 3.0)
OTHER = ProbeResult(Probe(DEFAULT), *REFUSED)


@pytest.mark.parametrize(
    ("heard", "seconds"),
    [
        ([], 0.5),
        ([OTHER], 0.5),
        ([LIMITED], 3.0),
        ([LIMITED._replace(retry_after_s=0.2)], 1.0),
        ([LIMITED._replace(retry_after_s=None)], 10.0),
        ([LIMITED, OTHER], 1.0),
        ([LIMITED, OTHER, LIMITED, OTHER], 2.0),
    ],
)
def test_the_pause_before_the_next(heard: list[ProbeResult], seconds: float) -> None:
    assert pause_s(heard, 0.5) == seconds


@pytest.mark.parametrize(
    ("status", "body", "lesson"),
    [
        (200, b"", Lesson.ACCEPTED),
        (204, b"", Lesson.ACCEPTED),
        (299, b"", Lesson.ACCEPTED),
        (300, b"", Lesson.PASSED),
        (301, b"", Lesson.PASSED),
        (401, b'{"detail":"Invalid HMAC signature"}', Lesson.REFUSED),
        (400, b'{"detail":"Invalid signature"}', Lesson.REFUSED),
        (403, b'{"detail":"Invalid timestamp"}', Lesson.CLOCK),
        (401, b'{"detail":"Timestamp outside recv_window (5000ms)."}', Lesson.CLOCK),
        (401, b"Unauthorized", Lesson.REFUSED),
        (401, b'{"detail":"Invalid API key"}', Lesson.KEY_UNKNOWN),
        (401, b'{"detail":"Missing API key auth headers"}', Lesson.HEADERS_UNKNOWN),
        (401, b'{"detail":"Invalid or expired session token"}', Lesson.SESSION_WANTED),
        (403, b"IP 203.0.113.7 not in API key whitelist", Lesson.PASSED),
        (404, b"", Lesson.PASSED),
        (422, b"", Lesson.PASSED),
        (429, b"", Lesson.LIMITED),
        (429, b"Handshake rate limit", Lesson.LIMITED),
        (499, b"", Lesson.PASSED),
        (500, b"", Lesson.TROUBLE),
        (503, b"API key system not available", Lesson.TROUBLE),
    ],
)
def test_what_a_reply_says(status: int, body: bytes, lesson: Lesson) -> None:
    judge = default_venue().replies
    assert lesson_of(status, judge.judge(status, body), judge) is lesson
    packed = gzip.compress(body)
    assert lesson_of(status, judge.judge(status, packed, b"gzip"), judge) is lesson
