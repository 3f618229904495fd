"""The deadline that moves at no cost, on a loop whose time is moved by hand."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from sealgate.gateway.platform.alarm import Alarm

if TYPE_CHECKING:
    import asyncio


class Timer:
    """What the loop would call at a time."""

    def __init__(self, at: float, call: Callable[[], None]) -> None:
        self.at = at
        self.call = call
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class HandLoop:
    """As much of a loop as the alarm uses."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[Timer] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        self.timers.append(Timer(when, callback))
        return self.timers[-1]

    def go_to(self, now: float) -> None:
        """Let all timers up to a time go off, at their times."""
        while due := [timer for timer in self.timers if timer.at <= now and not timer.is_cancelled]:
            timer = min(due, key=lambda one: one.at)
            self.timers.remove(timer)
            self.now = timer.at
            timer.call()
        self.now = now


def alarm_on(loop: HandLoop, ring: Callable[[], object]) -> Alarm:
    return Alarm(cast("asyncio.AbstractEventLoop", loop), ring)


def test_it_rings_once_when_the_time_has_come() -> None:
    loop, rung = HandLoop(), list[float]()
    alarm = alarm_on(loop, lambda: rung.append(loop.now))
    alarm.set(5.0)
    assert alarm.is_set
    loop.go_to(4.9)
    assert rung == []
    loop.go_to(60.0)
    assert rung == [5.0]


def test_it_can_be_moved_either_way() -> None:
    loop, rung = HandLoop(), list[float]()
    alarm = alarm_on(loop, lambda: rung.append(loop.now))
    alarm.set(5.0)
    alarm.set(9.0)
    loop.go_to(8.9)
    assert rung == []
    alarm.set(8.95)
    loop.go_to(60.0)
    assert rung == [8.95]


def test_a_thousand_later_deadlines_need_one_timer() -> None:
    loop = HandLoop()
    alarm = alarm_on(loop, lambda: None)
    for number in range(1000):
        loop.now = number / 1000
        alarm.set(loop.now + 10.0)
    assert len(loop.timers) == 1


def test_taken_away_it_stays_silent() -> None:
    loop, rung = HandLoop(), list[float]()
    alarm = alarm_on(loop, lambda: rung.append(loop.now))
    alarm.set(5.0)
    alarm.set(math.inf)
    loop.go_to(6.0)
    alarm.set(7.0)
    alarm.stop()
    loop.go_to(60.0)
    assert rung == []
