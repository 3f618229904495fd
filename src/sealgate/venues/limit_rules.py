"""How an exchange counts requests against its limits, as a venue's file says it."""

import re
from dataclasses import dataclass

from sealgate.venues.document import FIELD_NAME, Table
from sealgate.venues.replies import MOMENTS, Scope

_LIMIT = re.compile(r"[1-9]\d*(\.\d+)?/[1-9]\d*(\.\d+)?s", re.ASCII)


@dataclass(frozen=True, slots=True)
class Counter:
    """A header in which replies say how much of a limit is used or left; `most` is 0 where replies say it.

    `resets` is how `resets_header` is to be read, one of MOMENTS. With `per_route` it speaks of the path that
    was asked alone, and not of the whole limit.
    """

    header: str
    counts: str  # used | left
    window_s: float
    most: float
    most_header: str
    resets_header: str
    resets: str = ""
    per_route: bool = False


@dataclass(frozen=True, slots=True)
class LimitRules:
    """How a venue counts, what it says of that, and what it has published ("6000/60s")."""

    scope: Scope
    counters: tuple[Counter, ...]
    known: tuple[str, ...]


def read_limits(table: Table) -> LimitRules:
    """Read `[limits]`."""
    for known in table.texts("known"):
        if not _LIMIT.fullmatch(known):
            raise table.error("known", f"{known!r} in known is not a limit such as 1200/60s")
    keys = ("header", "counts", "window_s", "most", "most_header", "resets_header", "resets", "per_route")
    rows = table.tables("counters", keys)
    return LimitRules(
        Scope(table.text("scope", Scope.KEY, list(Scope))), tuple(map(_counter, rows)), table.texts("known")
    )


def _counter(row: Table) -> Counter:
    most_header = row.checked("most_header", FIELD_NAME, "the name of a header", "")
    resets_header = row.checked("resets_header", FIELD_NAME, "the name of a header", "")
    counts = row.text("counts", "used", ("used", "left"))
    if most_header and "most" in row.data:
        raise row.error("most", "a counter has most, or most_header where replies say it")
    if counts == "used" and not most_header and "most" not in row.data:
        raise row.error(None, "a counter has most, or most_header where replies say it")
    if "resets" in row.data and not resets_header:
        raise row.error("resets", "resets needs resets_header")
    return Counter(
        header=row.checked("header", FIELD_NAME, "the name of a header"),
        counts=counts,
        window_s=row.number("window_s", 1.0),
        most=row.number("most", 1.0) if "most" in row.data else 0.0,
        most_header=most_header,
        resets_header=resets_header,
        resets=row.text("resets", choices=MOMENTS) if resets_header else "",
        per_route=row.flag("per_route"),
    )
