"""One venue: what its TOML file says, read once into frozen values. Text in, `Venue` out.

The grammar is docs/venue-files.md's. Every error is one line: file, line, cause and the nearest valid name.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from urllib.parse import urlsplit

from sealgate.venues.document import POINTER, Table, VenueError
from sealgate.venues.environments import Environment, read_environments
from sealgate.venues.error_shapes import ERRORS_KEYS, ErrorShape, read_errors
from sealgate.venues.key_kinds import Kind, Signer
from sealgate.venues.like import Find, find_none, read_document
from sealgate.venues.limit_rules import LIMITS_KEYS, LimitRules, read_limits
from sealgate.venues.order_terms import OrderShape, Path, PriceShape, Rows, steps
from sealgate.venues.replies import REPLY_KEYS, Judge, Scope, read_rules
from sealgate.venues.routes import METHODS, Auth, Lane, Permission, RouteRow, RouteTable
from sealgate.venues.scheme import SIGNING_KEYS, Scheme, read_schemes
from sealgate.venues.sealer import KeyTexts, Sealer
from sealgate.venues.stream_grammar import STREAM_KEYS, read_streams
from sealgate.venues.streams import Stream
from sealgate.venues.templates import Ref, Template, names_in

__all__ = ["KeyTexts", "Scope", "Sealer", "Venue", "VenueError", "read_venue"]

_KEYS = (
    "name",
    "like",
    "title",
    "docs",
    "base_url",
    "prefix",
    "checked",
    "tier",
    "note",
    "words",
    "order_ids",
)
_TABLES = ("signing", "clock", "limits", "reads", "routes", "replies", "errors", "streams", "environments")
_NAME = re.compile(r"[a-z0-9][a-z0-9\-]*")
_URL = re.compile(r"https://[a-z0-9.\-]+(:\d+)?(/[\w.\-/]*[\w])?", re.ASCII)
_PATH = re.compile(r"(/[\w.\-{}*:=,]+)+/?", re.ASCII)
_TEMPLATE = re.compile(r"(/(\*\*|[\w.\-:=,]+|[\w.\-:=,]*\{\w+\}[\w.\-:=,]*))+/?", re.ASCII)
_READ = re.compile(rf"{_PATH.pattern}(\?[\w.\-=&]+)?", re.ASCII)
_PRICE_READ = re.compile(rf"{_PATH.pattern}(\?[\w.\-=&{{}}]+)?", re.ASCII)
_LINK = re.compile(r"https://\S+")
_PLACEHOLDER = re.compile(r"\{\w+\}")
_RECV_WINDOW_MS = 5000  # where a file does not say: the shortest that is common
_ROUTE_KEYS = (
    *("match", "auth", "needs", "trade_if", "lane", "cost", "bodiless", "shared", "order", "prices"),
    "streams_at",
)
_ORDER_PLACES = ("symbol", "size", "price", "trigger", "reduce_only", "kind", "side")
_ORDER_LISTS = ("limit", "buys", "only", "reduce_only_if", "never", "beside")
_ORDER_KEYS = ("in", "each", *_ORDER_PLACES, *_ORDER_LISTS, "contracts")
_IN = ("json", "form", "parameters")
_PLACE = "a JSON pointer such as /symbol"


@dataclass(frozen=True)
class Venue:
    """A venue, compiled. Nothing of it changes; `sealer` makes of it what signs for one key.

    `like` is the venue from which its file starts, "" for most. `schemes` say how each kind of keys signs;
    the first holds where a key's kind does not matter.
    """

    file: str
    name: str
    like: str
    title: str
    docs: str
    base_url: str
    prefix: str
    checked: str
    tier: str
    note: str
    schemes: Mapping[Kind, Scheme]
    clock_path: str
    clock_field: str
    limits: LimitRules
    signed_read: str
    key_list: str
    price_reads: tuple[str, ...]
    routes: tuple[RouteRow, ...]
    replies: Judge
    environments: Mapping[str, Environment]
    errors: ErrorShape | None
    streams: tuple[Stream, ...] = ()

    @cached_property
    def signing(self) -> Scheme:
        """The scheme of the first kind of keys."""
        return next(iter(self.schemes.values()))

    def of_kind(self, kind: Kind) -> "Venue":
        """Return the venue as it is for keys of a kind, which must be one that it takes."""
        return replace(self, schemes={kind: self.schemes[kind]})

    @cached_property
    def unsigned_routes(self) -> frozenset[str]:
        """Return the templates of routes that say nothing of a key's secret when they are answered."""
        return frozenset(row.template for row in self.routes if row.auth is not Auth.SIGNED)

    @property
    def recv_window_ms(self) -> int:
        """How old a timestamp may be, where no key's setting says otherwise."""
        return int(self.signing.recv_window or self.signing.expires_s * 1000 or _RECV_WINDOW_MS)

    @property
    def states_window(self) -> bool:
        """Whether its requests carry a time, and the file says how long that holds."""
        signing = self.signing
        return signing.is_dated and bool(signing.recv_window or signing.expires_s)

    @property
    def fixes_window(self) -> bool:
        """Whether the exchange grants all timestamps the same time, and no request says otherwise."""
        signing = self.signing
        return self.states_window and not (signing.recv_window_per_key or signing.needs("recv_window"))

    @property
    def header_prefix(self) -> str:
        """What the names of the signing headers have in common at their beginning."""
        names = [name for name, _ in self.signing.headers]
        first, last = min(names, default=""), max(names, default="")
        shared = next((at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), 0)
        return first[:shared]

    @property
    def signs_query(self) -> bool:
        """Whether the query is part of what is signed."""
        return any({"query", "target"} & names_in(text) for text in self.signing.message.values())

    @property
    def signed_target(self) -> str:
        """What is signed of the target, as `signing.target` names it."""
        return "path_and_query" if self.signs_query else "path"

    @property
    def further_settings(self) -> tuple[str, ...]:
        """Which settings a key needs beside `api_key` and `secret`."""
        return tuple(name for name in ("passphrase", "uid") if self.signing.needs(name))

    def stream_hosts(self, environment: str) -> dict[str, tuple[str, str]]:
        """Return the hosts of streams that a bot may name: the one of the file, and the one to dial."""
        listed = [host for stream in self.streams for host in stream.hosts]
        return self.environments.get(environment, Environment()).stream_hosts(listed)

    @cached_property
    def own_headers(self) -> frozenset[str]:
        """Return the names, in small letters, of headers that are the gateway's and never a bot's.

        One with a `*` at its end stands for all that begin so.
        """
        return frozenset(
            name.lower()
            for signing in self.schemes.values()
            for name in (*(name for name, _ in signing.headers), *signing.drops)
        )

    def signs_with(self, header: str) -> bool:
        """Return whether a header is one of `own_headers`."""
        name = header.lower()
        return any(
            name.startswith(own[:-1]) if own.endswith("*") else name == own for own in self.own_headers
        )

    def sealer(self, key: KeyTexts, signer: Signer, base_url: str = "") -> Sealer:
        """Return what signs for one key, whose kind must be one that the venue takes."""
        url = urlsplit(base_url or self.base_url)
        authority = f"{url.netloc}{url.path.rstrip('/')}"
        return Sealer(self.schemes[signer.kind], key, signer, authority, self.prefix)

    def overridden(
        self,
        *,
        prefix: str | None = None,
        header_prefix: str | None = None,
        encoding: str | None = None,
        secret: str | None = None,
        signs_query: bool | None = None,
    ) -> "Venue":
        """Return the venue with settings of the configuration in the place of the file's; None keeps one."""
        shared = len(self.header_prefix)

        def changed(signing: Scheme) -> Scheme:
            headers, drops, message = signing.headers, signing.drops, signing.message
            if header_prefix is not None:
                headers = tuple((header_prefix + name[shared:], text) for name, text in headers)
                drops = tuple(dict.fromkeys((*drops, f"{header_prefix}*")))
            if signs_query is not None:
                signed = "target" if signs_query else "path"
                message = {case: _with_path(text, signed) for case, text in message.items()}
            return replace(
                signing,
                headers=headers,
                drops=drops,
                message=message,
                encoding=encoding or signing.encoding,
                secret=secret or signing.secret,
            )

        kept = self.prefix if prefix is None else prefix
        signed_read, key_list = (
            path and kept + path.removeprefix(self.prefix) for path in (self.signed_read, self.key_list)
        )
        price_reads = tuple(kept + path.removeprefix(self.prefix) for path in self.price_reads)
        return replace(
            self,
            schemes={kind: changed(signing) for kind, signing in self.schemes.items()},
            prefix=kept,
            signed_read=signed_read,
            key_list=key_list,
            price_reads=price_reads,
        )


def _with_path(text: Template, signed: str) -> Template:
    return tuple(
        Ref(signed, piece.filters) if isinstance(piece, Ref) and piece.name in ("path", "target") else piece
        for piece in text
    )


def _plain(table: Table, key: str, default: str | None = None) -> str:
    """Return a text for people. A line end in it would end a comment of a configuration file."""
    text = table.text(key, default)
    if not text.isprintable():
        raise table.error(key, f"{key} has characters that are not printable")
    return text


def read_venue(file: str, text: str, find: Find = find_none) -> Venue:
    """Read and check a venue's file; `file` is its name for messages. Raises VenueError.

    `find` returns the file that it is like.
    """
    document = read_document(file, text, find)
    whole = Table(document, (), document.data, (*_KEYS, *_TABLES))
    prefix = whole.checked("prefix", _PATH, "a path such as /v1", "")
    clock = whole.table("clock", ("path", "field"))
    reads = whole.table("reads", ("signed", "keys", "prices"))
    name, title = whole.checked("name", _NAME, "a name such as my-venue"), _plain(whole, "title")
    schemes = read_schemes(whole.table("signing", SIGNING_KEYS))
    own_headers = {name.lower() for signing in schemes.values() for name, _ in signing.headers}
    routes = (*_clock_route(clock, prefix), *_routes(whole.tables("routes", _ROUTE_KEYS), prefix))
    if not all(signing.signs_method for signing in schemes.values()):
        routes = tuple(_with_strict_gets(routes))
    limits = read_limits(whole.table("limits", LIMITS_KEYS), routes, prefix)
    return Venue(
        file=file,
        name=name,
        like=whole.text("like", ""),
        title=title,
        docs=whole.checked("docs", _LINK, "an https address", ""),
        base_url=whole.checked("base_url", _URL, "an https address without a slash at its end", ""),
        prefix=prefix,
        checked=whole.text("checked", ""),
        tier=whole.text("tier", ""),
        note=_plain(whole, "note", ""),
        schemes=schemes,
        clock_path=clock.checked("path", _PATH, "a path such as /v1/time", ""),
        clock_field=clock.checked("field", POINTER, "a JSON pointer such as /data/0/ts", ""),
        limits=limits,
        signed_read=reads.checked("signed", _READ, "a path such as /v1/time", ""),
        key_list=reads.checked("keys", _PATH, "a path such as /v1/time", ""),
        price_reads=_price_reads(reads, routes, prefix),
        routes=routes,
        replies=Judge(
            read_rules(whole.tables("replies", REPLY_KEYS), [pool.name for pool in limits.pools]),
            _pointers(whole, "words"),
            _pointers(whole, "order_ids"),
        ),
        environments=read_environments(whole.table("environments"), _URL, own_headers),
        errors=read_errors(whole.table("errors", ERRORS_KEYS)),
        streams=read_streams(
            whole.tables("streams", STREAM_KEYS), _order_shape, [pool.name for pool in limits.pools]
        ),
    )


def _with_strict_gets(rows: Iterable[RouteRow]) -> Iterable[RouteRow]:
    """Yield the rows of a venue that signs no method: there an order may be executed that came by GET.

    1. A signed GET has no body, as the same bytes may be an order's.
    2. A path that rows name, but not its GET, needs by GET the most that it needs by any method.
    """
    ranks = list(Permission)
    named: set[str] = set()  # templates whose GET a row names, without the names of their placeholders
    most: dict[str, Permission] = {}
    for row in rows:
        for method in METHODS if row.method == "*" else (row.method,):
            is_get = method == "GET"
            yield replace(
                row, method=method, is_bodiless=row.is_bodiless or (is_get and row.auth is Auth.SIGNED)
            )
            shape = _PLACEHOLDER.sub("{}", row.template)
            if is_get and (row.method == "GET" or row.needs is not None or row.auth is not Auth.SIGNED):
                named.add(shape)
            elif not is_get and row.auth is Auth.SIGNED and not row.template.endswith("**"):
                needs = row.needs or (Permission.READ if method == "HEAD" else Permission.TRADE)
                most[shape] = max(needs, most.get(shape, needs), key=ranks.index)
    if "/**" not in named:
        yield RouteRow("GET", "/**", is_bodiless=True)
    for template, needs in most.items():
        if template not in named and needs is not Permission.READ:
            yield RouteRow("GET", template, needs=needs, lane=Lane.ORDER, is_bodiless=True)


def _price_reads(reads: Table, routes: tuple[RouteRow, ...], prefix: str) -> tuple[str, ...]:
    table = RouteTable(routes)
    for target in reads.texts("prices"):
        path = target.partition("?")[0].replace("{symbol}", "x")
        is_read = _PRICE_READ.fullmatch(target) and path.startswith(f"{prefix}/")
        if not is_read or re.findall(r"[{}]", target.replace("{symbol}", "", 1)):
            raise reads.error("prices", f"{target!r} is not a read such as /v1/price?symbol={{symbol}}")
        if table.find("GET", path[len(prefix) :]).prices is None:
            raise reads.error("prices", f"{target!r} in prices is no GET of [[routes]] that has prices")
    return reads.texts("prices")


def _pointers(whole: Table, key: str) -> tuple[str, ...]:
    for at in whole.texts(key):
        if not POINTER.fullmatch(at):
            raise whole.error(key, f"{at!r} in {key} is not a JSON pointer such as /msg")
    return whole.texts(key)


def _clock_route(clock: Table, prefix: str) -> Iterable[RouteRow]:
    """Yield the open route of the time, which bots may ask for, too."""
    path = clock.text("path", "")
    if path.startswith(f"{prefix}/"):
        yield RouteRow("GET", path[len(prefix) :], Auth.OPEN)


def _order_shape(row: Table) -> OrderShape | None:
    if "order" not in row.data:
        return None
    table = row.table("order", _ORDER_KEYS)
    limit, buys = table.texts("limit"), table.texts("buys")
    if bool(limit) != ("kind" in table.data):
        raise table.error(None, "kind and limit go together: which kinds of orders have a price")
    if bool(buys) != ("side" in table.data):
        raise table.error(None, "side and buys go together: which orders surely buy")
    if "beside" in table.data and not table.data.get("each"):
        raise table.error("beside", "beside needs each: a batch whose orders are not the whole body")
    if "reduce_only_if" in table.data and "reduce_only" not in table.data:
        raise table.error("reduce_only_if", "reduce_only_if needs reduce_only")
    return OrderShape(
        is_json=table.text("in", "json", _IN) == "json",
        in_query=table.data.get("in") == "parameters",
        each=_rows_at(table),
        limit=frozenset(limit),
        buys=frozenset(buys),
        only=_rows(table, "only"),
        reduce_only_if=_rows(table, "reduce_only_if"),
        never=_places(table, "never"),
        beside=_places(table, "beside"),
        in_contracts=table.flag("contracts"),
        **{name: _steps_at(table, name) for name in _ORDER_PLACES},
    )


def _trade_if(row: Table) -> OrderShape | None:
    """Read which bodies of a route need only `trade`."""
    if "trade_if" not in row.data:
        return None
    if row.data.get("needs") != Permission.KEYS:
        raise row.error("trade_if", 'trade_if needs needs = "keys": it says which bodies need less')
    table = row.table("trade_if", ("in", "each", "only", "never"))
    if not table.tables("only"):
        raise table.error(None, "only is missing")
    return OrderShape(
        is_json=table.text("in", "json", _IN) == "json",
        in_query=table.data.get("in") == "parameters",
        each=_rows_at(table),
        only=_rows(table, "only"),
        never=_places(table, "never"),
    )


def _places(table: Table, name: str) -> tuple[Path, ...]:
    for place in table.texts(name):
        if not POINTER.fullmatch(place):
            raise table.error(name, f"{place!r} in {name} is not {_PLACE}")
    return tuple(map(steps, table.texts(name)))


def _rows(table: Table, name: str) -> Rows:
    rows = table.tables(name)
    for row in rows:
        for place in row.data:
            if not POINTER.fullmatch(place):
                raise row.error(place, f"{place!r} in {name} is not {_PLACE}")
    return tuple({steps(place): row.pattern(place, finds=False) for place in row.data} for row in rows)


def _price_shape(row: Table) -> PriceShape | None:
    if "prices" not in row.data:
        return None
    table = row.table("prices", ("each", "symbol", "price"))
    symbol, price = (steps(table.checked(name, POINTER, _PLACE)) for name in ("symbol", "price"))
    return PriceShape(symbol, price, _rows_at(table))


def _rows_at(table: Table) -> Path | None:
    """Return where a list stands; "" is the whole document."""
    if "each" not in table.data:
        return None
    return steps(table.checked("each", POINTER, _PLACE, ""))


def _steps_at(table: Table, name: str) -> Path | None:
    return steps(table.checked(name, POINTER, _PLACE)) if name in table.data else None


def _routes(rows: Iterable[Table], prefix: str) -> Iterable[RouteRow]:
    for row in rows:
        if not row.texts("match"):
            raise row.error(None, "match is missing")
        for match in row.texts("match"):
            method, _, path = match.partition(" ")
            if method not in (*METHODS, "*"):
                raise row.error(
                    "match", f"{match!r} does not begin with a method ({', '.join(METHODS)} or *)"
                )
            if not path.startswith(f"{prefix}/"):
                raise row.error("match", f"{match!r} is not under the prefix {prefix}/")
            if not _TEMPLATE.fullmatch(path) or path.count("/**/") > 1:
                raise row.error(
                    "match",
                    f"{match!r} is not a path whose segments are text with at most one {{name}}, or `**`; "
                    "within a path, `**` may be there once",
                )
            needs, lane = row.text("needs", "", ("", *Permission)), row.text("lane", "", ("", *Lane))
            streams_at = _steps_at(row, "streams_at")
            yield RouteRow(
                method,
                path[len(prefix) :],
                Auth(row.text("auth", Auth.SIGNED, list(Auth))),
                Permission(needs) if needs else None,
                Lane(lane) if lane else None,
                row.number("cost", 1.0),
                row.flag("bodiless"),
                _order_shape(row),
                _price_shape(row),
                _trade_if(row),
                streams_at is None and (row.data.get("shared") is None or row.flag("shared")),
                streams_at,
            )
