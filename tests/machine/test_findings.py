"""Findings: which counts, and how they read."""

import pytest

from sealgate.machine.findings import (
    Cause,
    Finding,
    Level,
    Weight,
    blamed,
    clause,
    fail,
    ok,
    program_named,
    sentence,
    span,
    warn,
    worst,
)


@pytest.mark.parametrize(
    ("findings", "level"),
    [
        ([], Level.OK),
        ([ok("a", "b")], Level.OK),
        ([warn("a", "b"), ok("a", "b")], Level.WARN),
        ([ok("a", "b"), fail("a", "b", "c"), warn("a", "b")], Level.FAIL),
    ],
)
def test_the_worst_counts(findings: list[Finding], level: Level) -> None:
    assert worst(findings) is level


PROVEN = Cause(Weight.PROVEN, "it is so", "do that")
LIKELY = Cause(Weight.LIKELY, "it may be so", "try that")
POSSIBLE = Cause(Weight.POSSIBLE, "who knows", "look")


@pytest.mark.parametrize(
    ("causes", "text", "fix"),
    [
        ([POSSIBLE, LIKELY, PROVEN], "refused: it is so", "do that"),
        ([POSSIBLE, LIKELY], "refused: most likely it may be so", "try that"),
        ([POSSIBLE], "refused: probably who knows", "look"),
    ],
)
def test_the_cause_that_most_speaks_for_comes_first(causes: list[Cause], text: str, fix: str) -> None:
    finding = blamed("keys.main", "refused", causes)
    assert (finding.level, finding.text, finding.fix) == (Level.FAIL, text, fix)
    assert [cause.weight for cause in finding.causes] == sorted((one.weight for one in causes), reverse=True)


def test_a_line_names_no_cause_that_is_no_likelier_than_another() -> None:
    finding = blamed("keys.main", "refused", [POSSIBLE, POSSIBLE])
    assert (finding.text, finding.fix, finding.lists_causes) == ("refused, which can mean:", "", True)
    assert not blamed("keys.main", "refused", [LIKELY, LIKELY]).lists_causes
    assert blamed("keys.main", "refused", [LIKELY, POSSIBLE], lists=True).lists_causes


@pytest.mark.parametrize(
    ("advice", "end"),
    [
        ("Wait: it is down.", "wait: it is down"),
        ("Look it up. Then go on.", "look it up. Then go on"),
        ("IP addresses differ.", "IP addresses differ"),
        ("`key` is wrong.", "`key` is wrong"),
        ("", ""),
    ],
)
def test_an_advice_at_the_end_of_a_sentence(advice: str, end: str) -> None:
    assert clause(advice) == end


def test_causes_of_one_weight_stay_in_their_order() -> None:
    other = Cause(Weight.LIKELY, "another", "fix")
    assert blamed("a", "b", [LIKELY, other]).causes == (LIKELY, other)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-3.0, "0 s"),
        (0.051, "0.05 s"),
        (1.5, "2 s"),
        (11.6, "12 s"),
        (60.0, "60 s"),
        (622.0, "10 min"),
        (7200.0, "2 h"),
        (200_000.0, "2 d"),
    ],
)
def test_a_span_in_words(seconds: float, words: str) -> None:
    assert span(seconds) == words


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        (b"curl/8.5.0", "curl/8.5.0"),
        (b" \x1b[2J\r\nlevel=error\x00", "[2J  level=error"),
        ("\u202e\u0430".encode(), "?????"),
        (b"x" * 100, "x" * 100),
        (b"x" * 5000, "x" * 100 + "…"),
        (b"", ""),
    ],
)
def test_a_program_is_named_in_a_short_line_that_no_terminal_acts_on(sent: bytes, shown: str) -> None:
    assert program_named(sent) == shown


def test_an_advice_is_a_sentence() -> None:
    assert sentence("look at the log") == "Look at the log."


def test_a_warning_and_a_failure_by_itself_need_no_cause() -> None:
    assert warn("a", "b").level is Level.WARN
