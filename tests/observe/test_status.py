"""The state at one moment, in plain values, and what is forecast from it."""

import json
from dataclasses import asdict, replace
from typing import Any

import pytest

from observe.test_picture import KEY, SPOT, STATUS
from rig.key_pools import member, only, place, pool
from rig.verdicts import verdict
from sealgate.exchange.clock import ClockStatus
from sealgate.keys.key_health import BreakerState, KeyFault
from sealgate.keys.key_records import KeyRecord
from sealgate.limits.status import LimitStatus, PacerStatus, PoolStatus, SharingStatus
from sealgate.observe.pools import PoolState
from sealgate.observe.status import KeyStatus, Status, forecast, halt_status, key_status, notes
from sealgate.orders.doubts import JournalStatus
from sealgate.orders.halts import Halt, Halts, Origin, Scope
from sealgate.venues.routes import Lane

LIMIT = LimitStatus(
    20.0, 1.0, 0.5, 3, is_foreign_use=False, words="about 20 per 1 s", low=20.0, high=20.0, next_step=""
)
WAITING = {
    ("main", Lane.ORDER, "grid"): 2,
    ("main", Lane.ORDER, "maker"): 1,
    ("main", Lane.CANCEL, "grid"): 1,
    ("alt", Lane.READ, "grid"): 9,
}
PAUSED = {place("all"): PoolStatus(0.25, (LIMIT,))}
SHARING = SharingStatus(2, is_leader=False, degraded="Redis cannot be reached")


IDLE = PacerStatus({}, {})
UNREAD = ClockStatus(None, None, None, steps=0, refusals=0, trouble="no sample yet")


def test_who_waits_is_counted_by_lane_and_by_bot() -> None:
    key = key_status("main", "spot", PacerStatus(WAITING, {}), member())
    assert key.waiting == {"cancel": 1, "order": 3, "read": 0}
    assert key.waiting_by_bot == {"grid": 3, "maker": 1}


def test_the_status_can_be_written_as_json() -> None:
    """The status page sends it as it is: plain values all the way down, unknown ones as null."""
    status = Status(
        version="1.0",
        uptime_s=1.5,
        is_draining=False,
        inflight=1,
        connections=2,
        journal=JournalStatus(0, (), None, is_refusing=False),
        exchanges=(
            replace(
                SPOT,
                not_ready=("clock not synchronized: no sample yet",),
                clock=UNREAD,
                keys=(key_status("main", "spot", PacerStatus({}, PAUSED, SHARING), member()),),
            ),
        ),
        halts=halt_status(Halts(Halt(Scope("grid"), 1, Origin(1000, 7, "a bad day")))),
        reloads={"ok": 1},
    )
    read = json.loads(json.dumps(asdict(status), allow_nan=False))
    (exchange,) = read["exchanges"]
    assert exchange["not_ready"] == ["clock not synchronized: no sample yet"]
    assert exchange["clock"]["offset_s"] is None
    assert exchange["keys"] == [
        {
            "alias": "main",
            "exchange": "spot",
            "pause_s": 0.25,
            "waiting": {"cancel": 0, "order": 0, "read": 0},
            "waiting_by_bot": {},
            "pools": [
                {
                    "pool": "all",
                    "of": "",
                    "passes": "all requests",
                    "is_whole": True,
                    "lanes": [],
                    "is_shared": False,
                    "state": "closed",
                    "pause_s": 0.25,
                    "limits": [asdict(LIMIT)],
                    "at_a_time": None,
                    "spent_s": 0.0,
                    "cost_per_s": 0.0,
                }
            ],
            "more_pools": 0,
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
    key = key_status("main", "spot", IDLE, member(), health)
    assert key.trouble == "the exchange refused its last signature"
    assert key.trouble_advice == verdict("signature_invalid").advice


def test_a_key_that_the_exchange_does_not_take() -> None:
    record = KeyRecord(1_801_396_800.0, is_active=True)
    refused = BreakerState().refused(KeyFault.INVALID, 0.0, 1.0)
    disabled = key_status("main", "spot", IDLE, member(), refused, record)
    assert (disabled.is_active, disabled.disabled) == (False, KeyFault.INVALID.value)
    listed = key_status("main", "spot", IDLE, member(), BreakerState(), record)
    assert (listed.is_active, listed.disabled, listed.expires_at) == (True, None, record.expires_at)
    assert not key_status(
        "main", "spot", IDLE, member(), BreakerState(), KeyRecord(None, is_active=False)
    ).is_active


SPARE = KeyStatus("main", "spot", 0.0, {"order": 0}, {}, only(LIMIT))  # 10 used of 20 per second
MINUTE = replace(LIMIT, n=1200.0, window_s=60.0)


def used(amount: float, limit: LimitStatus = LIMIT) -> LimitStatus:
    return replace(limit, used_ratio=amount / limit.n)


def at(cost_per_s: float, limit: LimitStatus = LIMIT, **changes: Any) -> KeyStatus:
    return replace(SPARE, pools=only(limit, cost_per_s=cost_per_s), **changes)


@pytest.mark.parametrize(
    ("key", "in_s", "words"),
    [
        (at(5), None, "not at this pace"),
        (at(5, pause_s=2.5, waiting={"order": 3}), None, "paused for 2.5 s more"),
        (
            replace(SPARE, pools=only(spent_s=2.5)),
            None,
            "held off: limit used up (exchange), 2.5 s left",
        ),
        (at(20.01, used(20.01)), None, "not at this pace"),  # it stays
        (at(20), 1.0, "in about 1 s at this pace"),  # just as much as the limit lets go
        (replace(SPARE, pools=only(cost_per_s=5.0)), None, "no limit known yet"),
        (at(50, waiting={"order": 1}), None, "held off: requests wait instead"),
        (at(30), 0.5, "in about 0 s at this pace"),
        (at(30, used(0, MINUTE)), 40, "in about 40 s at this pace"),
        (at(30, used(600, MINUTE)), 30, "in about 30 s at this pace"),
        (at(26, used(25)), 0, "in about 0 s at this pace"),
        (at(25, used(30)), None, "not at this pace"),  # it falls
    ],
)
def test_the_forecast(key: KeyStatus, in_s: float | None, words: str) -> None:
    assert forecast(key)[:2] == (in_s, words)


ORDERS = pool(used(0, MINUTE), pool="orders", lanes=("order",), cost_per_s=30.0)


def test_the_forecast_of_several_pools_is_that_of_the_first_to_be_full() -> None:
    weight = pool(used(600, MINUTE), pool="weight", is_whole=True, cost_per_s=25.0)
    unknown = pool(pool="path", of="GET /x", cost_per_s=99.0)
    key = replace(SPARE, pools=(unknown, ORDERS, weight))
    assert forecast(key)[:2] == (40, "in about 40 s at this pace (orders)")
    assert forecast(replace(key, pools=(unknown, ORDERS, replace(weight, cost_per_s=30.0))))[1] == (
        "in about 30 s at this pace (weight)"
    )


def test_a_closed_pool_has_no_429_to_come() -> None:
    closed = replace(ORDERS, state=PoolState.CLOSED, pause_s=7.0)
    assert forecast(replace(SPARE, pools=(closed, pool(LIMIT, pool="weight"))))[1] == "not at this pace"


def test_a_closed_pool_is_noted_and_is_not_a_pause() -> None:
    closed = replace(ORDERS, state=PoolState.CLOSED, pause_s=6.2)
    key = replace(SPARE, pools=(pool(LIMIT, pool="weight", is_whole=True), closed))
    status = replace(STATUS, exchanges=(replace(SPOT, keys=(key,)),))
    assert list(notes(status)) == ["the key main, orders: closed for 7 s; cancels and reads go on"]
    public = pool(pool="public", passes="requests without a key", pause_s=1.0)
    status = replace(STATUS, exchanges=(replace(SPOT, open_pools=(public, pool(LIMIT, pool="book"))),))
    assert list(notes(status)) == ["requests without a key, public: closed for 1 s"]


def test_what_people_must_know_of_a_gateway_that_serves() -> None:
    key = key_status("main", "spot", IDLE, member())
    assert list(notes(STATUS)) == []
    halted = replace(STATUS, halts=halt_status(Halts(Halt(Scope("grid"), 1))))
    alt = replace(key, alias="alt", trouble="the exchange refused its last 3 signatures")
    unread = replace(SPOT.clock, trouble="connection refused")
    refused = replace(halted, exchanges=(replace(SPOT, clock=unread, keys=(key, alt)),))
    assert list(notes(refused)) == [
        "orders are halted",
        "clock: connection refused",
        "the key alt: the exchange refused its last 3 signatures",
    ]


# Several exchanges.

LATE_CLOCK = ClockStatus(0.5, 0.040, 3.0, 0, 0, None)
PERP = replace(SPOT, name="perp", base_url="https://perp.example.com", clock=LATE_CLOCK, keys=())
DOWN = replace(PERP, clock=UNREAD, not_ready=("clock not synchronized: no sample yet",))
BOTH, HALF = replace(STATUS, exchanges=(SPOT, PERP)), replace(STATUS, exchanges=(SPOT, DOWN))


def test_one_exchange_that_is_ready_is_enough_and_the_others_are_noted() -> None:
    assert (HALF.not_ready, BOTH.not_ready) == ((), ())
    assert list(notes(HALF)) == ["perp is not ready: clock not synchronized: no sample yet"]
    none = replace(HALF, exchanges=(replace(SPOT, not_ready=("the key main is disabled",)), DOWN))
    assert none.not_ready == ("spot: the key main is disabled", "perp: clock not synchronized: no sample yet")


def test_what_stops_the_gateway_stops_each_exchange() -> None:
    assert replace(HALF, is_draining=True).about(SPOT).not_ready == ("shutting down",)
    journal = replace(STATUS.journal, trouble="disk full", is_refusing=True)
    stopped = replace(HALF, journal=journal)
    assert stopped.not_ready == ("the journal cannot be written: disk full",)
    assert stopped.about(DOWN).not_ready == (
        "the journal cannot be written: disk full",
        "clock not synchronized: no sample yet",
    )


def test_notes_name_the_exchange() -> None:
    key = replace(KEY, exchange="perp", trouble="the exchange refused its last 3 signatures")
    perp = replace(PERP, clock=replace(LATE_CLOCK, trouble="connection refused"), keys=(key,))
    assert list(notes(replace(STATUS, exchanges=(SPOT, perp)))) == [
        "perp: clock: connection refused",
        "perp: the key main: the exchange refused its last 3 signatures",
    ]


def test_what_used_to_be_about_one_exchange_is_about_all() -> None:
    assert BOTH.base_url == "https://api.example.com https://perp.example.com"
    assert (BOTH.clock, HALF.clock) == (LATE_CLOCK, UNREAD)
    assert BOTH.keys == SPOT.keys
    assert (BOTH.exchange("perp"), BOTH.exchange("swap")) == (PERP, None)


def test_a_halt_at_one_exchange_is_not_about_the_other() -> None:
    halts = Halts(Halt(Scope("grid", None, "perp"), 1), Halt(Scope(None, "main"), 2))
    halted = replace(BOTH, halts=halt_status(halts))
    assert [halt.exchange for halt in halted.about(PERP).halts] == ["perp", None]
    assert [halt.exchange for halt in halted.about(SPOT).halts] == [None]
