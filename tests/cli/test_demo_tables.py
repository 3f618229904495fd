"""What the demo counts and prints, without running it."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from io import StringIO

from rich.console import Console

from sealgate.cli.demo import screen
from sealgate.cli.demo.bots import BOTS
from sealgate.cli.demo.gauges import KeyState
from sealgate.cli.demo.scene import Column, Picture
from sealgate.cli.demo.summary import Count, Figures, Summary, figures
from sealgate.cli.demo.tally import Tally


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


def test_figures_take_counts_from_the_journal_and_waits_from_the_bots() -> None:
    assert figures(Count(accepted=400, limited=30), 20.0, team().values()) == Figures(
        accepted_per_s=20.0,
        limited=30,
        limited_per_1000_accepted=75.0,
        longest_cancel_s=12.5,
        unknown_orders=4,
    )


def test_nothing_accepted_has_no_rate_of_429s() -> None:
    assert figures(Count(0, 5), 1.0, team().values()).limited_per_1000_accepted is None


PICTURE = Picture(
    elapsed_s=3599.9,
    key=KeyState(pause_s=12.34, waiting=120, offset_s=-1.5001, error_s=0.0123),
    through=Column(team(), Count(2000, 30)),
    alone=Column(team(), Count(1900, 3000)),
)


def printed(renderable: object, width: int = 80) -> list[str]:
    file = StringIO()
    Console(file=file, width=width).print(renderable)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_the_live_table_fits_into_80_columns_and_24_lines_below_the_addresses() -> None:
    lines = printed(screen.live(PICTURE))
    assert len(lines) <= 24 - 8
    assert not any("…" in line for line in lines)
    assert lines[0] == "3600 s   key paused 12.34 s   requests waiting 120   clock -1500.1 ms ± 12.3 ms"
    for name, bot in BOTS.items():
        rows = [line for line in lines if line.startswith(f"  {name} ")]
        assert len(rows) == 2
        assert all(bot.does in row and "123456" in row and "12.50 s" in row for row in rows)


def test_a_plain_line() -> None:
    assert screen.plain(PICTURE) == (
        "3600 s  accepted 2000  429s 30  pause 12.34 s  waiting 120  clock -1500.1 ms ± 12.3 ms"
        "  | on its own: accepted 1900  429s 3000"
    )


def test_a_clock_that_is_not_synced_says_so() -> None:
    picture = Picture(0.0, KeyState(), PICTURE.through, PICTURE.alone)
    assert "clock not synced yet" in screen.plain(picture)


SUMMARY = Summary(10.0, 20, 1, Figures(20.0, 39, 195.0, 0.81, 0), Figures(19.9, 100, None, 9.084, 2))


def test_the_summary_for_people() -> None:
    file = StringIO()
    screen.print_summary(Console(file=file, width=80), SUMMARY)
    rows = [line.rsplit(None, 2) for line in file.getvalue().splitlines()]
    assert ["accepted requests/s", "20.0", "19.9"] in [[row[0].strip(), *row[1:]] for row in rows]
    assert "9.08 s" in file.getvalue()


def test_the_summary_for_programs() -> None:
    document = json.loads(screen.summary_json(SUMMARY))
    assert document["through_sealgate"] == {
        "accepted_per_s": 20.0,
        "limited": 39,
        "limited_per_1000_accepted": 195.0,
        "longest_cancel_s": 0.81,
        "unknown_orders": 0,
    }
    assert document["on_its_own"]["limited_per_1000_accepted"] is None
