"""How an exchange counts requests against its limits, as a venue's file says it: in pools.

A pool is what an exchange counts together. A file that describes none has one of them, which every request
passes.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sealgate.machine.nearest import did_you_mean
from sealgate.venues.document import FIELD_NAME, POINTER, Table
from sealgate.venues.replies import MOMENTS, Scope
from sealgate.venues.routes import METHODS, OTHER, Lane, RouteRow

ALL = "all"  # the name of the pool of a file that describes none
LIMITS_KEYS = ("scope", "counters", "known", "pools", "stream_opens")
_MEMBERS = ("lanes", "routes", "outside", "open", "per")
_POOL_KEYS = ("name", "scope", *_MEMBERS, "counts", "known", "aligned", "counter", "counters")
_COUNTER_KEYS = ("header", "counts", "window_s", "most", "most_header", "resets_header", "resets")
_LIMIT = re.compile(r"([1-9]\d*(?:\.\d+)?)/([1-9]\d*(?:\.\d+)?|0\.\d*[1-9]\d*)s", re.ASCII)
_NAME = re.compile(r"[a-z0-9][a-z0-9_\-]{0,31}")


@dataclass(frozen=True, slots=True)
class Counter:
    """A header in which replies say how much of a limit is used or left; `most` is 0 where replies say it.

    `pool` is the name of the pool that it speaks of. `resets` is how `resets_header` is to be read, one of
    MOMENTS.
    """

    header: str
    counts: str  # used | left
    window_s: float
    most: float
    most_header: str
    resets_header: str
    resets: str = ""
    pool: str = ALL


@dataclass(frozen=True, slots=True)
class PoolRule:
    """What an exchange counts together: the requests that meet all of its conditions.

    These are `lanes`, `routes`, `outside`, `is_open` and `is_signed`; one that is empty or False is none.
    `routes` are pairs of a method and a template, and so are those of other pools, `outside` of which its
    requests are. With `per` each route, or value of a parameter, is counted by itself.
    """

    name: str
    scope: Scope
    lanes: frozenset[Lane] = frozenset()
    routes: frozenset[tuple[str, str]] = frozenset()
    outside: frozenset[tuple[str, str]] = frozenset()
    is_open: bool = False  # only requests that need no key
    is_signed: bool = False  # only requests that need one
    per: str = ""  # "route": one for each method and template
    per_parameter: str = ""  # a JSON pointer into the parameters or the body: one for each value
    counts: str = "cost"  # cost | requests: each request is 1
    known: tuple[str, ...] = ()  # "100/10s": believed until refuted
    is_aligned: bool = False  # its windows begin at whole multiples of their length, by the exchange's clock

    @property
    def has_all(self) -> bool:
        """Whether every request passes it, and all of them are counted together."""
        members = (self.lanes, self.routes, self.outside, self.is_open, self.is_signed)
        return not any((*members, self.per, self.per_parameter))

    def takes(self, method: str, template: str) -> bool:
        """Ask whether requests of a route may be its members, as far as `routes` and `outside` go."""
        asked = method, template
        return (not self.routes or asked in self.routes) and asked not in self.outside


@dataclass(frozen=True, slots=True)
class LimitRules:
    """How a venue counts, and what it says of that; `pools` is never empty.

    `stream_opens` is how many streams an address may open, such as "300/300s", "" where nothing is known.
    """

    scope: Scope
    counters: tuple[Counter, ...]
    pools: tuple[PoolRule, ...]
    stream_opens: str = ""

    @property
    def whole(self) -> PoolRule | None:
        """The one pool that every request passes, None where there is none, or several."""
        pools = [pool for pool in self.pools if pool.has_all]
        return pools[0] if len(pools) == 1 else None


def published(text: str) -> tuple[float, float]:
    """Return how many requests a limit such as "1200/60s" grants, and in how many seconds."""
    requests, _, window = text.partition("/")
    return float(requests), float(window.removesuffix("s"))


def read_limits(table: Table, rows: Iterable[RouteRow], prefix: str) -> LimitRules:
    """Read `[limits]`, whose pools name the routes of `rows`. Raises VenueError."""
    scope = Scope(table.text("scope", Scope.KEY, list(Scope)))
    stream_opens = table.checked("stream_opens", _LIMIT, "a limit such as 300/300s", "")
    if not (pool_tables := table.tables("pools", _POOL_KEYS)):
        known = _known(table)
        counters = [_counter(row, ALL, known) for row in table.tables("counters", _COUNTER_KEYS)]
        return LimitRules(scope, tuple(counters), (PoolRule(ALL, scope, known=known),), stream_opens)
    for key in ("known", "counters"):
        if key in table.data:
            raise table.error(key, f"{key} is a pool's where there are pools: write it in [[limits.pools]]")
    pairs = pairs_of(rows)
    read: dict[str, tuple[PoolRule, list[Counter]]] = {}
    of_file: dict[str, set[str]] = {}  # a file's pool takes the place of that of the file that it is like
    routes = {str(row.data.get("name")): _routes(row, pairs, prefix) for row in reversed(pool_tables)}
    for row in pool_tables:
        pool = _pool(row, scope, routes)
        own = of_file.setdefault(row.file, set())
        if pool.name in own:
            raise row.error("name", f"{pool.name!r} is the name of a pool before it; choose another one")
        own.add(pool.name)
        if pool.name not in read:
            read[pool.name] = pool, _counters(row, pool)
    pools = tuple(pool for pool, _ in read.values())
    return LimitRules(
        scope,
        tuple(counter for _, counters in read.values() for counter in counters),
        pools,
        stream_opens,
    )


def pairs_of(rows: Iterable[RouteRow]) -> frozenset[tuple[str, str]]:
    """Return method and template of each row."""
    return frozenset(
        (method, row.template) for row in rows for method in (METHODS if row.method == "*" else (row.method,))
    )


def pairs_named(route: str, pairs: Iterable[tuple[str, str]], prefix: str) -> set[tuple[str, str]]:
    """Return the pairs that a text such as "POST /v1/order" means, none where there is no such row.

    `*` is any method, and with `/**` at its end it means all below, too.
    """
    method, _, path = route.partition(" ")
    template = path[len(prefix) :] if path.startswith(f"{prefix}/") else ""
    found = {
        (one, OTHER if other == "/**" else other)
        for one, other in pairs
        if method in ("*", one)
        and (other == template or (template.endswith("/**") and other.startswith(template[:-2])))
    }
    # RFC 9110 section 9.3.2: HEAD is GET without the content, and is routed as one.
    return found | {("HEAD", other) for one, other in found if one == "GET"}


def route_names(pairs: Iterable[tuple[str, str]], prefix: str) -> list[str]:
    """Return how `routes` of a pool may name each pair."""
    return sorted(f"{method} {prefix}{template}" for method, template in pairs)


def _pool(row: Table, scope: Scope, routes: Mapping[str, frozenset[tuple[str, str]]]) -> PoolRule:
    name = row.checked("name", _NAME, "a name such as orders")
    is_per_parameter = isinstance(row.data.get("per"), dict)
    is_open = row.flag("open")
    return PoolRule(
        name=name,
        scope=Scope(row.text("scope", scope, list(Scope))),
        lanes=frozenset(_lanes(row)),
        routes=routes[name],
        outside=_outside(row, routes),
        is_open=is_open,
        is_signed="open" in row.data and not is_open,
        per="" if is_per_parameter else row.text("per", "", ("", "route")),
        per_parameter=_parameter(row) if is_per_parameter else "",
        counts=row.text("counts", "cost", ("cost", "requests")),
        is_aligned=row.flag("aligned"),
        known=_known(row),
    )


def _outside(row: Table, routes: Mapping[str, frozenset[tuple[str, str]]]) -> frozenset[tuple[str, str]]:
    """Return the routes of the pools that `outside` names."""
    names = sorted(name for name, found in routes.items() if found)
    for name in row.texts("outside"):
        if name not in names:
            raise row.error(
                "outside", f"{name!r} in outside is no pool with routes; it may be {', '.join(names)}"
            )
    return frozenset().union(*(routes[name] for name in row.texts("outside")))


def _parameter(row: Table) -> str:
    """Read `per = { parameter = "/pair" }`."""
    table = row.table("per", ("parameter",))
    return table.checked("parameter", POINTER, "a JSON pointer such as /symbol")


def _lanes(row: Table) -> Iterable[Lane]:
    for lane in row.texts("lanes"):
        if lane not in list(Lane):
            raise row.error("lanes", f"{lane!r} in lanes is unknown; {did_you_mean(lane, Lane)}")
        yield Lane(lane)


def _routes(row: Table, pairs: frozenset[tuple[str, str]], prefix: str) -> frozenset[tuple[str, str]]:
    """Read `routes`. Raises VenueError where `[[routes]]` has no such row."""
    found: set[tuple[str, str]] = set()
    for route in row.texts("routes"):
        if not (meant := pairs_named(route, pairs, prefix)):
            near = did_you_mean(route, route_names(pairs, prefix))
            raise row.error("routes", f"{route!r} in routes is no route of [[routes]]; {near}")
        found |= meant
    return frozenset(found)


def _known(table: Table) -> tuple[str, ...]:
    for known in table.texts("known"):
        if not _LIMIT.fullmatch(known):
            raise table.error("known", f"{known!r} in known is not a limit such as 1200/60s")
    return table.texts("known")


def _counters(row: Table, pool: PoolRule) -> list[Counter]:
    """Read `counter`, or `counters`, of a pool."""
    if "counter" in row.data and "counters" in row.data:
        raise row.error("counter", "a pool has counter, or counters where there are several")
    one = [row.table("counter", _COUNTER_KEYS)] if "counter" in row.data else []
    return [_counter(table, pool.name, pool.known) for table in one or row.tables("counters", _COUNTER_KEYS)]


def _counter(row: Table, pool: str, known: Iterable[str]) -> Counter:
    most_header = row.checked("most_header", FIELD_NAME, "the name of a header", "")
    resets_header = row.checked("resets_header", FIELD_NAME, "the name of a header", "")
    counts = row.text("counts", "used", ("used", "left"))
    window_s = row.number("window_s", 1.0)
    if most_header and "most" in row.data:
        raise row.error("most", "a counter has most, or most_header where replies say it")
    if "most" in row.data:
        most = row.number("most", 1.0)
    else:
        most = 0.0 if most_header or counts == "left" else most_in(known, window_s)
    if counts == "used" and not most_header and not most:
        raise row.error(None, "a counter has most, most_header where replies say it, or known of its window")
    if "resets" in row.data and not resets_header:
        raise row.error("resets", "resets needs resets_header")
    return Counter(
        header=row.checked("header", FIELD_NAME, "the name of a header"),
        counts=counts,
        window_s=window_s,
        most=most,
        most_header=most_header,
        resets_header=resets_header,
        resets=row.text("resets", choices=MOMENTS) if resets_header else "",
        pool=pool,
    )


def most_in(known: Iterable[str], window_s: float) -> float:
    """Return what the first published limit of a window grants, 0 without one."""
    return next((n for n, window in map(published, known) if window == window_s), 0.0)
