"""The latest requests in `sealgate top`: which of them are shown, the keys that choose, and their table."""

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

from rich.console import RenderableType
from rich.text import Text

from sealgate.cli.tables import plain_table

HINT = "r: latest requests   q: end"
_KEYS = "r: back   space: hold   b: next bot   o: next outcome   q: end"
_COLOURS = {"refused": "yellow", "unknown": "bold red"}

Row = Mapping[str, Any]


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
                Text(row["outcome"], _COLOURS.get(row["outcome"], "")),
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
