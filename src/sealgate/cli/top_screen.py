"""What `sealgate top` shows of a picture, as rich renderables."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.bar import Bar
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

_MOST_ERRORS = 8
_BAR, _SHORTEST_BAR = 24, 8
_FULL = 0.95

Picture = Mapping[str, Any]


def screen(picture: Picture) -> Group:
    """Return the whole screen."""
    return Group(*_parts(picture))


def _parts(picture: Picture) -> Iterator[RenderableType]:
    yield _head(picture)
    for notice in _notices(picture):
        yield Text(notice, style="bold red")
    for key in picture["keys"]:
        yield Text()
        yield _key_line(key)
        yield from _key_use(key)
        yield _bots(key)
    yield Text()
    yield from _errors(picture)


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
        row = Table.grid(padding=(0, 1, 0, 0))
        row.add_row(Bar(1.0, 0.0, min(self.used, 1.0), width=width, color=self.colour), words)
        yield row


def _head(picture: Picture) -> _Parts:
    state = _state(picture)
    name = Text.assemble(("Sealgate ", "bold"), (state, "green" if state == "ready" else "bold red"))
    latency = picture["latency"]
    parts = (
        picture["base_url"],
        f"{picture['requests_per_s']:g} requests/s",
        f"added p99 {_ms(latency['added_p99_ms'])}, upstream p99 {_ms(latency['upstream_p99_ms'])}",
        _clock(picture["clock"]),
        f"{picture['journal']['in_doubt']} orders in doubt",
    )
    return _Parts([name, *map(Text, parts)])


def _state(picture: Picture) -> str:
    if picture["is_draining"]:
        return "shutting down"
    if picture["not_ready"]:
        return "not ready"
    return "ready, but the exchange fails" if picture["failing"] else "ready"


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g} ms"


def _clock(clock: Mapping[str, Any]) -> str:
    if clock["offset_s"] is None:
        return "clock not synced"
    return f"clock {clock['offset_s'] * 1000:+.0f} ms ± {clock['error_s'] * 1000:.1f} ms"


def _notices(picture: Picture) -> Iterator[str]:
    for reason in picture["not_ready"]:
        yield f"not ready: {reason}"
    if (failing := picture["failing"]) is not None:
        yield _failing(failing, picture["at_ms"])
    for halt in picture["halts"]:
        names = [f"{kind} {halt[kind]}" for kind in ("bot", "key") if halt[kind]]
        yield f"orders are halted for {' and '.join(names) or 'all'}; go on with: sealgate resume"
    if picture["clock"]["trouble"]:
        yield f"clock: {picture['clock']['trouble']}"
    if picture["journal"]["trouble"]:
        yield f"the journal cannot be written: {picture['journal']['trouble']}"


def _failing(failing: Mapping[str, Any], at_ms: int) -> str:
    seconds = (at_ms - failing["since_ms"]) / 1000
    cause = f"{failing['cause']} " if failing["cause"] else ""
    attempts = f"{failing['attempts']} attempts, the last was {failing['kind']}"
    return f"the exchange has failed for {seconds:.0f} s: {attempts}. {cause}{failing['advice']}"


def _key_line(key: Mapping[str, Any]) -> _Parts:
    parts = [Text(f"Key {key['alias']}", "bold"), Text(f"next 429: {key['next_429']['words']}")]
    if key["disabled"]:
        parts.append(Text(f"disabled: {key['disabled']}", "bold red"))
    if (key.get("sharing") or {}).get("degraded"):
        parts.append(Text(f"limit not shared: {key['sharing']['degraded']}", "bold red"))
    waiting = ", ".join(f"{count} {lane}" for lane, count in key["waiting"].items())
    parts.append(Text(f"waiting: {waiting}", "yellow" if any(key["waiting"].values()) else ""))
    return _Parts(parts, "  ")


def _key_use(key: Mapping[str, Any]) -> Iterator[RenderableType]:
    for limit in key["limits"]:
        used = limit["used_ratio"]
        yield _Use(used, limit["words"], "yellow" if used >= _FULL or key["pause_s"] else "blue")


def _bots(key: Mapping[str, Any]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("bot", no_wrap=True)
    for title in ("sent/s", "share", "due", "waiting"):
        table.add_column(title, justify="right", no_wrap=True)
    for bot in key["bots"]:
        table.add_row(
            bot["name"],
            f"{bot['per_s']:.1f}",
            f"{bot['share']:.0%}",
            f"{bot['due']:.0%}",
            str(bot["waiting"]),
        )
    return table


def _errors(picture: Picture) -> Iterator[RenderableType]:
    if not picture["errors"]:
        yield Text("Nothing went wrong since the start.", style="dim")
        return
    yield Text("What went wrong", style="bold")
    for error in picture["errors"][:_MOST_ERRORS]:
        ago_s = (picture["at_ms"] - error["last_ms"]) / 1000
        key = f" (key {error['key']})" if error["key"] else ""
        yield Text(f"{error['kind']}{key}: {error['count']} times, last {ago_s:.0f} s ago")
        cause = f"{error['evidence']}. " if error["evidence"] else ""
        yield Padding(Text(cause + error["advice"], style="dim"), (0, 0, 0, 2), expand=False)
