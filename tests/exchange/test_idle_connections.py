"""How long an idle connection carries an order, by what was announced and what was seen to close."""

import math

import pytest

from sealgate.exchange.idle_connections import IdleCloses, IdleLife, announced_life_s
from sealgate.http.headers import announced_timeout_s

ANNOUNCED = {
    b"timeout=5": 5.0,
    b"timeout=5, max=100": 5.0,
    b"max=100, TIMEOUT = 7": 7.0,
    b'timeout="3"': 3.0,
    b"timeout=0": 0.0,
    b"timeout=9,timeout=4": 4.0,
    b"max=100": None,
    b"": None,
    b"timeout=-1": None,
    b"timeout=soon": None,
    b"notimeout=5": None,
    b"timeout=1234567890": None,
}


@pytest.mark.parametrize(("field", "seconds"), ANNOUNCED.items(), ids=repr)
def test_what_a_keep_alive_field_announces(field: bytes, seconds: float | None) -> None:
    assert announced_timeout_s(field) == seconds


def test_the_round_trip_comes_off_what_is_announced() -> None:
    assert announced_life_s(1.0, 0.05) == pytest.approx(0.8)
    assert announced_life_s(1.0, 0.5) < 0
    assert announced_life_s(0.0, 0.0) == 0


@pytest.mark.parametrize("is_used", [True, False], ids=["used", "unused"])
def test_any_carries_an_order_until_one_is_seen_to_close(*, is_used: bool) -> None:
    idle = IdleCloses()
    assert idle.safe_s(0.0, is_used=is_used) == math.inf
    idle.closed(20.0, 0.0, is_used=is_used)
    assert idle.safe_s(1.0, is_used=is_used) == 10.0
    assert idle.safe_s(1.0, is_used=not is_used) == math.inf


def test_the_shortest_that_failed_counts() -> None:
    idle = IdleCloses()
    for seconds in (20.0, 4.0, 8.0):
        idle.closed(seconds, 0.0, is_used=True)
    assert idle.safe_s(0.0, is_used=True) == 2.0


@pytest.mark.parametrize("first", [0.0, 123.4])
def test_a_close_is_forgotten_after_five_to_ten_minutes(first: float) -> None:
    """A restart of the exchange closes all connections, however young."""
    idle = IdleCloses()
    idle.closed(50.0, first, is_used=True)
    idle.closed(0.1, first + 290.0, is_used=True)
    for after_s in (290.0, 310.0, 589.0):
        assert idle.safe_s(first + after_s, is_used=True) == 0.05
    idle.closed(4.0, first + 590.0, is_used=True)
    assert idle.safe_s(first + 620.0, is_used=True) == 2.0
    assert idle.safe_s(first + 1800.0, is_used=True) == math.inf


def survive(idle: IdleCloses, idle_s: float, times: int) -> None:
    for _ in range(times):
        idle.survived(idle_s, 1.0, is_used=True)


def test_a_hundred_that_live_longer_in_a_row_prove_otherwise() -> None:
    idle = IdleCloses()
    idle.closed(4.0, 0.0, is_used=True)
    survive(idle, 3.9, 200)
    survive(idle, 4.0, 99)
    assert idle.safe_s(1.0, is_used=True) == 2.0
    survive(idle, 4.0, 1)
    assert idle.safe_s(1.0, is_used=True) == math.inf


def test_one_that_is_closed_in_between_begins_the_count_anew() -> None:
    idle = IdleCloses()
    idle.closed(4.0, 0.0, is_used=True)
    survive(idle, 5.0, 99)
    idle.closed(6.0, 1.0, is_used=True)
    survive(idle, 5.0, 99)
    assert idle.safe_s(1.0, is_used=True) == 2.0
    survive(idle, 5.0, 1)
    assert idle.safe_s(1.0, is_used=True) == math.inf


def test_a_connection_that_was_opened_for_an_order_carries_it_whatever_was_seen_to_close() -> None:
    closes = IdleCloses()
    closes.closed(2.0, 0.0, is_used=False)
    life = IdleLife(closes, 0.1, 0.0)
    assert life.carries_order(5.0)
    life.rest(15.0, 0.0)
    assert (life.carries_order(0.5), life.carries_order(5.0)) == (True, False)
    assert life.lasts_s(0.5, share=0.8) == pytest.approx(0.3)


def test_a_connection_is_closed_after_the_setting_or_earlier_as_announced() -> None:
    closes = IdleCloses()
    life = IdleLife(closes, 0.1, 0.0)
    assert life.rest(15.0, 5.0) == 10.0
    life.answered(5.0, 10.0, 5.0)
    life.ended_request(6.0)
    assert life.rest(15.0, 7.0) == pytest.approx(7.8)
    assert IdleLife(closes, 0.1, 0.0).rest(15.0, 0.0) == pytest.approx(8.8), "others learn of it"
    life.answered(None, None, 8.0)
    assert life.rest(15.0, 7.0) == pytest.approx(7.8)


def test_a_close_counts_by_whether_the_connection_was_used_and_not_as_it_was_opened() -> None:
    closes = IdleCloses()
    life = IdleLife(closes, 0.1, 0.0)
    life.closed(4.0, 4.0)
    assert closes.safe_s(4.0, is_used=False) == math.inf
    life.rest(15.0, 4.0)
    life.closed(4.0, 4.0)
    assert (closes.safe_s(4.0, is_used=False), closes.safe_s(4.0, is_used=True)) == (2.0, math.inf)
    life.answered(5.0, None, 5.0)
    life.closed(6.0, 6.0)
    assert closes.safe_s(6.0, is_used=True) == 3.0


def test_a_connection_lasts_as_long_as_the_setting_where_no_close_was_seen() -> None:
    life = IdleLife(IdleCloses(), 0.1, 1.0)
    life.rest(15.0, 1.0)
    assert life.idle_s(4.0) == 3.0
    assert (life.lasts_s(4.0), life.lasts_s(4.0, 0.5)) == (12.0, 4.5)
    assert (life.carries_order(15.9), life.carries_order(16.0)) == (True, False)
