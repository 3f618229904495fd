import pytest

from sealgate.core.findings import Cause, Finding, Level, Weight, blamed, fail, ok, warn, worst


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


def test_a_line_is_as_good_as_its_kind_says_and_has_no_more_than_it_is_given() -> None:
    assert [*Level] == ["ok", "warn", "fail"]
    assert ok("a", "b") == Finding("a", Level.OK, "b", "", ())
    assert warn("a", "b") == Finding("a", Level.WARN, "b", "", ())
    assert warn("a", "b", "c").fix == "c"
    assert fail("a", "b", "c") == Finding("a", Level.FAIL, "b", "c", ())


def test_a_worse_one_that_comes_later_counts() -> None:
    good, doubtful, bad = ok("a", "a"), warn("a", "a", "b"), fail("a", "a", "b")
    assert worst([good, doubtful]) is Level.WARN
    assert worst([doubtful, bad]) is Level.FAIL


def test_causes_are_ranked_by_what_speaks_for_them() -> None:
    assert [weight.name for weight in sorted(Weight)] == ["UNLIKELY", "POSSIBLE", "LIKELY", "PROVEN"]
    assert PROVEN.evidence == ""


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


def test_causes_of_one_weight_stay_in_their_order() -> None:
    other = Cause(Weight.LIKELY, "another", "fix")
    assert blamed("a", "b", [LIKELY, other]).causes == (LIKELY, other)
