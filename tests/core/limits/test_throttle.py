"""An event: when it began, and between which moments the limiter gave way."""

import math

from sealgate.core.limits.throttle import ThrottleEvent


def test_waits_that_are_stated_in_whole_seconds_are_intersected() -> None:
    event = ThrottleEvent(10.0, 10.01, is_read=True, tried=None)
    event.refused(10.0, 1.0, 3.0, 1.0)
    event.refused(10.6, 1.0, 3.0, 1.0)
    assert (event.earliest, event.latest) == (12.6, 13.0)
    event.ended(12.8)
    assert (event.earliest, event.latest, event.wait_s) == (12.6, 12.8, 12.6 - 10.0)


def test_what_may_have_overtaken_the_first_belongs_before_it() -> None:
    event = ThrottleEvent(10.0, 10.02, is_read=True, tried=None)
    event.refused(10.01, 1.0, None, 1.0)
    assert event.refused_at == 10.01


def test_without_a_stated_wait_the_last_refusal_is_the_earliest() -> None:
    event = ThrottleEvent(10.0, 10.0, is_read=True, tried=None)
    event.refused(10.0, 1.0, None, 1.0)
    event.refused(11.0, 1.0, None, 1.0)
    assert (event.earliest, event.latest) == (11.0, math.inf)
    event.ended(12.0)
    assert event.ended_at == 11.5


def test_a_refusal_after_the_stated_end_begins_a_new_interval() -> None:
    event = ThrottleEvent(10.0, 10.0, is_read=True, tried=None)
    event.refused(10.0, 1.0, 1.0, 0.0)
    event.refused(11.5, 1.0, 2.0, 0.0)
    assert (event.earliest, event.latest) == (13.5, 13.5)


def test_two_waits_that_cannot_both_be_true_say_nothing() -> None:
    event = ThrottleEvent(10.0, 10.0, is_read=True, tried=None)
    event.refused(10.0, 1.0, 5.0, 0.0)
    event.refused(10.0, 1.0, 5.4, 0.0)
    assert event.latest == 15.0
    event.refused(10.1, 1.0, 9.0, 0.0)
    event.refused(10.2, 1.0, 5.0, 0.0)
    event.ended(19.0)
    assert event.is_lie
    assert (event.earliest, event.latest) == (10.2, 19.0)
