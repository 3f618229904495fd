"""What is advised by more than one, and that it is the same."""

import pytest

from rig.verdicts import verdict
from sealgate.core.findings import REACH, RENEW, sentence
from sealgate.core.key_audit import CHECKS
from sealgate.core.key_records import KeyRecord
from sealgate.core.vetting import vet_record
from sealgate.errors import REASONS


def test_who_cannot_reach_the_exchange_is_told_the_same() -> None:
    told = REASONS["upstream_unreachable"].advice
    assert verdict("unreachable").advice == told
    assert told.replace("`", "") == sentence(REACH)


@pytest.mark.parametrize("is_active", [False, True])
def test_a_key_that_is_over_is_renewed_the_same_way(*, is_active: bool) -> None:
    assert vet_record("keys.main", KeyRecord(1.0, is_active), 2.0).fix == RENEW
    assert CHECKS["expired"].advice == sentence(RENEW)
