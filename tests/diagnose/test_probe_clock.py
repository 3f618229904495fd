"""The exchange's time as a command knows it: by replies of `/time`, by refusals, or not at all."""

import math

import pytest

from rig.admitted import answer
from rig.hand_host import EPOCH, OUTSIDE, HandHost
from rig.verdicts import judged
from sealgate.diagnose.probe import CommandClock


@pytest.fixture
def host() -> HandHost:
    return HandHost()


def test_as_long_as_nothing_is_known_the_hosts_clock_stands_in(host: HandHost) -> None:
    clock = CommandClock("", host)
    assert not clock.is_synced
    assert clock.error_s() == math.inf
    assert (clock.offset_s(), clock.server_now()) == (0.0, EPOCH)
    assert clock.timestamp_ms(host.boot) == EPOCH * 1000


def test_a_reply_of_time_sets_it(host: HandHost) -> None:
    clock = CommandClock("/now", host)
    assert clock.take(answer(200, b'{"now": %d}' % (EPOCH * 1000 + 90_000)), sent=host.boot - 0.02) == ""
    assert clock.is_synced
    assert clock.offset_s() == pytest.approx(90.0, abs=0.05)
    assert clock.error_s() < 0.05
    assert clock.timestamp_ms(host.boot) == pytest.approx(EPOCH * 1000 + 90_000, abs=50)
    host.move(10.0, 10.0, 10.0)
    assert clock.server_now() == pytest.approx(EPOCH + 100.0, abs=0.05)


@pytest.mark.parametrize("reply", [answer(503), answer(200, b"{}")], ids=["another status", "no time"])
def test_what_has_no_time_is_told_and_changes_nothing(host: HandHost, reply: object) -> None:
    assert isinstance(reply, type(answer(200)))
    clock = CommandClock("", host)
    assert clock.take(reply, host.boot)
    assert not clock.is_synced


def test_a_refusal_that_states_the_time_sets_it(host: HandHost) -> None:
    clock = CommandClock("", host)
    clock.refused(judged(401, OUTSIDE), host.boot - 0.02)
    assert clock.offset_s() == pytest.approx(60.0, abs=0.05)


def test_one_that_states_none_says_nothing(host: HandHost) -> None:
    clock = CommandClock("", host)
    clock.refused(judged(401, b'{"detail": "Invalid timestamp"}'), host.boot)
    assert not clock.is_synced
