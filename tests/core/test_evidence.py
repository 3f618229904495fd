"""What is known about an error stands beside it: here what the exchange itself says."""

import pytest

from sealgate.core.evidence import Known, evidence
from sealgate.core.venues.replies import Means, Verdict, Whose

NOTHING = Known(clock_error_s=None, has_worked=False)


@pytest.mark.parametrize("means", [Means.BANNED, Means.COUNTRY])
def test_who_is_shut_out_reads_the_exchanges_words(means: Means) -> None:
    verdict = Verdict(means, means.value, Whose.UPSTREAM, "", words="IP has been\nbanned")
    assert evidence(verdict, NOTHING) == 'the exchange says: "IP has been banned"'
    assert not evidence(Verdict(means, means.value, Whose.UPSTREAM, ""), NOTHING)
