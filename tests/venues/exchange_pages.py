"""The generated parts of a page in docs/exchanges: hosts, limits, streams and clock of a company's venues."""

from urllib.parse import urlsplit

from sealgate.cli.venues import stream_words, streams_by_hosts
from sealgate.venues.limit_rules import ALL
from sealgate.venues.stream_grammar import ANY_PATH
from sealgate.venues.streams import Stream
from sealgate.venues.venue import Venue
from venues.exchange_tables import SHARED_BY, is_own, key_words, members
from venues.page_rows import PAGES, code, parent_of, table_row
from venues.through import FILES, venue_of

_HOSTS_HEAD = """\
| `venue` | for | host | `environment` | keys |
|---|---|---|---|---|
"""
_LIMITS_HEAD = """\
| `venue` | pool | requests | shared by | limit | header |
|---|---|---|---|---|---|
"""
_STREAMS_HEAD = """\
| `venue` | address at the gateway | what it has | other hosts |
|---|---|---|---|
"""
_CLOCK_HEAD = """\
| `venue` | its time | a request is valid for |
|---|---|---|
"""
_NETWORKS_HEAD = """\
| `venue` | `environment` | address | streams |
|---|---|---|---|
"""


def venues_of(page: str) -> list[Venue]:
    """Return the venues of a page."""
    files = {file.stem: file for file in FILES}
    return [venue_of(files[name]) for name in PAGES[page]]


def hosts_block(page: str) -> str:
    """Return the table of a page's venues: which to choose, and where it is."""
    return _HOSTS_HEAD + "".join(
        table_row(
            f"`{venue.name}`",
            f"[{venue.title}]({venue.docs})",
            urlsplit(venue.base_url).netloc,
            "<br>".join(f"`{name}`: {at}" for name, at in networks_of(venue).items()) or "-",
            key_words(venue),
        )
        for venue in venues_of(page)
    )


def networks_of(venue: Venue) -> dict[str, str]:
    """Return a venue's environments, each with its host, or with the headers that lead to it."""
    return {
        name: urlsplit(one.base_url).netloc
        or ", ".join(f"`{header}: {value}`" for header, value in one.headers.items())
        for name, one in venue.environments.items()
    }


def limits_block(page: str) -> str:
    """Return the table of the pools in which a page's venues count."""
    rows = []
    for venue in venues_of(page):
        for pool in venue.limits.pools:
            if pool.name == ALL or not is_own(venue, pool):
                continue
            headers = [counter.header for counter in venue.limits.counters if counter.pool == pool.name]
            shared_by = SHARED_BY[pool.scope]
            limit = code(pool.known) or ("replies state it" if headers else "learned")
            names = (f"`{venue.name}`", f"`{pool.name}`")
            rows.append((*names, members(venue, pool), shared_by, limit, code(headers) or "-"))
    return _LIMITS_HEAD + "".join(table_row(*cells) for cells in rows)


def streams_block(page: str) -> str:
    """Return the table of a page's streams, as a bot writes their addresses."""
    rows: dict[tuple[str, ...], None] = {}
    for venue in venues_of(page):
        parent = parent_of(venue)
        if parent is not None and parent.streams == venue.streams:
            continue
        for hosts, streams in streams_by_hosts(venue).items():
            rows |= dict.fromkeys(_stream_cells(venue, hosts, stream) for stream in streams)
    return _STREAMS_HEAD + "".join(table_row(*cells) for cells in rows)


def _stream_cells(venue: Venue, hosts: tuple[str, ...], stream: Stream) -> tuple[str, ...]:
    paths = ["/…" if path == ANY_PATH else path.replace("**", "…") for path in stream.templates]
    addresses = "<br>".join(f"`ws://127.0.0.1:8787/{hosts[0]}{path}`" for path in paths)
    words = stream_words(stream) if stream.is_read else "public data, or an address that has a token"
    return f"`{venue.name}`", addresses, words, code(hosts[1:]) or "-"


def clock_block(page: str) -> str:
    """Return the table of where the time is from, and how long a request is valid."""
    return _CLOCK_HEAD + "".join(
        table_row(
            f"`{venue.name}`",
            f"`{venue.prefix}{venue.clock_path}`" if venue.clock_path else "the header `Date`",
            _validity(venue),
        )
        for venue in venues_of(page)
    )


def _validity(venue: Venue) -> str:
    if venue.fixes_window:
        return f"{venue.recv_window_ms / 1000:g} s, always"
    if venue.states_window:
        return f"{venue.recv_window_ms / 1000:g} s, which each request states"
    return "the exchange does not say" if venue.signing.is_dated else "it carries no time"


def networks_block() -> str:
    """Return the table of all test networks."""
    return _NETWORKS_HEAD + "".join(
        table_row(
            f"`{venue.name}`",
            f"`{name}`",
            urlsplit(one.base_url).netloc
            or "the same, with " + ", ".join(f"`{header}: {value}`" for header, value in one.headers.items()),
            code(dict.fromkeys(one.streams.values())) or "-",
        )
        for venue in map(venue_of, FILES)
        for name, one in venue.environments.items()
    )


def pages_block() -> str:
    """Return the exchanges that have a page, with the names of their venues."""
    return "| exchange | `venue` |\n|---|---|\n" + "".join(
        table_row(f"[{venues_of(page)[0].title.split()[0]}]({page}.md)", code(names))
        for page, names in PAGES.items()
    )


BLOCKS = {"hosts": hosts_block, "limits": limits_block, "streams": streams_block, "clock": clock_block}
