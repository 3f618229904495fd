"""Routes: what a method and a path need, how they are authenticated, and which lane they take.

A table, compiled once into a tree of path segments, so that a look-up costs the depth of the path and not the
number of routes. A literal segment goes before one that is literal in part (`{coin}_withdrawal`, the one with
more letters first), this before a `{placeholder}`, and this before `**`, which stands for the whole rest of a
path or, within a template, for one segment or more. Later rows replace earlier ones of the same template.
A path that no row names gets its rule from the method, and from the words in it. The rows are those of the
venue's file, and then the configuration's.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property, lru_cache
from urllib.parse import unquote

from sealgate.venues.letters import plain_letters
from sealgate.venues.order_terms import OrderShape, Path, PriceShape
from sealgate.venues.outward import leads_out


class Auth(StrEnum):
    """How a request proves itself to the upstream."""

    SIGNED = "signed"
    KEY = "key"  # by the headers that need no signature, and nothing else
    SESSION = "session"
    OPEN = "open"
    APP_ONLY = "app_only"


class Permission(StrEnum):
    """What a bot must be allowed to do."""

    READ = "read"
    TRADE = "trade"
    KEYS = "keys"


class Lane(StrEnum):
    """Who goes first when the limit is short."""

    CANCEL = "cancel"
    ORDER = "order"
    READ = "read"


@dataclass(frozen=True)
class Route:
    """One row. `template` is relative to the prefix and names the route in metrics and log.

    `order` says where its orders have what a policy asks for, `prices` where its replies have prices.
    `is_cancel`: a row of the venue's file or of the configuration names it as a cancel, so that it passes a
    halt. The lane says only who goes first, and opens nothing.
    `share_s`: a reply to an identical request may be that old, in seconds; with 0 only those that wait go as
    one, and None shares nothing. `trade_if`: which bodies need only `trade`, though the route needs `keys`.
    `is_shareable` is False for what each bot must get for itself, such as the key of a stream. `is_named`: a
    row is about this very call, so that the words in its path do not count. `pools` are the names of those
    that a message of a stream passes; without any, its lane says so. `per` is by what a pool that has a `per`
    counts such a message: a JSON pointer, or the method and template of requests. `streams_at` is where a
    reply has the addresses of streams, as the steps of a JSON pointer in which `*` is each member of a list.
    """

    template: str
    needs: Permission
    auth: Auth
    lane: Lane
    cost: float = 1.0
    is_bodiless: bool = False  # whether a body is refused, as it might ask for something else
    order: OrderShape | None = field(default=None, compare=False)
    prices: PriceShape | None = field(default=None, compare=False)
    is_cancel: bool = field(default=False, compare=False)
    share_s: float | None = None
    trade_if: OrderShape | None = field(default=None, compare=False)
    is_shareable: bool = field(default=True, compare=False)
    is_named: bool = field(default=False, compare=False)
    pools: tuple[str, ...] = ()
    per: str = ""
    streams_at: Path | None = None

    @cached_property
    def is_read(self) -> bool:
        """Whether sending it twice changes nothing."""
        return self.needs is Permission.READ or self.auth is Auth.SESSION


OTHER = "other"  # the template of a path that no row names
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_READ_METHODS = frozenset({"GET", "HEAD"})

_PLACEHOLDER = re.compile(r"\{\w*\}")
_LETTER = "\u01c3"  # for a placeholder, while its segment is reduced: a letter that no path has
_NAME = re.compile(r"[\s.]*(v\d+\.\d+|[\w-]*).*", re.DOTALL)  # also of a version, such as v1.1
_UNSEEN = ("Cf", "Mn")  # categories of letters that are not visible, or that mark the one before


@dataclass(frozen=True, slots=True)
class RouteRow:
    """A row of a venue's file; what is None is what the rule of the method says."""

    method: str  # "*": each
    template: str
    auth: Auth = Auth.SIGNED
    needs: Permission | None = None
    lane: Lane | None = None
    cost: float = 1.0
    is_bodiless: bool = False
    order: OrderShape | None = None
    prices: PriceShape | None = None
    trade_if: OrderShape | None = None
    is_shareable: bool = True
    streams_at: Path | None = None


@dataclass(slots=True)
class _Node:
    """What may follow at one place of a path.

    `patterns` are by what a segment begins and ends with, those with more letters first; behind `inner` is
    what follows a `**` within a template.
    """

    children: "dict[str, _Node]" = field(default_factory=dict)
    patterns: "dict[tuple[str, str], _Node]" = field(default_factory=dict)
    inner: "_Node | None" = None
    routes: dict[str, Route] = field(default_factory=dict)
    subtree: dict[str, Route] = field(default_factory=dict)

    def behind(self, segment: str) -> "_Node":
        """Return the node behind a segment of a template, and make it if there is none."""
        if segment == "**":
            self.inner = self.inner or _Node()
            return self.inner
        begins, is_placeholder, rest = segment.partition("{")
        ends = rest.partition("}")[2]
        if not is_placeholder:
            return self.children.setdefault(segment, _Node())
        if not begins and not ends:
            return self.children.setdefault("{}", _Node())
        node = self.patterns.setdefault((begins, ends), _Node())
        self.patterns = dict(sorted(self.patterns.items(), key=lambda item: -len(item[0][0] + item[0][1])))
        return node

    def fitting(self, segment: str) -> "Iterator[_Node]":
        """Yield the nodes behind a segment of a path."""
        if (literal := self.children.get(segment)) is not None:
            yield literal
        for (begins, ends), node in self.patterns.items():
            is_longer = len(segment) > len(begins) + len(ends)
            if is_longer and segment.startswith(begins) and segment.endswith(ends):
                yield node
        if (any_segment := self.children.get("{}")) is not None and any_segment is not literal:
            yield any_segment


@dataclass(frozen=True, slots=True)
class CustomRoute:
    """A row of the configuration: what it changes of the rule that would hold without it."""

    method: str
    template: str
    needs: Permission | None = None
    lane: Lane | None = None
    cost: float | None = None
    share_s: float | None = None


class RouteTable:
    """The compiled table. `find` never fails: an unnamed path gets the rule of its method.

    `share_open_s` is the `share_s` of reads that need no API key, unless a row of the configuration has one.
    """

    def __init__(
        self,
        rows: Iterable[RouteRow] = (),
        custom: Iterable[CustomRoute] = (),
        share_open_s: float = 0.0,
    ) -> None:
        self._root = _Node()
        # By their segments' plainest spelling: what is signed and needs more than its method says; all rows.
        self._guarded, self._plainest = _Node(), _Node()
        self._apps: list[list[str]] = []  # whole trees that are the app's, by what their segments begin with
        for row in rows:
            for name in METHODS if row.method == "*" else (row.method,):
                route = _route(name, row, share_open_s if row.auth is Auth.OPEN else 0.0)
                self._add(name, route, row.template, is_guarded=_is_guarded(name, route))
            if row.auth is Auth.APP_ONLY and row.template.endswith("/**"):
                self._apps.append(row.template.strip("/").split("/")[:-1])
        self._other = {method: _other(method) for method in METHODS}
        self._other_cancel = {method: replace(self._other[method], lane=Lane.CANCEL) for method in METHODS}
        for change in custom:
            standing = self._search(change.method, _PLACEHOLDER.sub("{}", change.template))
            route = _changed(replace(standing, template=change.template), change)
            is_guarded = _is_guarded(change.method, standing) or _is_guarded(change.method, route)
            self._add(change.method, route, change.template, is_guarded=is_guarded)
        self._found = lru_cache(maxsize=1024)(self._search)

    def find(self, method: str, path: str) -> Route:
        """Return the route of a method and a path relative to the prefix ("/order/cancel")."""
        return self._found(method, path)

    def method_of_read(self, path: str) -> str:
        """Return the method of a read that the gateway or a command sends: some exchanges have only POST."""
        is_post = self.find("POST", path).needs is Permission.READ
        get = self.find("GET", path)
        is_get = get.template != OTHER and get.needs is Permission.READ
        return "POST" if is_post and not is_get else "GET"

    def _add(self, method: str, route: Route, template: str, *, is_guarded: bool) -> None:
        _add(self._root, method, route, _segments(template))
        reduced = _reduced_segments(template)
        _add(self._plainest, method, route, reduced)
        if is_guarded:
            _add(self._guarded, method, route, reduced)

    def _search(self, method: str, path: str) -> Route:
        # RFC 9110 section 9.3.2: HEAD is GET without the content.
        asked = "GET" if method == "HEAD" else method
        segments = _as_the_apps(_segments(path), self._apps)
        plainest = list(map(_reduced, segments))
        found = _search(self._root, segments, 0, asked)
        guarded = _search(self._guarded, plainest, 0, asked)
        # 0. What needs more than its method says needs it in any spelling; a row within it counts only in
        #    its own.
        if guarded is not None and found is not _search(self._plainest, plainest, 0, asked):
            found = guarded
        # 1. A row that names the call, or whose path goes unsigned, decides.
        if found is not None and (found.is_named or found.auth is not Auth.SIGNED):
            return found
        # 2. Some frameworks take every method for the one that is named.
        if asked not in _READ_METHODS:
            for other in METHODS:
                route = _search(self._guarded, plainest, 0, other)
                if route is not None and route.needs is Permission.KEYS:
                    return replace(route, lane=Lane.ORDER)  # also where only the list of keys is named
        # 3. A row for a whole tree decides, else the method. By its words, a path needs more.
        if found is None:
            found = (self._other_cancel if path.endswith("/cancel") else self._other)[method]
        if found.needs is Permission.TRADE and _has_word(segments, plainest):
            return replace(found, needs=Permission.KEYS, lane=Lane.ORDER, is_cancel=False)
        return found


def _add(node: _Node, method: str, route: Route, segments: list[str]) -> None:
    *before, last = segments
    for segment in before:
        node = node.behind(segment)
    if last == "**":
        node.subtree[method] = route
    else:
        node.behind(last).routes[method] = route


def _is_guarded(method: str, route: Route) -> bool:
    """Whether other spellings need the same: an exchange might take them for the route, too."""
    needs_more = not route.is_read if method in _READ_METHODS else route.needs is Permission.KEYS
    return needs_more and route.auth is Auth.SIGNED


def _segments(path: str) -> list[str]:
    return path.strip("/").split("/")


def _reduced_segments(template: str) -> list[str]:
    return [
        name if name == "**" else _reduced(_PLACEHOLDER.sub(_LETTER, name)).replace(_LETTER, "{}")
        for name in _segments(template)
    ]


def _as_the_apps(segments: list[str], apps: Iterable[list[str]]) -> list[str]:
    """Return the segments, or a place in the app's tree where another spelling could lead some server there.

    Frameworks ignore case, cut an extension (`.json`) or a suffix (`:rotate`), trim, and read compatible
    letters as the plain ones; the table knows one spelling. Nothing else has such a name, so refusing costs
    nothing.
    """
    for names in apps:
        own = segments[: len(names)]
        is_theirs = len(own) == len(names) and all(map(_is_like, own, names))
        if is_theirs and own != names:
            return [*names, "**"]
    return segments


def _is_like(segment: str, name: str) -> bool:
    return _reduced(segment) == name


@lru_cache(maxsize=1024)
def _reduced(segment: str) -> str:
    """Return the name that a segment begins with, in its plainest spelling (Unicode NFKC, case folded)."""
    return _NAME.sub(r"\1", _plain(segment)).replace("_", "-")


def _plain(segment: str) -> str:
    return plain_letters(unquote(segment), _UNSEEN)


def _has_word(segments: list[str], plainest: list[str]) -> bool:
    """Ask whether a path leads out of the account by its words, also where a server cuts a segment's end."""
    return leads_out("/" + "/".join(map(_plain, segments))) or leads_out("/" + "/".join(plainest))


def _search(node: _Node, segments: list[str], at: int, method: str) -> Route | None:
    if at == len(segments):
        return node.routes.get(method) or node.subtree.get(method)
    for child in node.fitting(segments[at]):
        if (found := _search(child, segments, at + 1, method)) is not None:
            return found
    if node.inner is not None:
        for end in range(at + 1, len(segments)):
            if (found := _search(node.inner, segments, end, method)) is not None:
                return found
    return node.subtree.get(method)


def _changed(standing: Route, row: CustomRoute) -> Route:
    """Apply a row of the configuration; how a route is authenticated stays the exchange's own."""
    needs = row.needs or standing.needs
    is_demoted = row.needs is Permission.READ and standing.lane is Lane.ORDER
    lane = row.lane or (Lane.READ if is_demoted else standing.lane)
    if row.lane is Lane.CANCEL and row.needs is None and not standing.is_named:
        needs = Permission.TRADE if needs is Permission.KEYS else needs  # by its words alone
    is_cancel = needs is not Permission.KEYS and Lane.CANCEL in (
        row.lane,
        lane if standing.is_cancel else None,
    )
    cost = row.cost or standing.cost
    changed = replace(
        standing,
        needs=needs,
        lane=lane,
        cost=cost,
        is_cancel=is_cancel,
        trade_if=standing.trade_if if row.needs is None else None,
        is_named=standing.is_named or row.needs is not None or row.lane is Lane.CANCEL,
    )
    return _shared(changed, row.method, standing.share_s if row.share_s is None else row.share_s)


def _route(method: str, row: RouteRow, share_s: float = 0.0) -> Route:
    """Return the route of a row; `share_s` is for reads by a method that has no body."""
    needs = row.needs or (Permission.READ if method in _READ_METHODS else Permission.TRADE)
    lane = row.lane or _lane(method, row.template)
    if row.lane is None and lane is Lane.ORDER and needs is Permission.READ:
        lane = Lane.READ
    if row.lane is None and lane is Lane.READ and needs is Permission.TRADE:
        lane = Lane.ORDER
    if lane is Lane.READ and needs is Permission.KEYS and method not in _READ_METHODS:
        lane = Lane.ORDER  # it makes or changes keys, also where a row is about every method
    is_cancel = row.lane is Lane.CANCEL and needs is Permission.TRADE
    route = Route(
        OTHER if row.template == "/**" else row.template,
        needs,
        row.auth,
        lane,
        row.cost,
        row.is_bodiless,
        row.order,
        row.prices,
        is_cancel,
        trade_if=row.trade_if,
        is_shareable=row.is_shareable,
        is_named=not row.template.endswith("**") and row.template != OTHER,
        streams_at=row.streams_at,
    )
    return _shared(route, method, share_s if method in _READ_METHODS else None)


def _shared(route: Route, method: str, share_s: float | None) -> Route:
    """Let reads be shared: those by a method that has no body by themselves, others where it is said."""
    if share_s is None and method in _READ_METHODS:
        share_s = 0.0
    return replace(route, share_s=share_s if route.is_read and route.is_shareable else None)


def _other(method: str) -> Route:
    return _route(method, RouteRow(method, OTHER))


def _lane(method: str, template: str) -> Lane:
    if method == "DELETE" or template.endswith("/cancel"):
        return Lane.CANCEL
    return Lane.READ if method in _READ_METHODS else Lane.ORDER
