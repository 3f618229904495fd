"""Reading one key's record out of the exchange's list."""

import json
import math
from dataclasses import replace

import pytest

from rig.verdicts import judged
from sealgate.keys.key_audit import OwnKey, audit
from sealgate.keys.key_records import (
    DAY_S,
    AuditEntry,
    KeyRecord,
    KeyState,
    ListedKey,
    find_record,
    list_audit,
    list_keys,
)
from sealgate.machine.findings import Level
from sealgate.request.key_health import (
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


def listed(**fields: object) -> bytes:
    return json.dumps({"keys": [7, {"api_key": "other"}, {"api_key": "ak-1", **fields}]}).encode()


@pytest.mark.parametrize(
    ("expires_at", "seconds"),
    [
        ("2027-01-31T12:00:00Z", 1_801_396_800.0),
        ("2027-01-31T12:00:00.500+00:00", 1_801_396_800.5),
        ("2027-01-31T12:00:00", 1_801_396_800.0),
        ("2027-01-31T14:00:00+02:00", 1_801_396_800.0),
        (None, None),
        ("", None),
        ("never", None),
        (0, None),
        ("9999-12-31T23:59:59Z", None),
        ("0001-01-01T00:00:00+23:00", None),
    ],
)
def test_until_when_it_holds(expires_at: object, seconds: float | None) -> None:
    assert find_record(listed(expires_at=expires_at), "ak-1") == KeyRecord(seconds, is_active=True)


@pytest.mark.parametrize(("stated", "is_active"), [(True, True), (False, False), (None, True)])
def test_whether_it_is_active(stated: bool | None, is_active: bool) -> None:
    assert find_record(listed(is_active=stated), "ak-1") == KeyRecord(None, is_active)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"keys": {}}', b'{"keys": []}', b"[" * 100_000])
def test_a_list_without_it(body: bytes) -> None:
    assert find_record(body, "ak-1") is None


def test_all_that_the_list_says() -> None:
    record = {
        "api_key": "ak-2",
        "label": "grid\x1b[2J",
        "permissions": ["read", "trade"],
        "ip_whitelist": ["203.0.113.0/24"],
        "created_at": "2027-01-31T12:00:00Z",
        "last_used_at": None,
        "expires_at": None,
        "is_active": True,
    }
    body = json.dumps(
        {"keys": [record, {"permissions": 7, "last_used_at": "2027-01-31T12:00:01Z"}, "ak-3"]}
    ).encode()
    assert list_keys(body) == [
        ListedKey(
            "ak-2",
            "grid [2J",
            ("read", "trade"),
            ("203.0.113.0/24",),
            1_801_396_800.0,
            None,
            KeyRecord(None, is_active=True),
        ),
        ListedKey("", "", (), (), None, 1_801_396_801.0, KeyRecord(None, is_active=True)),
    ]


def test_the_log_of_a_key() -> None:
    entry = {"action": "key_created", "ip_address": "203.0.113.7", "created_at": "2027-01-31T12:00:00Z"}
    body = json.dumps({"api_key": "ak-1", "audit": [entry | {"details": "x"}, {}, 7], "count": 2}).encode()
    assert list_audit(body) == [
        AuditEntry(1_801_396_800.0, "key_created", "203.0.113.7", "x"),
        AuditEntry(None, "", "", ""),
    ]


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"keys": {}, "audit": 7}', b"[" * 100_000])
def test_what_is_no_such_reply(body: bytes) -> None:
    assert list_keys(body) is None
    assert list_audit(body) is None


@pytest.mark.parametrize(
    ("days_left", "is_active", "state"),
    [
        (None, True, KeyState.GOOD),
        (7.0, True, KeyState.GOOD),
        (6.99, True, KeyState.ENDS_SOON),
        (0.01, True, KeyState.ENDS_SOON),
        (0.0, True, KeyState.ENDED),
        (-2.3, True, KeyState.ENDED),
        (-2.3, False, KeyState.ENDED),
        (3.0, False, KeyState.INACTIVE),
        (None, False, KeyState.INACTIVE),
    ],
)
def test_what_a_key_is(days_left: float | None, state: KeyState, *, is_active: bool) -> None:
    now = 1_800_000_000.0
    record = KeyRecord(None if days_left is None else now + days_left * 86_400.0, is_active)
    assert record.state(now) is state
    assert record.days_left(now) == (math.inf if days_left is None else pytest.approx(days_left))


NOW = 1_800_000_000.0
FAIL, WARN = Level.FAIL, Level.WARN
GOOD = ListedKey(
    api_key="ak-1",
    label="grid",
    permissions=("read", "trade"),
    ip_whitelist=("203.0.113.7",),
    created_at=NOW - 30 * DAY_S,
    last_used_at=NOW - 60.0,
    record=KeyRecord(NOW + 60 * DAY_S, is_active=True),
)
OWN = OwnKey("main", "ak-1", frozenset({"read", "trade"}))
READER = replace(OWN, may=frozenset({"read"}))
EXPIRED = KeyRecord(NOW - 3 * DAY_S, is_active=True)
EXPIRED_INACTIVE = KeyRecord(NOW - 3 * DAY_S, is_active=False)
REVOKED = KeyRecord(None, is_active=False)
SOON = KeyRecord(NOW + 2 * DAY_S, is_active=True)
BARE: dict[str, object] = {"ip_whitelist": ()}

CASES: dict[str, tuple[dict[str, object], OwnKey | None, list[tuple[str, Level]]]] = {
    "all is well": ({}, OWN, []),
    "no expiry": ({"record": KeyRecord(None, is_active=True)}, OWN, []),
    "expired": ({"record": EXPIRED}, OWN, [("expired", FAIL)]),
    "expired and inactive": ({"record": EXPIRED_INACTIVE}, OWN, [("expired", FAIL)]),
    "expired, nobody's here": ({"record": EXPIRED}, None, []),
    "revoked": ({"record": REVOKED, **BARE, "last_used_at": None}, OWN, [("revoked", FAIL)]),
    "revoked, nobody's here": ({"record": REVOKED, **BARE}, None, []),
    "ends soon": ({"record": SOON}, OWN, [("expires_soon", FAIL)]),
    "ends soon, nobody's here": ({"record": SOON}, None, [("expires_soon", WARN), ("not_here", WARN)]),
    "no whitelist": (BARE, OWN, [("no_whitelist", FAIL)]),
    "everybody is on it": ({"ip_whitelist": ("203.0.113.7", "0.0.0.0/0")}, OWN, [("no_whitelist", FAIL)]),
    "everybody is on it by IPv6": ({"ip_whitelist": ("::/0",)}, OWN, [("no_whitelist", FAIL)]),
    "no whitelist, reads only": ({**BARE, "permissions": ("read",)}, READER, [("no_whitelist", WARN)]),
    "too wide": ({}, READER, [("too_wide", WARN)]),
    "as wide as needed": ({"permissions": ("read",)}, READER, []),
    "too narrow": ({"permissions": ("read",)}, OWN, [("too_narrow", WARN)]),
    "too narrow, and at its end": ({"permissions": ("read",), "record": EXPIRED}, OWN, [("expired", FAIL)]),
    "nobody knows how wide": ({"permissions": ()}, OWN, []),
    "never used": ({"last_used_at": None}, OWN, [("never_used", WARN)]),
    "a little older than a day, and never used": (
        {"last_used_at": None, "created_at": NOW - 1.1 * DAY_S},
        OWN,
        [("never_used", WARN)],
    ),
    "new, and not used yet": ({"last_used_at": None, "created_at": NOW - DAY_S}, OWN, []),
    "nobody knows how old": ({"last_used_at": None, "created_at": None}, OWN, []),
    "old": ({"created_at": NOW - 365.1 * DAY_S}, OWN, [("old", WARN)]),
    "not old yet": ({"created_at": NOW - 365 * DAY_S}, OWN, []),
    "not here": ({}, None, [("not_here", WARN)]),
}


@pytest.mark.parametrize(("changes", "own", "found"), CASES.values(), ids=CASES)
def test_findings(changes: dict[str, object], own: OwnKey | None, found: list[tuple[str, Level]]) -> None:
    key = replace(GOOD, **changes)  # type: ignore[arg-type]  # the table's values fit
    findings = audit([key], [own] if own else [], NOW)
    assert [(finding.kind, finding.level) for finding in findings] == found
    assert all(finding.api_key == "ak-1" and finding.advice.endswith(".") for finding in findings)


def test_one_that_is_not_listed_and_the_order() -> None:
    gone = OwnKey("alt", "ak-2", frozenset())
    findings = audit([replace(GOOD, api_key="ak-3")], [gone], NOW)
    assert [(finding.kind, finding.level, finding.api_key) for finding in findings] == [
        ("not_listed", FAIL, "ak-2"),
        ("not_here", WARN, "ak-3"),
    ]


def test_the_worst_comes_first() -> None:
    strange = replace(GOOD, api_key="ak-3")
    key = replace(GOOD, ip_whitelist=(), last_used_at=None, record=SOON)
    assert [(one.api_key, one.level) for one in audit([strange, key], [OWN], NOW)] == [
        ("ak-1", FAIL),
        ("ak-1", FAIL),
        ("ak-3", WARN),
        ("ak-1", WARN),
    ]


def test_the_words_have_the_figures() -> None:
    key = replace(GOOD, created_at=NOW - 400 * DAY_S, last_used_at=None, record=SOON)
    assert [one.words for one in audit([key], [OWN], NOW)] == [
        "expires in 2.0 days",
        "was never used in 400 days",
        "is 400 days old",
    ]
    (expired,) = audit([replace(GOOD, record=EXPIRED)], [OWN], NOW)
    assert expired.words == "expired 3 days ago"


@pytest.mark.parametrize(("permissions", "can"), [(("read", "trade"), "trade"), (("read",), "read")])
def test_what_a_thief_can_do_is_said(permissions: tuple[str, ...], can: str) -> None:
    found, *_ = audit([replace(GOOD, ip_whitelist=(), permissions=permissions)], [OWN], NOW)
    assert found.words == f"has no whitelist: whoever steals its secret can {can} from anywhere"


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
