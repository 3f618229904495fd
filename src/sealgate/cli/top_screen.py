"""What `sealgate top` shows of a picture, as rich renderables."""

import os
import sys
import termios
import threading
import tty
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from sealgate.cli.tables import plain_table
from sealgate.machine.findings import span

HINT = "r: latest requests   q: quit"
_KEYS = "r: back   space: hold   b: next bot   o: next outcome   q: quit"
_OUTCOME_COLOURS = {"refused": "yellow", "unknown": "bold red"}

Row = Mapping[str, Any]
_MOST_ERRORS = 8
_BAR, _SHORTEST_BAR = 24, 8
_A_SECOND_MS = 1000
_FULL = 0.95
_STATE_COLOURS = {
    "ready": "green",
    "paused": "yellow",
    "shutting down": "yellow",
    "clock not read": "yellow",
    "bots refused": "yellow",
}


@dataclass
class Inspector:
    """What is looked at: "" is any bot or outcome. While `is_held`, the rows stay as they are."""

    is_open: bool = False
    bot: str = ""
    outcome: str = ""
    is_held: bool = False
    rows: Sequence[Row] = ()

    @property
    def wants_rows(self) -> bool:
        """Whether newer rows are to be asked for."""
        return self.is_open and not self.is_held

    def matching(self) -> list[Row]:
        """Return the rows that are asked for, the latest first."""
        return [
            row for row in self.rows if self.bot in ("", row["bot"]) and self.outcome in ("", row["outcome"])
        ]

    def press(self, key: str) -> None:
        """Do what a key stands for."""
        if key == "r":
            self.is_open, self.is_held = not self.is_open, False
        elif key == " ":
            self.is_held = not self.is_held
        elif key == "b":
            self.bot = self._next("bot")
        elif key == "o":
            self.outcome = self._next("outcome")

    def _next(self, filtered: str) -> str:
        """Return the next value to filter by; after the last comes "", which is all."""
        values = ["", *sorted({row[filtered] for row in self.rows})]
        chosen = getattr(self, filtered)
        return values[(values.index(chosen) + 1) % len(values)] if chosen in values else ""

    def screen(self, *, has_keys: bool) -> Iterator[RenderableType]:
        """Yield what is shown. The keys come first, as a terminal may have no room for all rows."""
        rows = self.matching()
        parts = (
            f"{len(rows)} of the latest {len(self.rows)} requests",
            f"bot: {self.bot or 'all'}",
            f"outcome: {self.outcome or 'all'}",
            *(("held",) if self.is_held else ()),
        )
        yield Text(", ".join(parts), style="bold")
        if has_keys:
            yield Text(_KEYS, style="dim")
        yield Text()
        table = plain_table("time", "bot", "status", "outcome", "request", "wait", "tries", "reason")
        for column in table.columns:
            column.no_wrap, column.overflow = True, "ellipsis"
            column.justify = "right" if column.header in ("status", "wait", "tries") else "left"
        for row in rows:
            table.add_row(
                f"{datetime.fromtimestamp(row['at_ms'] / 1000).astimezone():%H:%M:%S}",
                Text(row["bot"]),
                str(row["status"]),
                Text(row["outcome"], _OUTCOME_COLOURS.get(row["outcome"], "")),
                Text(f"{row['method']} {row['route']}"),
                f"{row['wait_ms']:.0f} ms",
                str(row["attempts"]),
                row["reason"] or "",
            )
        yield table


@contextmanager
def keyboard(press: Callable[[str], None]) -> Iterator[None]:
    """Hand each key to `press`, in a thread of its own, as long as the block lasts."""
    fd = sys.stdin.fileno()
    before = termios.tcgetattr(fd)
    tty.setcbreak(fd)
    threading.Thread(target=_read, args=(fd, press), daemon=True).start()
    try:
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSADRAIN, before)


def has_keyboard() -> bool:
    """Whether stdin is a terminal's, and this program is the one in its foreground."""
    try:
        return sys.stdin.isatty() and os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (AttributeError, OSError, ValueError):  # stdin is closed, or no file
        return False


def _read(fd: int, press: Callable[[str], None]) -> None:
    try:
        while key := os.read(fd, 1):
            press(key.decode("ascii", "replace"))
    except OSError:  # the terminal is gone
        return


Picture = Mapping[str, Any]


def screen(picture: Picture, inspector: Inspector | None = None, *, has_keys: bool = False) -> Group:
    """Return the whole screen, or in its place the requests that are inspected."""
    if inspector is None or not inspector.is_open:
        return Group(*([Text(HINT, style="dim")] if has_keys else []), *_parts(picture))
    notices = (Text(notice, style="bold red") for notice in _notices(picture))
    return Group(_head(picture), *notices, Text(), *inspector.screen(has_keys=has_keys))


def _parts(picture: Picture) -> Iterator[RenderableType]:
    yield _head(picture)
    for notice in _notices(picture):
        yield Text(notice, style="bold red")
    for key in picture["keys"]:
        yield Text()
        yield _key_line(key)
        yield from _key_use(key)
        if key["bots"]:
            yield Text()
            yield _bots(key)
    if picture["idle_bots"]:
        yield Text()
        yield Text(f"Idle for ten seconds: {', '.join(picture['idle_bots'])}", style="dim")
    yield Text()
    yield from _wrong(picture)


@dataclass(frozen=True, slots=True)
class _Parts:
    """Parts of a line that are not torn: one for which there is no room begins the next line."""

    parts: Sequence[Text]
    between: str = "  ·  "

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        line = Text()
        for part in self.parts:
            if line and line.cell_len + len(self.between) + part.cell_len > options.max_width:
                yield line
                line = Text("  ")
            elif line:
                line.append(self.between)
            line.append_text(part)
        yield line


@dataclass(frozen=True, slots=True)
class _Use:
    """A bar for what is used of a limit, and words; the bar leaves them room."""

    used: float
    words: str
    colour: str

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        words = f"{self.used:.0%} of {self.words}"
        width = max(_SHORTEST_BAR, min(_BAR, options.max_width - len(words) - 1))
        filled = round(width * min(self.used, 1.0))
        row = Table.grid(padding=(0, 1, 0, 0), pad_edge=False)
        row.add_row(Text.assemble(("█" * filled, self.colour), ("░" * (width - filled), "dim")), words)
        yield row


def _head(picture: Picture) -> _Parts:
    state = picture["state"]
    name = Text.assemble(("Sealgate ", "bold"), (state, _STATE_COLOURS.get(state, "bold red")))
    latency, in_doubt = picture["latency"], picture["journal"]["in_doubt"]
    sent_per_s = sum(key["sent_per_s"] for key in picture["keys"])
    parts = (
        picture["base_url"],
        f"{picture['requests_per_s']:g} asked/s, {sent_per_s:g} sent/s",
        f"added p99 {_ms(latency['added_p99_ms'])}, upstream p99 {_ms(latency['upstream_p99_ms'])}",
        _clock(picture["clock"]),
        f"{in_doubt} {'order' if in_doubt == 1 else 'orders'} in doubt",
    )
    return _Parts([name, *map(Text, parts)])


def _ms(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value / 1000:.3g} s" if value >= _A_SECOND_MS else f"{value:.3g} ms"


def _clock(clock: Mapping[str, Any]) -> str:
    if clock["offset_s"] is None:
        return "clock not synced"
    return f"clock {round(clock['offset_s'] * 1000):+d} ms ± {clock['error_s'] * 1000:.1f} ms"


def _notices(picture: Picture) -> Iterator[str]:
    for reason in picture["not_ready"]:
        yield f"not ready: {_without_cause(reason, picture)}"
    if (failing := picture["failing"]) is not None:
        yield _failing(failing, picture["at_ms"])
    for refused in picture["refusals"]:
        if refused["is_grave"]:
            yield f"{refused['words']}. {refused['advice']}"
    for halt in picture["halts"]:
        yield f"orders are halted for {halt['words']}; release them with: {halt['resume']}"
        yield _halted_by(halt, picture["at_ms"])


def _without_cause(reason: str, picture: Picture) -> str:
    """Leave out a cause that is shown further down."""
    causes = [picture["clock"]["trouble"], picture["journal"]["trouble"]]
    causes += (key["disabled"] for key in picture["keys"])
    for cause in filter(None, causes):
        reason = reason.removesuffix(f": {cause}")
    return reason


def _halted_by(halt: Mapping[str, Any], at_ms: int) -> str:
    ago = span((at_ms - halt["since_ms"]) / 1000)
    reason = f": {halt['reason']}" if halt["reason"] else ""
    return f"  halted {ago} ago by {halt['who']}{reason}"


def _failing(failing: Mapping[str, Any], at_ms: int) -> str:
    since = span((at_ms - failing["since_ms"]) / 1000)
    cause = f"{failing['cause']} " if failing["cause"] else ""
    attempts = f"{failing['attempts']} attempts, the last was {failing['kind']}"
    return f"the exchange has failed for {since}: {attempts}. {cause}{failing['advice']}"


def _key_line(key: Mapping[str, Any]) -> _Parts:
    parts = [Text(f"Key {key['alias']}", "bold"), Text(f"next 429: {key['next_429']['words']}")]
    if key["disabled"]:
        parts.append(Text(f"disabled: {key['disabled']}", "bold red"))
    if key["trouble"]:
        parts.append(Text(key["trouble"], "bold red"))
    if (key.get("sharing") or {}).get("degraded"):
        parts.append(Text(f"limit not shared: {key['sharing']['degraded']}", "bold red"))
    waiting = ", ".join(f"{count} {lane}" for lane, count in key["waiting"].items())
    parts.append(Text(f"waiting: {waiting}", "yellow" if any(key["waiting"].values()) else ""))
    return _Parts(parts, "  ")


def _key_use(key: Mapping[str, Any]) -> Iterator[RenderableType]:
    for limit in key["limits"]:
        used = limit["used_ratio"]
        height, _, evidence = limit["words"].partition("; ")
        yield _Use(used, height, "yellow" if used >= _FULL or key["pause_s"] else "blue")
        foreign = "someone else seems to use this key too" if limit.get("is_foreign_use") else ""
        for line in filter(None, ("; ".join(filter(None, (evidence, foreign))), limit.get("next_step"))):
            yield Padding(Text(line, style="dim"), (0, 0, 0, 2), expand=False)


def _bots(key: Mapping[str, Any]) -> Table:
    table = plain_table("bot", "sent/s", "share", "due", "waiting")
    for column in table.columns:
        column.no_wrap, column.justify = True, "left" if column.header == "bot" else "right"
    for bot in key["bots"]:
        table.add_row(
            bot["name"],
            f"{bot['per_s']:.1f}",
            f"{bot['share']:.0%}",
            f"{bot['due']:.0%}",
            str(bot["waiting"]),
        )
    return table


def _wrong(picture: Picture) -> Iterator[RenderableType]:
    wrong = [*_troubles(picture), *_errors(picture), *_refusals(picture)]
    if wrong:
        yield Text("What went wrong", style="bold")
        yield from wrong
    else:
        yield Text("No bot has met an error or a refusal since the start.", style="dim")


def _troubles(picture: Picture) -> Iterator[RenderableType]:
    """Yield what goes wrong at this moment, and is not of a reply to a bot."""
    if picture["clock"]["trouble"]:
        yield Text(f"clock: {picture['clock']['trouble']}", style="bold red")
    if picture["journal"]["trouble"]:
        yield Text(f"the journal cannot be written: {picture['journal']['trouble']}", style="bold red")
    if lost := picture["journal"].get("lost"):
        yield Text(lost, style="bold red")


def _errors(picture: Picture) -> Iterator[RenderableType]:
    for error in picture["errors"][:_MOST_ERRORS]:
        key = f" (key {error['key']})" if error["key"] else ""
        times = "once" if error["count"] == 1 else f"{error['count']} times, last"
        what = f"{error['kind']}{key}: {times} {_ago(picture, error['last_ms'])}"
        yield from _entry(picture, error, what, error["evidence"])


def _refusals(picture: Picture) -> Iterator[RenderableType]:
    for refused in picture["refusals"][:_MOST_ERRORS]:
        what = f"{refused['words']}, last {_ago(picture, refused['last_ms'])}"
        yield from _entry(picture, refused, what, "")
    for policy in picture["policies"]:
        if policy["by_rule"]:
            yield Text(policy["by_rule"])


def _entry(picture: Picture, entry: Mapping[str, Any], what: str, cause: str) -> Iterator[RenderableType]:
    """Yield what happened, and below it why, and what to do, or when it ended."""
    over_ms = entry["over_since_ms"]
    yield Text(what, style="" if over_ms is None else "dim")
    if over_ms is None:
        parts = (cause and f"{cause}.", entry["advice"])
    else:
        parts = (cause and f"{cause};", f"ended {_ago(picture, over_ms)}")
    yield Padding(Text(" ".join(filter(None, parts)), style="dim"), (0, 0, 0, 2), expand=False)


def _ago(picture: Picture, at_ms: int) -> str:
    return f"{span((picture['at_ms'] - at_ms) / 1000)} ago"
