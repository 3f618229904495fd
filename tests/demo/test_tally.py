"""What the demo counts, and how it contrasts the two teams."""

from contextlib import suppress
from dataclasses import dataclass

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from sealgate.demo.tally import (
    Count,
    Figures,
    Summary,
    Tally,
    Team,
    Waits,
    figures,
    rows,
    whole_windows,
)
from sealgate.sandbox.clock import Moment
from sealgate.sandbox.journal import Journal
from sealgate.sandbox.message import Reply, Request


@dataclass
class Watch:
    """A clock that the test moves."""

    time: float = 100.0

    def now(self) -> float:
        return self.time


def test_waits() -> None:
    watch = Watch()
    tally = Tally(watch.now)
    assert (tally.usual_wait_s, tally.longest_wait_s) == (0, 0)
    for method, seconds in (("GET", 1.0), ("DELETE", 2.0), ("POST", 6.0)):
        with tally.waiting(method):
            watch.time += seconds
    assert (tally.requests, tally.usual_wait_s, tally.longest_wait_s) == (3, 2.0, 6.0)
    assert tally.longest_cancel_s == 2.0


def test_a_wait_that_still_lasts_counts_among_the_longest() -> None:
    watch = Watch()
    tally = Tally(watch.now)
    with tally.waiting("DELETE"), tally.waiting("GET"):
        watch.time += 5
        assert tally.longest_wait_s == 5
        assert tally.usual_wait_s == 0
    assert tally.longest_cancel_s == 5


def test_a_wait_ends_with_an_error_too() -> None:
    watch = Watch()
    tally = Tally(watch.now)
    with suppress(ZeroDivisionError), tally.waiting("GET"):
        watch.time += 1 / 0
    watch.time += 50
    assert (tally.requests, tally.longest_wait_s) == (1, 0)


def received(journal: Journal, wall_ms: int, verdict: str, target: str = "/v1/trade/order") -> None:
    """Let an exchange receive a request, and settle it unless its verdict is `pending`."""
    request = Request("GET", target, CIMultiDictProxy(CIMultiDict[str]()), b"", "127.0.0.1")
    receipt = journal.receive(request, None, Moment(wall_ms, 0, 0.0))
    if verdict != "pending":
        receipt.settle(Reply(200, b"", verdict))


def test_a_count_of_signed_requests_by_window() -> None:
    journal, count = Journal(), Count(10.0)
    for wall_ms, verdict in ((9_999, "ok"), (10_000, "ok"), (12_000, "rate_limited"), (19_999, "ok")):
        received(journal, wall_ms, verdict)
    received(journal, 20_000, "ok", "/v1/trade/time")
    received(journal, 20_000, "ok", "/v1/stream/login")
    count.add(journal.newer(count.last))
    assert (dict(count.by_window), count.accepted, count.limited) == ({0: 1, 1: 2}, 3, 1)
    received(journal, 20_001, "invalid")
    count.add(journal.newer(count.last))
    assert (count.accepted, count.limited) == (3, 1)


def test_a_request_that_is_being_answered_is_counted_later() -> None:
    journal, count = Journal(), Count(1.0)
    received(journal, 0, "ok")
    received(journal, 1, "pending")
    received(journal, 2, "ok")
    count.add(journal.newer(count.last))
    assert count.accepted == 1
    journal.newer(count.last)[0].settle(Reply(200, b"", "ok"))
    count.add(journal.newer(count.last))
    assert count.accepted == 3


def team(*, has_accepted: bool = True) -> Team:
    """Return a team whose two bots waited 12.5 s for a cancel; the count is of windows of 10 s."""
    watch = Watch()
    tallies = {name: Tally(watch.now) for name in ("quick", "cancel")}
    for tally in tallies.values():
        with tally.waiting("DELETE"):
            watch.time += 12.5
        tally.unknown_orders = 1
    count = Count(10.0)
    count.limited = 30
    count.by_window.update({99: 30, 100: 200, 101: 198, 102: 2} if has_accepted else {})
    return Team(tallies, count)


def test_figures_take_counts_from_the_journal_and_waits_from_the_bots() -> None:
    found = figures(team(), range(100, 102), 10.0)
    assert (found.limited, found.limited_per_1000_accepted, found.accepted_per_s) == (30, 69.8, 19.9)
    assert (found.longest_cancel_s, found.unknown_orders) == (12.5, 2)
    assert found.waits == {"quick": Waits(12.5, 12.5), "cancel": Waits(12.5, 12.5)}


def test_nothing_accepted_has_no_rate_of_429s() -> None:
    assert figures(team(has_accepted=False), range(1, 2), 1.0).limited_per_1000_accepted is None


def test_a_run_without_a_whole_window_has_no_rate() -> None:
    assert figures(team(), range(100, 100), 10.0).accepted_per_s is None


@pytest.mark.parametrize(
    ("started_s", "ended_s", "window_s", "windows"),
    [
        (100.5, 103.5, 1.0, [101, 102]),
        (100.0, 103.0, 1.0, [101, 102]),  # nobody knows whether the bots were there from its beginning
        (100.9, 101.1, 1.0, []),
        (55.0, 185.0, 60.0, [1, 2]),
    ],
)
def test_whole_windows(started_s: float, ended_s: float, window_s: float, windows: list[int]) -> None:
    assert list(whole_windows(started_s, ended_s, window_s)) == windows


WAITS = {"quick": Waits(0.1, 0.984), "cancel": Waits(0.65, 1.86)}
OURS, THEIRS = Figures(0.81, 39, 195.0, 19.6, 0, WAITS), Figures(9.084, 100, None, 20.0, 2, WAITS)
SUMMARY = Summary(10.0, 20, 1, OURS, THEIRS)


def test_the_rows_for_people() -> None:
    assert [" ".join(row) for row in rows(SUMMARY)] == [
        "longest wait of a cancel 0.81 s 9.08 s",
        "429s from the exchange 39 100",
        "429s per 1000 accepted 195 -",
        "accepted/s, of 20.0 allowed 19.6 20.0",
        "orders of unknown fate 0 2",
        "waits of quick, p50 / max 0.10 / 0.98 s 0.10 / 0.98 s",
        "waits of cancel (orders too), p50 / max 0.65 / 1.86 s 0.65 / 1.86 s",
    ]
