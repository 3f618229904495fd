"""What replies say of a key: when it is in doubt, disabled, tried again, and good."""

import pytest

from rig.verdicts import judged
from sealgate.keys.key_health import (
    DOUBT_GAP_S,
    FIRST_GAP_S,
    MANY_MISMATCHES,
    BreakerState,
    KeyFault,
    KeyVerdict,
    is_mismatch,
    judge_key,
    key_fault,
)
from sealgate.venues.replies import Verdict

INVALID = b'{"detail": "Invalid API key"}'
ADDRESS = b'{"detail": "IP 203.0.113.7 not in API key whitelist"}'
SIGNATURE = b'{"detail": "Invalid HMAC signature"}'
TIMESTAMP = b'{"detail": "Timestamp outside recv_window (5000ms). Server time: 1700000000000"}'
SCOPE = b'{"detail": "API key lacks \'trade\' permission"}'


def reply(status: int) -> tuple[int, Verdict]:
    return status, judged(status)


@pytest.mark.parametrize(
    ("status", "body", "fault", "verdict"),
    [
        (200, b"{}", None, KeyVerdict.ACCEPTED),
        (401, INVALID, KeyFault.INVALID, KeyVerdict.REFUSED),
        (401, SIGNATURE, None, KeyVerdict.REFUSED),
        (401, TIMESTAMP, None, KeyVerdict.UNSURE),
        (403, ADDRESS, KeyFault.ADDRESS, KeyVerdict.REFUSED),
        (401, INVALID.lower(), KeyFault.INVALID, KeyVerdict.REFUSED),
        (401, TIMESTAMP.upper().replace(b"DETAIL", b"detail"), None, KeyVerdict.UNSURE),
        (401, b'{"detail":"Invalid timestamp"}', None, KeyVerdict.UNSURE),
        (401, b"", None, KeyVerdict.REFUSED),
        (403, ADDRESS.lower(), KeyFault.ADDRESS, KeyVerdict.REFUSED),
        (200, INVALID, None, KeyVerdict.ACCEPTED),
        (403, SCOPE, None, KeyVerdict.UNSURE),
        (403, b'{"detail": "Address mismatch"}', None, KeyVerdict.UNSURE),
        (400, INVALID, None, KeyVerdict.UNSURE),
        (429, b"", None, KeyVerdict.UNSURE),
        (503, INVALID, None, KeyVerdict.UNSURE),
    ],
)
def test_what_a_reply_says_of_its_key(
    status: int, body: bytes, fault: KeyFault | None, verdict: KeyVerdict
) -> None:
    assert (key_fault(judged(status, body)), judge_key(status, judged(status, body))) == (fault, verdict)


def test_signatures_that_are_refused_in_a_row_are_trouble_and_disable_nothing() -> None:
    health = BreakerState()
    for _ in range(MANY_MISMATCHES):
        assert health.trouble is None
        health = health.mismatched()
    assert health.trouble == "the exchange refused its last 3 signatures"
    assert health.fault is None
    assert health.answered(*reply(429), 0.0, 1.0).trouble is not None
    assert health.answered(*reply(400), 0.0, 1.0) == BreakerState()
    assert health.refused(KeyFault.INVALID, 0.0, 1.0).trouble is None


def test_one_refused_signature_of_the_gateways_own_read_is_trouble() -> None:
    assert BreakerState().confirmed() == BreakerState()  # a bot's was taken in the meantime
    health = BreakerState().mismatched().confirmed()
    assert health.trouble == "the exchange refused its last signature"
    assert health.mismatched().trouble == "the exchange refused its last 2 signatures"
    assert health.answered(*reply(200), 0.0, 1.0) == BreakerState(is_proven=True)
    assert health.refused(KeyFault.INVALID, 0.0, 1.0).trouble is None


@pytest.mark.parametrize(
    ("status", "body", "is_one"),
    [
        (401, SIGNATURE, True),
        (401, b'{"detail": "Missing API key auth headers"}', True),
        (401, INVALID, False),
        (401, TIMESTAMP, False),
        (403, SIGNATURE, False),
        (200, SIGNATURE, False),
    ],
)
def test_which_reply_refuses_a_signature(status: int, body: bytes, is_one: bool) -> None:
    assert is_mismatch(judged(status, body)) is is_one


def disabled(now: float = 100.0) -> BreakerState:
    return BreakerState().refused(KeyFault.INVALID, now - 1, now)


PROVEN = BreakerState().answered(*reply(200), 0.0, 1.0)


def test_a_healthy_key_is_not_tried() -> None:
    health = BreakerState()
    assert health == BreakerState(None, 0.0, 0.0, 0)
    assert not health.is_trial_due(1e9)
    assert health.answered(*reply(404), 0.0, 1.0) is health


def test_a_reply_that_speaks_against_a_key_disables_nothing_and_wants_a_read_at_once() -> None:
    for good in (BreakerState(), PROVEN):
        health = good.doubted(KeyFault.INVALID, 9.0, 10.0)
        assert (health.fault, health.doubt) == (None, KeyFault.INVALID)
        assert health.is_trial_due(10.0)
        assert health.doubted(KeyFault.ADDRESS, 11.0, 12.0) is health
        assert health.answered(*reply(503), 11.0, 12.0) is health


def test_a_key_in_doubt_is_disabled_once_the_gateways_own_read_is_refused_too() -> None:
    health = PROVEN.doubted(KeyFault.INVALID, 9.0, 10.0).tried(10.0)
    refused = health.refused(KeyFault.ADDRESS, 10.0, 11.0)
    assert (refused.fault, refused.doubt, refused.since) == (KeyFault.ADDRESS, None, 11.0)


def test_one_refusal_of_the_gateways_own_disables_no_key_that_has_worked() -> None:
    """As with a bot's: an exchange may say it by mistake. It is asked once more."""
    assert PROVEN.refused(KeyFault.INVALID, 9.0, 10.0) is PROVEN
    asked = PROVEN.doubted(KeyFault.INVALID, 9.0, 10.0)
    assert asked.refused(KeyFault.INVALID, 9.0, 10.0) is asked
    assert asked.refused(KeyFault.INVALID, 10.0, 11.0).fault is KeyFault.INVALID


def test_any_reply_that_shows_that_the_key_was_taken_ends_the_doubt() -> None:
    health = PROVEN.doubted(KeyFault.INVALID, 9.0, 10.0)
    for status in (200, 404):
        over = health.answered(*reply(status), 10.5, 11.0)
        assert (over.doubt, over.is_trial_due(1e9)) == (None, False)
        assert over.doubted(KeyFault.INVALID, 10.9, 11.1) is over  # sent before that was known
    assert health.answered(*reply(200), 9.9, 11.0) is health


def test_a_key_in_doubt_is_not_read_with_all_the_time() -> None:
    health = PROVEN.doubted(KeyFault.INVALID, 9.0, 10.0).tried(10.0).answered(*reply(200), 10.0, 11.0)
    again = health.doubted(KeyFault.INVALID, 12.0, 12.5)
    assert not again.is_trial_due(10.0 + DOUBT_GAP_S - 0.1)
    assert again.is_trial_due(10.0 + DOUBT_GAP_S)


@pytest.mark.parametrize(
    ("status", "is_proven"),
    [
        (200, True),
        (302, True),
        (400, False),
        (401, False),
        (403, False),
        (404, False),
        (429, False),
        (503, False),
    ],
)
def test_which_reply_proves_a_key(status: int, is_proven: bool) -> None:
    for unproven in (BreakerState(), BreakerState().mismatched(), disabled(100.0)):
        assert unproven.answered(*reply(status), 105.0, 106.0).is_proven is is_proven


def test_a_key_is_unknown_until_it_is_proven_or_at_fault() -> None:
    assert BreakerState().is_unknown
    assert BreakerState().mismatched().is_unknown
    assert not disabled().is_unknown
    proven = BreakerState().answered(*reply(200), 0.0, 1.0)
    assert not proven.is_unknown
    assert proven.answered(*reply(200), 2.0, 3.0) is proven
    assert proven.answered(*reply(404), 2.0, 3.0) is proven
    assert proven.mismatched().answered(*reply(404), 2.0, 3.0) == proven
    refused = proven.doubted(KeyFault.INVALID, 1.5, 2.0).refused(KeyFault.INVALID, 2.0, 3.0)
    assert not refused.is_proven
    assert refused.answered(*reply(404), 3.0, 4.0).is_unknown


def test_a_refused_key_rests_then_one_trial_goes() -> None:
    health = disabled(100.0)
    assert not health.is_trial_due(100.0 + FIRST_GAP_S - 0.1)
    assert health.is_trial_due(100.0 + FIRST_GAP_S)
    tried = health.tried(100.0 + FIRST_GAP_S)
    assert not tried.is_trial_due(100.0 + FIRST_GAP_S)
    assert tried.is_trial_due(100.0 + 2 * FIRST_GAP_S)  # nothing was heard of the trial


def test_the_distances_grow_and_have_an_end() -> None:
    health, now, gaps = disabled(), 100.0, []
    for _ in range(12):
        gaps.append(health.gap_s)
        now = health.trial_at
        health = health.tried(now).refused(KeyFault.INVALID, now, now)
    assert gaps[:4] == [5.0, 10.0, 20.0, 40.0]
    assert gaps[-1] == 600.0
    assert health.since == 100.0


def test_what_was_under_way_when_it_was_disabled_says_nothing_new() -> None:
    health = disabled(100.0)
    assert health.doubted(KeyFault.ADDRESS, 99.9, 100.5) is health
    assert health.answered(*reply(200), 99.9, 100.5) is health


def test_what_was_sent_at_the_very_moment_counts() -> None:
    health = disabled(100.0)
    assert health.refused(KeyFault.INVALID, 100.0, 100.5).failures == 2
    assert health.answered(*reply(200), 100.0, 100.5).fault is None


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503])
def test_a_reply_that_may_come_before_the_key_was_looked_at_does_not_end_it(status: int) -> None:
    health = disabled(100.0)
    assert health.answered(*reply(status), 105.0, 106.0) is health


@pytest.mark.parametrize("status", [200, 400, 404, 422])
def test_a_trial_that_is_taken_ends_it(status: int) -> None:
    health = disabled(100.0).tried(105.0).answered(*reply(status), 105.0, 106.0)
    assert health.fault is None


def test_a_key_that_comes_and_goes_is_tried_ever_less() -> None:
    back = disabled(100.0).answered(*reply(200), 105.0, 106.0)
    for doubted_at, failures in ((107.0, 2), (111.0, 2), (112.0, 1)):
        health = back.doubted(KeyFault.INVALID, 106.5, doubted_at)
        assert health.refused(KeyFault.INVALID, doubted_at, 120.0).failures == failures
    assert (back.since, back.trial_at) == (106.0, 0.0)
