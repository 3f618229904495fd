"""What `sealgate top` shows of a picture, as rich renderables. The sentences are the picture's own."""

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
from sealgate.observe.units import ms, number

HINT = "r: latest requests   q: quit"
_KEYS = "r: back   space: freeze   b: next bot   o: next outcome   q: quit"
_OF_SEVERAL = "e: next exchange   "
_OUTCOME_COLOURS = {"refused": "yellow", "unknown": "bold red"}

Figures = Mapping[str, Any]
_GLANCE = (
    "exchange",
    "state",
    "limit used",
    "waiting",
    "sent/s",
    "429s today",
    "clock",
    "streams",
    "in doubt",
)
_BAR, _SHORTEST_BAR = 24, 8
_MOST_ORDERS = 12
_LONGEST_NAME = 28  # of a pool
_MOST_STREAMS = 12  # a terminal has room for few
_COLOURS = {"good": "green", "": "", "calm": "blue", "warn": "yellow", "bad": "bold red"}


@dataclass
class Inspector:
    """The list of requests, and the exchange that is shown in full.

    "" is any bot, outcome or exchange. While `is_held`, the rows do not change. `exchanges` are all names.
    """

    is_open: bool = False
    bot: str = ""
    outcome: str = ""
    exchange: str = ""
    is_held: bool = False
    rows: Sequence[Figures] = ()
    exchanges: Sequence[str] = ()

    @property
    def wants_rows(self) -> bool:
        """Whether the gateway should be asked for newer rows."""
        return self.is_open and not self.is_held

    def matching(self) -> list[Figures]:
        """Return the rows that are asked for, the latest first."""
        filters = ("bot", "outcome", "exchange")
        return [row for row in self.rows if all(getattr(self, name) in ("", row[name]) for name in filters)]

    def press(self, key: str) -> None:
        """Act on a key of the keyboard."""
        if key == "r":
            self.is_open, self.is_held = not self.is_open, False
        elif key == " ":
            self.is_held = not self.is_held
        elif key == "b":
            self.bot = _next(self.bot, sorted({row["bot"] for row in self.rows}))
        elif key == "o":
            self.outcome = _next(self.outcome, sorted({row["outcome"] for row in self.rows}))
        elif key == "e" and len(self.exchanges) > 1:
            self.exchange = _next(self.exchange, self.exchanges)

    def screen(self, *, has_keys: bool) -> Iterator[RenderableType]:
        """Yield what is shown. The keys come first, as a terminal may have no room for all rows."""
        rows = self.matching()
        parts = (
            f"{len(rows)} of the latest {len(self.rows)} requests",
            f"bot: {self.bot or 'all'}",
            f"outcome: {self.outcome or 'all'}",
            *((f"exchange: {self.exchange or 'all'}",) if len(self.exchanges) > 1 else ()),
            *(("frozen",) if self.is_held else ()),
        )
        yield Text(", ".join(parts), style="bold")
        if has_keys:
            yield Text((_OF_SEVERAL if len(self.exchanges) > 1 else "") + _KEYS, style="dim")
        yield Text()
        where = ("exchange",) if len(self.exchanges) > 1 else ()
        table = plain_table("time", "bot", *where, "status", "outcome", "request", "wait", "tries", "reason")
        for column in table.columns:
            column.no_wrap, column.overflow = True, "ellipsis"
            column.justify = "right" if column.header in ("status", "wait", "tries") else "left"
        for row in rows:
            table.add_row(
                f"{datetime.fromtimestamp(row['at_ms'] / 1000).astimezone():%H:%M:%S}",
                Text(row["bot"]),
                *(Text(row[name]) for name in where),
                str(row["status"]),
                Text(row["outcome"], _OUTCOME_COLOURS.get(row["outcome"], "")),
                Text(f"{row['method']} {row['route']}"),
                ms(row["wait_ms"]),
                str(row["attempts"]),
                row["reason"] or "",
            )
        yield table


def _next(chosen: str, values: Sequence[str]) -> str:
    """Return the value after the chosen one; after the last comes "", which is all."""
    choices = ["", *values]
    return choices[(choices.index(chosen) + 1) % len(choices)] if chosen in choices else ""


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


def screen(picture: Figures, inspector: Inspector | None = None, *, has_keys: bool = False) -> Group:
    """Return the whole screen: head and notices, then keys and errors, or the requests that are inspected.

    Of several exchanges, each is shown at a glance, and the keys of all, or of the one that is chosen.
    """
    inspector = inspector or Inspector()
    words, exchanges = picture["words"], picture["exchanges"]
    inspector.exchanges = [one["name"] for one in exchanges]
    notices = [Text(one["text"], style=_COLOURS[one["mood"]]) for one in words["notices"]]
    if inspector.is_open:
        return Group(_head(picture), *notices, Text(), *inspector.screen(has_keys=has_keys))
    is_one_of_many = len(exchanges) > 1
    hint = [Text((_OF_SEVERAL if is_one_of_many else "") + HINT, style="dim")] if has_keys else []
    keys = [
        part
        for key, of in zip(picture["keys"], words["keys"], strict=True)
        if inspector.exchange in ("", key["exchange"])
        for part in _key(key, of)
    ]
    both = zip(exchanges, words["exchanges"], strict=True)
    of_shown = [of for one, of in both if inspector.exchange in ("", one["name"])]
    own_addresses = [Text(words["own_addresses"], style="dim"), Text()] if words["own_addresses"] else []
    idle = [Text(f"Idle for ten seconds: {', '.join(picture['idle_bots'])}", style="dim"), Text()]
    return Group(
        *hint,
        _head(picture),
        *notices,
        Text(),
        *(_exchanges(picture, inspector.exchange) if is_one_of_many else ()),
        *_doubts(picture, inspector.exchange),
        *keys,
        *(part for of in of_shown for part in _open_pools(of)),
        *(Text(of["shared"]) for of in of_shown if of["shared"]),
        *_last_orders(picture, inspector.exchange),
        *_streams(picture, inspector.exchange),
        *own_addresses,
        *(idle if picture["idle_bots"] else ()),
        *_wrong(words),
    )


def _exchanges(picture: Figures, chosen: str) -> Iterator[RenderableType]:
    """Yield each exchange at a glance, and the tiles of the chosen one."""
    table = plain_table(*_GLANCE)
    for column in table.columns:
        column.no_wrap = True
    both = list(zip(picture["exchanges"], picture["words"]["exchanges"], strict=True))
    for one, words in both:
        table.add_row(
            Text(one["name"], "bold" if one["name"] == chosen else ""),
            Text(one["state"], _COLOURS[words["mood"]]),
            Text(words["pause"] or words["used"], _COLOURS[words["used_mood"]]),
            words["waiting"],
            words["sent"],
            words["limited"],
            words["clock"],
            words["streams"],
            Text(words["in_doubt"], _COLOURS["bad" if one["in_doubt"] else ""]),
        )
    yield table
    yield Text()
    for one, words in both:
        if one["name"] == chosen:
            yield _Parts([Text(chosen, "bold"), Text(one["base_url"]), *_tiles(words), *_speed(one)])
            yield Text()


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

    ratio: float
    words: str
    colour: str

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        width = max(_SHORTEST_BAR, min(_BAR, options.max_width - len(self.words) - 1))
        filled = round(width * min(self.ratio, 1.0))
        row = Table.grid(padding=(0, 1, 0, 0), pad_edge=False)
        row.add_row(Text.assemble(("█" * filled, self.colour), ("░" * (width - filled), "dim")), self.words)
        yield row


def _head(picture: Figures) -> _Parts:
    words = picture["words"]
    sent_per_s = sum(one["sent_per_s"] for one in picture["exchanges"])
    return _Parts(
        [
            Text.assemble(("Sealgate ", "bold"), (picture["state"], _COLOURS[words["mood"]])),
            Text(words["where"]),
            *_tiles(words),
            *_speed({"latency": picture["latency"], "sent_per_s": sent_per_s}),
        ]
    )


def _tiles(words: Figures) -> Iterator[Text]:
    for one in words["tiles"]:
        yield Text.assemble(
            (f"{one['name']}: ", "dim"),
            (f"{one['value']} {one['unit']}".rstrip(), _COLOURS[one["mood"]]),
            f" ({one['more']})",
        )


def _speed(of: Figures) -> Iterator[Text]:
    """Yield what is sent, and how long it takes: by an exchange, or by all."""
    added, upstream = (
        "–" if of["latency"][name] is None else ms(of["latency"][name])  # noqa: RUF001 - a dash
        for name in ("added_p99_ms", "upstream_p99_ms")
    )
    yield Text(f"{number(of['sent_per_s'], 1)} sent/s")
    yield Text(f"gateway p99 {added}, upstream p99 {upstream}")


def _key(key: Figures, words: Figures) -> Iterator[RenderableType]:
    """Yield a key: what holds it and what waits, how full its limits are, what is known of them, its bots."""
    state = [Text(words["state"], "yellow")] if words["state"] else []
    waiting = ", ".join(f"{count} {lane}" for lane, count in key["waiting"].items())
    parts = [Text(words["name"], "bold"), *state, Text(words["limit"]), Text(f"waiting: {waiting}")]
    yield _Parts(parts, "  ")
    for use in words["uses"]:
        yield _Use(use["ratio"], use["text"], "yellow" if key["pause_s"] else "blue")
    for text in filter(None, (words["about"], words["evidence"])):
        yield _indented(text)
    yield from _pools(words["pools"], words["more"])
    if key["bots"]:
        table = plain_table("bot", "sent/s", "traffic", "fair share", "waiting")
        for column in table.columns:
            column.no_wrap, column.justify = True, "left" if column.header == "bot" else "right"
        for bot in key["bots"]:
            share, due = (f"{bot[name]:.0%}" for name in ("share", "due"))
            table.add_row(bot["name"], f"{bot['per_s']:.1f}", share, due, str(bot["waiting"]))
        yield Text()
        yield table
    yield Text()


def _open_pools(words: Figures) -> Iterator[RenderableType]:
    """Yield the pools of an exchange that only requests without a key pass."""
    if words["open_pools"]:
        yield Text(words["open_name"], style="bold")
        yield from _pools(words["open_pools"])
        yield Text()


def _doubts(picture: Figures, chosen: str) -> Iterator[RenderableType]:
    """Yield the orders in doubt of an exchange, or of all, each with what to do about it."""
    words = picture["words"]
    shown = _with_words(picture["journal"]["doubts"], words["orders"], chosen)
    if not shown:
        return
    yield Text(words["doubts"], style="bold red")
    for one, of in shown:
        yield Text(", ".join(filter(None, (one["bot"], one["exchange"], of["call"], of["terms"], of["ago"]))))
        yield _indented(of["do"])
    yield Text()


def _with_words(
    ones: Sequence[Figures], words: Sequence[Figures], chosen: str
) -> list[tuple[Figures, Figures]]:
    """Return each with its words, of the chosen exchange alone; "" is all."""
    return [(one, of) for one, of in zip(ones, words, strict=True) if chosen in ("", one["exchange"])]


def _last_orders(picture: Figures, chosen: str) -> Iterator[RenderableType]:
    """Yield the last order of each bot, by name."""
    shown = _with_words(picture["last_orders"], picture["words"]["last_orders"], chosen)
    if not shown:
        return
    where = ("exchange",) if len(picture["exchanges"]) > 1 else ()
    table = plain_table("bot", *where, "last order", "when", "result")
    for column in table.columns:
        column.no_wrap, column.overflow = True, "ellipsis"
    for one, of in shown[:_MOST_ORDERS]:
        names = (Text(one[name]) for name in ("bot", *where))
        table.add_row(*names, Text(of["call"]), of["ago"], Text(of["how"], _COLOURS[of["mood"]]))
    yield table
    if (more := len(shown) - _MOST_ORDERS) > 0:
        yield Text(f"and {number(more)} more", style="dim")
    yield Text()


def _streams(picture: Figures, chosen: str) -> Iterator[RenderableType]:
    """Yield the open streams of an exchange, or of all; of many, those that were opened first."""
    shown = _with_words(picture["streams"], picture["words"]["streams"], chosen)
    if not shown:
        return
    where = ("exchange",) if len(picture["exchanges"]) > 1 else ()
    table = plain_table("bot", *where, "stream", "open for", "messages", "login")
    for column in table.columns:
        column.no_wrap, column.overflow = column.header != "stream", "fold"
        column.justify = "right" if column.header in ("open for", "messages") else "left"
    for one, words in shown[:_MOST_STREAMS]:
        names = (Text(one[name]) for name in ("bot", *where, "stream"))
        table.add_row(*names, words["age"], words["rate"], words["login"])
    yield Text("Streams", style="bold")
    yield table
    if (more := len(shown) - _MOST_STREAMS) > 0:
        yield Text(f"and {number(more)} more", style="dim")
    yield Text()


def _pools(pools: Sequence[Figures], more: str = "") -> Iterator[RenderableType]:
    """Yield each pool: its name, whether it is closed, how full it is, and below what is known of it."""
    if not pools:
        return
    table = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True, max_width=_LONGEST_NAME)
    table.add_column(ratio=1)
    for pool in pools:
        use = _Use(pool["ratio"] or 0.0, pool["text"], _COLOURS[pool["mood"]] or "blue")
        state = [Text(pool["state"], _COLOURS[pool["mood"]])] if pool["state"] else []
        what = Group(*state, use if pool["ratio"] is not None else Text(pool["text"], "dim"))
        table.add_row(Text(pool["name"], "bold" if pool["state"] else ""), what)
        table.add_row("", Text(pool["about"], "dim"))
    yield table
    if more:
        yield Text(more, style="dim")


def _wrong(words: Figures) -> Iterator[RenderableType]:
    """Yield what went wrong: what it was, and below it why, and what to do, or since when it is over."""
    if words["nothing_wrong"]:
        yield Text(words["nothing_wrong"], style="dim")
        return
    yield Text("What went wrong", style="bold")
    for line in words["wrong"]:
        who = f" ({line['who']})" if line["who"] else ""
        what = f"{line['what']}{who}: {line['times']}, last {line['last']}"
        yield Text(what, style="dim" if line["is_over"] else "")
        yield _indented(f"{line['cause']} {line['text']}".strip())
    yield from map(Text, words["policies"])


def _indented(text: str) -> Padding:
    return Padding(Text(text, style="dim"), (0, 0, 0, 2), expand=False)
