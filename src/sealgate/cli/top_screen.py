"""What `sealgate top` shows of a picture, as rich renderables."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich import box
from rich.bar import Bar
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

_MOST_ERRORS = 8
_BAR = 24
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
    yield _errors(picture)


def _head(picture: Picture) -> Text:
    state = "shutting down" if picture["is_draining"] else "not ready" if picture["not_ready"] else "ready"
    line = Text.assemble(("Sealgate ", "bold"), (state, "green" if state == "ready" else "bold red"))
    latency = picture["latency"]
    for part in (
        picture["base_url"],
        f"{picture['requests_per_s']:g} requests/s",
        f"added p99 {_ms(latency['added_p99_ms'])}, upstream p99 {_ms(latency['upstream_p99_ms'])}",
        _clock(picture["clock"]),
        f"{picture['journal']['in_doubt']} orders in doubt",
    ):
        line.append("  ·  " + part)
    return line


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g} ms"


def _clock(clock: Mapping[str, Any]) -> str:
    if clock["offset_s"] is None:
        return "clock not synced"
    return f"clock {clock['offset_s'] * 1000:+.0f} ms ± {clock['error_s'] * 1000:.1f} ms"


def _notices(picture: Picture) -> Iterator[str]:
    for reason in picture["not_ready"]:
        yield f"not ready: {reason}"
    for halt in picture.get("halts", ()):
        names = [f"{kind} {halt[kind]}" for kind in ("bot", "key") if halt.get(kind)]
        yield f"orders are halted for {' and '.join(names) or 'all'}; go on with: sealgate resume"
    if picture["clock"]["trouble"]:
        yield f"clock: {picture['clock']['trouble']}"
    if picture["journal"]["trouble"]:
        yield f"the journal cannot be written: {picture['journal']['trouble']}"


def _key_line(key: Mapping[str, Any]) -> Text:
    line = Text.assemble((f"Key {key['alias']}", "bold"), f"  next 429: {key['next_429']['words']}")
    if key.get("disabled"):
        line.append(f"  disabled: {key['disabled']}", "bold red")
    if (key.get("sharing") or {}).get("degraded"):
        line.append(f"  limit not shared: {key['sharing']['degraded']}", "bold red")
    waiting = ", ".join(f"{count} {lane}" for lane, count in key["waiting"].items())
    line.append(f"  waiting: {waiting}", "yellow" if any(key["waiting"].values()) else "")
    return line


def _key_use(key: Mapping[str, Any]) -> Iterator[RenderableType]:
    for limit in key["limits"]:
        used = limit["used_ratio"]
        colour = "yellow" if used >= _FULL or key["pause_s"] else "blue"
        row = Table.grid(padding=(0, 1))
        row.add_row(
            Bar(1.0, 0.0, min(used, 1.0), width=_BAR, color=colour), f"{used:.0%} of {limit['words']}"
        )
        yield row


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


def _errors(picture: Picture) -> RenderableType:
    if not picture["errors"]:
        return Text("Nothing went wrong since the start.", style="dim")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title in ("what went wrong", "times", "last", "cause and advice"):
        table.add_column(title)
    for error in picture["errors"][:_MOST_ERRORS]:
        ago_s = (picture["at_ms"] - error["last_ms"]) / 1000
        cause = f"{error['evidence']}. " if error["evidence"] else ""
        row = (f"{error['kind']} ({error['key']})", str(error["count"]), f"{ago_s:.0f} s ago")
        table.add_row(*row, Text(cause + error["advice"]))
    return table
