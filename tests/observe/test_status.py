"""The state at one moment, in plain values, and what is forecast from it."""

import json
from dataclasses import asdict, replace

import pytest

from observe.test_picture import STATUS
from rig.verdicts import verdict
from sealgate.exchange.clock import ClockStatus
from sealgate.keys.key_health import BreakerState, KeyFault
from sealgate.keys.key_records import KeyRecord
from sealgate.limits.status import LimitStatus, PacerStatus, SharingStatus
from sealgate.observe.status import KeyStatus, Status, forecast, halt_status, key_status, notes
from sealgate.orders.doubts import JournalStatus
from sealgate.orders.halts import Halt, Halts, Origin, Scope
from sealgate.venues.routes import Lane

LIMIT = LimitStatus(
    20.0, 1.0, 0.5, 3, is_foreign_use=False, words="about 20 per 1 s", low=20.0, high=20.0, next_step=""
)
WAITING = {(Lane.ORDER, "grid"): 2, (Lane.ORDER, "maker"): 1, (Lane.CANCEL, "grid"): 1}

SHARING = SharingStatus(2, is_leader=False, degraded="Redis cannot be reached")


def test_who_waits_is_counted_by_lane_and_by_bot() -> None:
    key = key_status("main", PacerStatus(0.25, WAITING, (LIMIT,), None))
    assert key.waiting == {"cancel": 1, "order": 3, "read": 0}
    assert key.waiting_by_bot == {"grid": 3, "maker": 1}


def test_the_status_can_be_written_as_json() -> None:
    """The status page sends it as it is: plain values all the way down, unknown ones as null."""
    status = Status(
        version="1.0",
        base_url="https://api.example.com",
        uptime_s=1.5,
        not_ready=("clock not synced: no sample yet",),
        is_draining=False,
        inflight=1,
        connections=2,
        journal=JournalStatus(0, (), None, is_refusing=False),
        clock=ClockStatus(
            offset_s=None, error_s=None, age_s=None, steps=0, refusals=0, trouble="no sample yet"
        ),
        keys=(key_status("main", PacerStatus(0.25, {}, (LIMIT,), None, sharing=SHARING)),),
        halts=halt_status(Halts(Halt(Scope("grid"), 1, Origin(1000, 7, "a bad day")))),
        reloads={"ok": 1},
    )
    read = json.loads(json.dumps(asdict(status), allow_nan=False))
    assert read["not_ready"] == ["clock not synced: no sample yet"]
    assert read["clock"]["offset_s"] is None
    assert read["keys"] == [
        {
            "alias": "main",
            "pause_s": 0.25,
            "waiting": {"cancel": 0, "order": 0, "read": 0},
            "waiting_by_bot": {},
            "limits": [asdict(LIMIT)],
            "at_a_time": None,
            "spent_s": 0.0,
            "trouble": None,
            "trouble_advice": None,
            "disabled": None,
            "is_active": True,
            "expires_at": None,
            "sharing": {"replicas": 2, "is_leader": False, "degraded": "Redis cannot be reached"},
        }
    ]
    assert read["halts"] == [
        {
            "bot": "grid",
            "key": None,
            "exchange": None,
            "since_ms": 1,
            "words": "bot grid",
            "resume": "sealgate resume --bot grid",
            "uid": 1000,
            "pid": 7,
            "who": "user 1000, process 7",
            "reason": "a bad day",
        }
    ]
    assert read["reloads"] == {"ok": 1}


def test_trouble_comes_with_what_to_do_about_it() -> None:
    health = BreakerState().mismatched(verdict("signature_invalid").advice).confirmed()
    key = key_status("main", PacerStatus(0.0, {}, (), None), health)
    assert key.trouble == "the exchange refused its last signature"
    assert key.trouble_advice == verdict("signature_invalid").advice


def test_a_key_that_the_exchange_does_not_take() -> None:
    pacer = PacerStatus(0.0, {}, (), None)
    record = KeyRecord(1_801_396_800.0, is_active=True)
    refused = BreakerState().refused(KeyFault.INVALID, 0.0, 1.0)
    disabled = key_status("main", pacer, refused, record)
    assert (disabled.is_active, disabled.disabled) == (False, KeyFault.INVALID.value)
    listed = key_status("main", pacer, BreakerState(), record)
    assert (listed.is_active, listed.disabled, listed.expires_at) == (True, None, record.expires_at)
    assert not key_status("main", pacer, BreakerState(), KeyRecord(None, is_active=False)).is_active


SPARE = KeyStatus("main", 0.0, {"order": 0}, {}, (LIMIT,), None)  # 10 used of 20 per second
MINUTE = replace(LIMIT, n=1200.0, window_s=60.0)


def used(amount: float, limit: LimitStatus = LIMIT) -> KeyStatus:
    return replace(SPARE, limits=(replace(limit, used_ratio=amount / limit.n),))


@pytest.mark.parametrize(
    ("key", "rate", "in_s", "words"),
    [
        (SPARE, 5, None, "not at this pace"),
        (replace(SPARE, pause_s=2.5, waiting={"order": 3}), 5, None, "paused for 2.5 s more"),
        (
            replace(SPARE, spent_s=2.5, limits=()),
            5,
            None,
            "held off: the exchange says nothing is left for 2.5 s",
        ),
        (replace(SPARE, pause_s=0.5), 5, None, "paused for 0.5 s more"),
        (replace(SPARE, spent_s=0.5), 5, None, "held off: the exchange says nothing is left for 0.5 s"),
        (used(20.01), 20.01, None, "not at this pace"),  # it stays
        (SPARE, 20, 1.0, "in about 1 s at this pace"),  # just as much as the limit lets go
        (replace(SPARE, limits=()), 5, None, "no limit known yet"),
        (replace(SPARE, waiting={"order": 1}), 50, None, "held off: requests wait instead"),
        (SPARE, 30, 0.5, "in about 0 s at this pace"),
        (used(0, MINUTE), 30, 40, "in about 40 s at this pace"),
        (used(600, MINUTE), 30, 30, "in about 30 s at this pace"),
        (used(25), 26, 0, "in about 0 s at this pace"),
        (used(30), 25, None, "not at this pace"),  # it falls
    ],
)
def test_the_forecast(key: KeyStatus, rate: float, in_s: float | None, words: str) -> None:
    assert forecast(key, rate)[:2] == (in_s, words)


def test_what_people_must_know_of_a_gateway_that_serves() -> None:
    key = key_status("main", PacerStatus(0.0, {}, (), None))
    assert list(notes(STATUS)) == []
    halted = replace(STATUS, halts=halt_status(Halts(Halt(Scope("grid"), 1))))
    unread = replace(halted, clock=replace(STATUS.clock, trouble="connection refused"))
    refused = replace(
        unread, keys=(key, replace(key, alias="alt", trouble="the exchange refused its last 3 signatures"))
    )
    assert list(notes(refused)) == [
        "orders are halted",
        "clock: connection refused",
        "the key alt: the exchange refused its last 3 signatures",
    ]
