"""What the demo shows, without running it."""

from dataclasses import replace
from io import StringIO

from rich.console import Console

from sealgate.demo.bots import BOTS
from sealgate.demo.tally import Count, Figures, Summary, Tally, Team, Waits
from sealgate.demo.views import CAPTION, Picture, contrast, live, plain


def team(accepted: int, limited: int) -> Team:
    """Return four bots with large numbers, each of which has waited 12.5 s."""
    time = [0.0]
    tallies = {name: Tally(lambda: time[0]) for name in BOTS}
    for tally in tallies.values():
        with tally.waiting("DELETE"):
            time[0] += 12.5
        tally.requests, tally.accepted, tally.limited = 123_456, 123_400, 4321
    count = Count(1.0)
    count.by_window[0], count.limited = accepted, limited
    return Team(tallies, count)


PICTURE = Picture(3599.9, 12.34, 120, -1.5001, 0.0123, team(2000, 30), team(1900, 3000))


def printed(renderable: object) -> list[str]:
    file = StringIO()
    Console(file=file, width=80).print(renderable)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_the_live_table_fits_into_80_columns_and_24_lines_below_the_addresses() -> None:
    lines = printed(live(PICTURE))
    assert len(lines) <= 24 - 8
    assert not any("…" in line for line in lines)
    assert CAPTION in lines
    assert any(line.split() == ["through", "Sealgate", "weights", "4:2:1:2"] for line in lines)
    assert lines[0] == "3600 s   key paused 12.34 s   requests waiting 120   clock -1500.1 ms ± 12.3 ms"
    for name, bot in BOTS.items():
        rows = [line for line in lines if line.startswith(f"  {name} ")]
        assert len(rows) == 2
        assert all(bot.does in row and "123456" in row and "12.50 s" in row for row in rows)


def test_a_plain_line() -> None:
    assert plain(PICTURE) == (
        "3600 s  accepted 2000  429s 30  pause 12.34 s  waiting 120  clock -1500.1 ms ± 12.3 ms"
        "  | on its own: accepted 1900  429s 3000"
    )


def test_a_clock_that_is_not_synced_says_so() -> None:
    assert "clock not synchronized yet" in plain(Picture(0.0, 0.0, 0, None, None, team(0, 0), team(0, 0)))


def test_the_contrast_fits_onto_a_terminal() -> None:
    column = Figures(9.084, 100, 195.0, 20.0, 2, dict.fromkeys(BOTS, Waits(10.65, 11.86)))
    summary = Summary(10.0, 20, 1, column, column)
    lines = printed(contrast(summary))
    assert len(lines) < 24
    assert not any("…" in line for line in lines)
    assert " ".join(lines[0].split()) == "four bots, 10.0 s through Sealgate each on its own"
    assert not any("--seconds" in line for line in lines)
    hint = "In so short a run Sealgate had hardly learned the limit: --seconds 20 shows more."
    assert " ".join(" ".join(printed(contrast(replace(summary, seconds=9.9)))).split()).endswith(hint)
