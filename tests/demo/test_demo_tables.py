"""What the demo counts and prints, without running it."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from io import StringIO

import pytest
from rich.console import Console

from sealgate.demo import show
from sealgate.demo.bots import BOTS
from sealgate.demo.scene import Column, Picture
from sealgate.demo.tally import (
    Count,
    DemoKey,
    Figures,
    Summary,
    Tally,
    Waits,
    figures,
    in_a_sentence,
    whole_windows,
)


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


def team() -> Mapping[str, Tally]:
    """Return the tallies of four bots with large numbers in them."""
    watch = Watch()
    tallies = {name: Tally(watch.now) for name in BOTS}
    for tally in tallies.values():
        with tally.waiting("DELETE"):
            watch.time += 12.5
        tally.requests, tally.accepted, tally.limited, tally.unknown_orders = 123_456, 123_400, 4321, 1
    return tallies


COUNT = Count(accepted=430, limited=30, by_window={99: 30, 100: 200, 101: 198, 102: 2})


def test_figures_take_counts_from_the_journal_and_waits_from_the_bots() -> None:
    found = figures(COUNT, range(100, 102), 10.0, team())
    assert (found.limited, found.limited_per_1000_accepted, found.accepted_per_s) == (30, 69.8, 19.9)
    assert (found.longest_cancel_s, found.unknown_orders) == (12.5, 4)
    assert found.waits == dict.fromkeys(BOTS, Waits(12.5, 12.5))


def test_nothing_accepted_has_no_rate_of_429s() -> None:
    assert figures(Count(0, 5), range(1, 2), 1.0, team()).limited_per_1000_accepted is None


def test_a_run_without_a_whole_window_has_no_rate() -> None:
    assert figures(COUNT, range(100, 100), 10.0, team()).accepted_per_s is None


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


PICTURE = Picture(
    elapsed_s=3599.9,
    key=DemoKey(pause_s=12.34, waiting=120, offset_s=-1.5001, error_s=0.0123),
    through=Column(team(), Count(2000, 30)),
    alone=Column(team(), Count(1900, 3000)),
)


def printed(renderable: object, width: int = 80) -> list[str]:
    file = StringIO()
    Console(file=file, width=width).print(renderable)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_the_live_table_fits_into_80_columns_and_24_lines_below_the_addresses() -> None:
    lines = printed(show.live(PICTURE))
    assert len(lines) <= 24 - 8
    assert not any("…" in line for line in lines)
    assert show.CAPTION in lines
    assert any(line.split() == ["through", "Sealgate", "weights", "4:2:1:2"] for line in lines)
    assert lines[0] == "3600 s   key paused 12.34 s   requests waiting 120   clock -1500.1 ms ± 12.3 ms"
    for name, bot in BOTS.items():
        rows = [line for line in lines if line.startswith(f"  {name} ")]
        assert len(rows) == 2
        assert all(bot.does in row and "123456" in row and "12.50 s" in row for row in rows)


def test_a_plain_line() -> None:
    assert show.plain(PICTURE) == (
        "3600 s  accepted 2000  429s 30  pause 12.34 s  waiting 120  clock -1500.1 ms ± 12.3 ms"
        "  | on its own: accepted 1900  429s 3000"
    )


def test_a_clock_that_is_not_synced_says_so() -> None:
    picture = Picture(0.0, DemoKey(), PICTURE.through, PICTURE.alone)
    assert "clock not synced yet" in show.plain(picture)


WAITS = {"quick": Waits(0.1, 0.984), "cancel": Waits(0.65, 1.86)}
OURS, THEIRS = Figures(0.81, 39, 195.0, 19.6, 0, WAITS), Figures(9.084, 100, None, 20.0, 2, WAITS)
SUMMARY = Summary(10.0, 20, 1, OURS, THEIRS)


def test_the_summary_for_people() -> None:
    file = StringIO()
    show.print_summary(Console(file=file, width=80), SUMMARY)
    lines = file.getvalue().splitlines()
    assert len(lines) < 24
    assert [" ".join(line.split()) for line in lines[2:9]] == [
        "longest wait of a cancel 0.81 s 9.08 s",
        "429s from the exchange 39 100",
        "429s per 1000 accepted 195 -",
        "accepted/s, of 20.0 allowed 19.6 20.0",
        "orders of unknown fate 0 2",
        "waits of quick, p50 / max 0.10 / 0.98 s 0.10 / 0.98 s",
        "waits of cancel (orders too), p50 / max 0.65 / 1.86 s 0.65 / 1.86 s",
    ]
    assert " ".join("".join(f"{line} " for line in lines[9:]).split()) == in_a_sentence(SUMMARY)


SENTENCES = {
    "better": (
        SUMMARY,
        (
            "shorter (0.81 s against 9.08 s), the 429s were fewer (39 against 100),"
            " and 98% of the limit was used (against 100%)."
        ),
    ),
    "worse": (
        Summary(10.0, 20, 1, THEIRS, OURS),
        (
            "longer (9.08 s against 0.81 s), the 429s were more (100 against 39),"
            " and 100% of the limit was used (against 98%)."
        ),
    ),
    "too short to tell": (
        Summary(0.5, 20, 1, NOTHING := Figures(0.0, 0, None, None, 0, {}), NOTHING),
        (
            "the same (0.00 s against 0.00 s), the 429s were as many (0 against 0)."
            " In so short a run it had hardly learned the limit: --seconds 20 shows more."
        ),
    ),
}


@pytest.mark.parametrize(("summary", "end"), SENTENCES.values(), ids=SENTENCES)
def test_the_sentence_says_what_the_figures_say(summary: Summary, end: str) -> None:
    assert in_a_sentence(summary) == f"Through Sealgate the longest wait of a cancel was {end}"


def test_the_summary_for_programs() -> None:
    document = json.loads(show.summary_json(SUMMARY))
    assert document["through_sealgate"] == {
        "longest_cancel_s": 0.81,
        "limited": 39,
        "limited_per_1000_accepted": 195.0,
        "accepted_per_s": 19.6,
        "unknown_orders": 0,
        "waits": {
            "quick": {"usual_s": 0.1, "longest_s": 0.984},
            "cancel": {"usual_s": 0.65, "longest_s": 1.86},
        },
    }
    assert document["on_its_own"]["limited_per_1000_accepted"] is None
