"""What the user sees: a live table on a terminal, else a line a second, and the contrast at the end."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from sealgate.demo.bots import BOTS
from sealgate.demo.tally import Summary, Tally, Team, rows

_LEARNING_S = 10.0  # how long it takes to learn the demo's limit
THROUGH, ALONE = "through Sealgate", "each on its own"
CAPTION = "Each try that met a 429 counts; a wait lasts until the request is answered."


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything that is shown at one moment, `elapsed_s` after the start.

    `pause_s` and `waiting` (requests) are those of the gateway's key, `offset_s` and `error_s` those of its
    clock, None until it is synced.
    """

    elapsed_s: float
    pause_s: float
    waiting: int
    offset_s: float | None
    error_s: float | None
    through: Team
    alone: Team

    @property
    def clock(self) -> str:
        """The gateway's clock in words."""
        if self.offset_s is None or self.error_s is None:
            return "clock not synchronized yet"
        return f"clock {self.offset_s * 1000:+.1f} ms \u00b1 {self.error_s * 1000:.1f} ms"


def live(picture: Picture) -> Group:
    """Return the view for a terminal."""
    state = Text(f"{picture.elapsed_s:4.0f} s   ")
    state.append(f"key paused {picture.pause_s:.2f} s", style="yellow" if picture.pause_s else "")
    state.append(f"   requests waiting {picture.waiting:<3}   {picture.clock}")
    table = _table("bot")
    table.add_column("does", style="dim", no_wrap=True)
    for title in ("requests", "accepted", "429s", "wait p50", "max"):
        table.add_column(title, justify="right", no_wrap=True)
    weights = "weights " + ":".join(str(bot.weight) for bot in BOTS.values())
    for title, about, team in ((THROUGH, weights, picture.through), (ALONE, "", picture.alone)):
        table.add_section()
        table.add_row(Text(title, style="bold"), about)
        for row in _bot_rows(team.tallies):
            table.add_row(*row)
    # A short last line, so that the ^C that a terminal echoes does not wrap.
    return Group(state, table, Text(CAPTION, style="dim"), Text("Ctrl-C ends it", style="dim"))


def _table(first: str) -> Table:
    """Return a table that fits into 80 columns; its first column's title is given."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1), pad_edge=False, show_edge=False)
    table.add_column(first, no_wrap=True)
    return table


def _bot_rows(tallies: Mapping[str, Tally]) -> Iterator[tuple[str | Text, ...]]:
    for name, tally in tallies.items():
        yield (
            f"  {name}",
            BOTS[name].does,
            str(tally.requests),
            str(tally.accepted),
            Text(str(tally.limited), style="red" if tally.limited else ""),
            _seconds(tally.usual_wait_s),
            _seconds(tally.longest_wait_s),
        )


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"


def plain(picture: Picture) -> str:
    """Return one line for a log."""
    through, alone = picture.through.count, picture.alone.count
    return (
        f"{picture.elapsed_s:4.0f} s  accepted {through.accepted}  429s {through.limited}"
        f"  pause {picture.pause_s:.2f} s  waiting {picture.waiting}  {picture.clock}"
        f"  | on its own: accepted {alone.accepted}  429s {alone.limited}"
    )


def contrast(summary: Summary) -> Group:
    """Return the table at the end; after a short run it says that a longer one shows more."""
    table = _table(f"four bots, {summary.seconds:.1f} s")
    for title in (THROUGH, ALONE):
        table.add_column(title, justify="right", min_width=18)
    for row in rows(summary):
        table.add_row(*row)
    is_short = summary.seconds < _LEARNING_S
    hint = "In so short a run Sealgate had hardly learned the limit: --seconds 20 shows more."
    return Group(table, *([Text(hint)] if is_short else []))
