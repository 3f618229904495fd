"""What is known about an error stands beside it: here what the exchange itself says."""

import pytest

from sealgate.observe.evidence import Circumstances, evidence
from sealgate.venues.replies import Means, Verdict, Whose

NOTHING = Circumstances(clock_error_s=None, has_worked=False)


@pytest.mark.parametrize("means", [Means.BANNED, Means.COUNTRY])
def test_who_is_shut_out_reads_the_exchanges_words(means: Means) -> None:
    verdict = Verdict(means, means.value, Whose.UPSTREAM, "", words="IP has been\nbanned")
    assert evidence(verdict, NOTHING) == 'the exchange says: "IP has been banned"'
    assert not evidence(Verdict(means, means.value, Whose.UPSTREAM, ""), NOTHING)


def test_a_country_s_rules_are_not_taken_for_a_missing_permission() -> None:
    known = Circumstances(clock_error_s=0.1, has_worked=True)
    permission = Verdict(Means.ADDRESS, "x", Whose.UPSTREAM, "", others=(Means.PERMISSION,))
    country = Verdict(Means.COUNTRY, "x", Whose.UPSTREAM, "", others=(Means.PERMISSION,))
    assert "most likely it lacks a permission" in evidence(permission, known)
    assert evidence(country, known) == "the key was accepted for other requests since the start"
