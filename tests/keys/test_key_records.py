"""What the exchange's list says of keys, and what is wrong with them."""

import json
import math
from dataclasses import replace

import pytest

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
    assert found.words == f"has no whitelist: anybody who steals its secret can {can} from anywhere"
