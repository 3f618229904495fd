"""Each finding about an account's keys, and what is no finding."""

from dataclasses import replace

import pytest

from sealgate.core.findings import Level
from sealgate.core.key_audit import CHECKS, OwnKey, audit
from sealgate.core.key_records import DAY_S, KeyRecord, ListedKey

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


def test_every_check_has_a_case() -> None:
    assert {kind for _, _, found in CASES.values() for kind, _ in found} == set(CHECKS)


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
    assert found.words == f"has no whitelist: a thief of its secret can {can} from anywhere"
