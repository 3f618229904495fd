"""The log against the plain definition: a list that is summed anew each time."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealgate.limits import sent_log
from sealgate.limits.sent_log import SentLog

ENTRIES = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 3)), max_size=30)


def filled(steps: list[tuple[int, int]]) -> tuple[SentLog, list[tuple[float, float]]]:
    log, entries, now = SentLog(1e9), [], 0.0
    for later, cost in steps:
        now += later
        log.add(now, float(cost))
        entries.append((now, float(cost)))
    return log, entries


@given(ENTRIES, st.integers(-1, 100), st.none() | st.integers(-1, 100))
def test_a_window_holds_what_was_sent_in_it(
    steps: list[tuple[int, int]], since: int, until: int | None
) -> None:
    log, entries = filled(steps)
    end = math.inf if until is None else until
    assert log.all.count(since, until) == sum(cost for at, cost in entries if since < at <= end)


@given(ENTRIES, st.integers(0, 40))
def test_the_earliest_window_with_room(steps: list[tuple[int, int]], room: int) -> None:
    log, entries = filled(steps)
    since = log.all.room_since(room)
    assert log.all.count(since) <= room
    assert all(log.all.count(at - 1e-6) > room for at, _ in entries if at <= since)


@given(ENTRIES, st.data())
def test_what_is_taken_back_never_was(steps: list[tuple[int, int]], data: st.DataObject) -> None:
    log, entries = filled(steps)
    gone = data.draw(st.sampled_from(entries) if entries else st.just((1.0, 9.0)))
    log.remove(*gone)
    if entries:
        entries.remove(gone)
    for since in range(-1, 30):
        assert log.all.count(since) == sum(cost for at, cost in entries if at > since)


@given(ENTRIES, st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=9))
def test_what_is_told_late_counts_where_it_was_sent(
    steps: list[tuple[int, int]], told: list[tuple[int, bool]]
) -> None:
    log, entries = filled(steps)
    for at, is_read in told:
        log.add(float(at), 2.0, is_read=is_read)
    for since in range(-1, 31):
        reads = sum(2 for at, is_read in told if is_read and at > since)
        others = sum(2 for at, is_read in told if not is_read and at > since)
        others += sum(int(cost) for at, cost in entries if at > since)
        counts = [tally.count(since) for tally in (log.all, log.reads, log.others)]
        assert counts == [reads + others, reads, others]


def test_what_is_taken_back_leaves_the_other_class_as_it_was() -> None:
    log = SentLog(1e9)
    for at, is_read in ((1.0, False), (2.0, True), (3.0, False)):
        log.add(at, 1.0, is_read=is_read)
    log.remove(1.0, 1.0)
    assert [log.reads.count(since) for since in (1.0, 2.0)] == [1.0, 0.0]


def test_what_is_unknown_is_not_taken_back() -> None:
    log, _ = filled([(1, 1), (0, 2)])
    log.remove(1.0, 3.0)
    log.remove(0.5, 1.0)
    assert log.all.count(0.0) == 3.0


def test_the_old_is_forgotten_in_steps() -> None:
    log = SentLog(10.0)
    for second in range(2 * sent_log._PRUNE_EVERY + 2):
        log.add(float(second), 1.0)
    now = float(2 * sent_log._PRUNE_EVERY + 1)
    assert len(log._times) <= 20
    assert log.all.count(now - 10.0) == 10.0


def test_it_has_a_bound_however_much_is_sent_within_the_horizon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sent_log, "_MOST", 100)
    monkeypatch.setattr(sent_log, "_PRUNE_EVERY", 10)
    log = SentLog(1e9)
    lengths = []
    for second in range(1000):
        log.add(float(second), 2.0, is_read=second % 2 == 0)
        lengths.append(len(log._times))
    assert max(lengths) == 100 + 10  # as forgetting is done rarely
    assert log.all.count(999.0 - 50.0) == 2 * log.reads.count(999.0 - 50.0) == 100.0
