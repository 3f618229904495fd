"""The lists of docs/exchanges: of exchanges and their other names, signatures, streams and pools."""

from urllib.parse import urlsplit

from sealgate.cli.venues import ANY_WORDS, stream_words, streams_by_hosts
from sealgate.config.venue_names import NotServed, Served, other_names
from sealgate.venues.key_kinds import Kind
from sealgate.venues.limit_rules import ALL, PoolRule
from sealgate.venues.scheme import Scheme
from sealgate.venues.stream_grammar import ANY_PATH
from sealgate.venues.streams import Stream
from sealgate.venues.venue import Scope, Venue
from venues.page_rows import DEFAULT, PAGES, code, parent_of, table_row
from venues.through import FILES, venue_of

_NAMES_HEAD = """\
| other name | write, or why it is not served |
|---|---|
"""
_SECURITY = "see [SECURITY.md](../../SECURITY.md#what-stays-in-memory)"
_POOLS_HEAD = """\
| venue | pool | of each | requests | published limits | counted in | remembered |
|---|---|---|---|---|---|---|
"""
_STREAMS_HEAD = """\
| venue | hosts; environments | paths | openings |
|---|---|---|---|
"""
_LIST_HEAD = """\
| `venue` | host; environments | keys | limits per | note |
|---|---|---|---|---|
"""
_SIGNATURES_HEAD = """\
| venue | signing changes | kinds | time | replies | verified with |
|---|---|---|---|---|---|
"""
SHARED_BY = {Scope.KEY: "key", Scope.ACCOUNT: "account", Scope.ADDRESS: "IP address"}
_KIND_WORDS = {Kind.HMAC: "HMAC", Kind.ED25519: "Ed25519", Kind.RSA: "RSA", Kind.ES256: "ECDSA"}


def venues_block() -> str:
    """Return the table of exchanges that have no page of their own, but for the sandbox's venue."""
    listed = {name for names in PAGES.values() for name in names} | {DEFAULT}
    return _LIST_HEAD + "".join(
        _venue_row(venue) for venue in map(venue_of, FILES) if venue.name not in listed
    )


def _venue_row(venue: Venue) -> str:
    title = f"[{venue.title}]({venue.docs})" if venue.docs else venue.title
    cells = (
        f"`{venue.name}`<br>{title}",
        _hosts(venue),
        key_words(venue),
        SHARED_BY[venue.limits.scope],
        " ".join(filter(None, (venue.note, _kept(venue.signing)))) or "-",
    )
    return table_row(*cells)


def key_words(venue: Venue) -> str:
    """Return the kinds of keys that a venue takes, and what a key needs besides its secret."""
    kinds = (
        ["the secret itself"] if venue.signing.is_static else [_KIND_WORDS[kind] for kind in venue.schemes]
    )
    wants = [f"`{name}`" for name in ("passphrase", "uid") if venue.signing.needs(name)]
    return "; ".join(filter(None, (", ".join(kinds), ", ".join(wants))))


def signatures_block() -> str:
    """Return the table of signatures."""
    return _SIGNATURES_HEAD + "".join(
        table_row(
            f"`{venue.name}`",
            venue.tier,
            "<br>".join(map(_signature, venue.schemes.values())),
            "yes" if venue.clock_path else "-",
            str(len(venue.replies.rules) or "-"),
            venue.checked,
        )
        for venue in map(venue_of, FILES)
        if venue.name != DEFAULT
    )


def _signature(scheme: Scheme) -> str:
    return scheme.signature if scheme.is_static else f"{scheme.kind}: {scheme.signature}"


def _kept(signing: Scheme) -> str:
    """Say what becomes of the secret where that is more than to sign with it."""
    if signing.is_static:
        return f"Each request carries the secret itself, {_SECURITY}."
    return f"The secret itself stays in memory, {_SECURITY}." if signing.keeps_secret else ""


def _hosts(venue: Venue) -> str:
    """Return the host, and the environments with theirs."""
    hosts = [urlsplit(venue.base_url).netloc or "-"]
    for name, environment in venue.environments.items():
        headers = ", ".join(f"`{header}: {value}`" for header, value in environment.headers.items())
        hosts.append(f"{name}: {urlsplit(environment.base_url).netloc or headers}")
    return "<br>".join(hosts)


def pools_block() -> str:
    """Return the table of pools; a file that is like another has those that it says itself."""
    return _POOLS_HEAD + "".join(
        _pool_row(venue, pool)
        for venue in map(venue_of, FILES)
        for pool in venue.limits.pools
        if pool.name != ALL and is_own(venue, pool)
    )


def streams_block() -> str:
    """Return the table of streams; a file that is like another has those that it says itself."""
    return _STREAMS_HEAD + "".join(
        _streams_row(venue, hosts, streams)
        for venue in map(venue_of, FILES)
        for hosts, streams in streams_by_hosts(venue).items()
        if venue.name != DEFAULT and ((parent := parent_of(venue)) is None or parent.streams != venue.streams)
    )


def _streams_row(venue: Venue, hosts: tuple[str, ...], streams: list[Stream]) -> str:
    others = [
        f"{name}: {code(dict.fromkeys(own))}"
        for name, environment in venue.environments.items()
        if (own := [environment.streams[host] for host in hosts if host in environment.streams])
    ]
    paths = [f"{_paths(stream)}: {stream_words(stream)}" for stream in streams]
    cells = (f"`{venue.name}`", "<br>".join([code(hosts), *others]), "<br>".join(paths))
    return table_row(*cells, venue.limits.stream_opens or "-")


def _paths(stream: Stream) -> str:
    return ", ".join(ANY_WORDS if path == ANY_PATH else f"`{path}`" for path in stream.templates)


def is_own(venue: Venue, pool: PoolRule) -> bool:
    parent = parent_of(venue)
    return parent is None or pool not in parent.limits.pools


def _pool_row(venue: Venue, pool: PoolRule) -> str:
    counters = [counter.header for counter in venue.limits.counters if counter.pool == pool.name]
    cells = (
        f"`{venue.name}`",
        f"`{pool.name}`",
        pool.scope.value,
        members(venue, pool),
        code(pool.known) or "-",
        code(counters) or "-",
        "in part" if _is_remembered(venue, pool) else "-",
    )
    return table_row(*cells)


def members(venue: Venue, pool: PoolRule) -> str:
    """Say which requests a pool has, in words."""
    named = sorted((path, method) for method, path in pool.routes if method != "HEAD")
    calls = [f"`{method} {venue.prefix}{path}`" for path, method in named]
    others = [one.name for one in venue.limits.pools if one.routes and one.routes <= pool.outside]
    parts = [
        "public" if pool.is_open else "private" if pool.is_signed else "",
        f"lanes {', '.join(sorted(pool.lanes))}" if pool.lanes else "",
        ", ".join(calls[:3]) + (f" and {len(calls) - 3} more" if len(calls) > 3 else ""),
        f"outside {code(others)}" if others else "",
        "each route by itself" if pool.per else "",
        f"each `{pool.per_parameter.strip('/')}` by itself" if pool.per_parameter else "",
        "1 each" if pool.counts == "requests" else "",
    ]
    return "; ".join(filter(None, parts)) or "all"


def _is_remembered(venue: Venue, pool: PoolRule) -> bool:
    """Ask whether comments on a pool say that it was not looked up."""
    [file] = [file for file in FILES if file.stem == venue.name]
    parts = file.read_text("utf-8").split("\n\n")
    return any(f'name = "{pool.name}"' in part and "remembered" in part for part in parts)


def names_block() -> str:
    """Return the names that no venue has: the venue that is meant, or why the exchange is not served."""
    rows = ((code(names), _meant(meaning)) for names, meaning in other_names().rows)
    return _NAMES_HEAD + "".join(table_row(*cells) for cells in rows)


def _meant(meaning: Served | NotServed) -> str:
    if isinstance(meaning, NotServed):
        return f"not served: {meaning}"
    settings = (
        f'`{name} = "{value}"`' for name, value in {"venue": meaning.venue, **meaning.settings}.items()
    )
    return ", ".join(settings)
