"""Reading one key's record out of the exchange's list."""

import json
import math

import pytest

from sealgate.core.key_records import (
    AuditEntry,
    KeyRecord,
    KeyState,
    ListedKey,
    find_record,
    list_audit,
    list_keys,
)


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
