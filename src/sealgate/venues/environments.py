"""The other networks of an exchange, for tests: their hosts, and the headers that lead to them."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from sealgate.venues.document import FIELD_NAME, Table
from sealgate.venues.streams import plain_host

_NAME = re.compile(r"[a-z0-9][a-z0-9_\-]*")
_HOST = re.compile(r"[a-z0-9.\-]+(:\d+)?", re.ASCII)
_VALUE = re.compile(r"[!-~]([ -~]*[!-~])?")
_KEYS = ("base_url", "headers", "streams")


@dataclass(frozen=True, slots=True)
class Environment:
    """What holds in an environment in the place of what the venue's file says.

    `base_url` is "" where the address is the same. `headers` go with everything that is sent. `streams` has
    hosts by the hosts for which they stand in, both with the port unless it is 443.
    """

    base_url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    streams: Mapping[str, str] = field(default_factory=dict)

    def stream_hosts(self, listed: Iterable[str]) -> dict[str, tuple[str, str]]:
        """Return the hosts of streams that a bot may name: which of the listed ones it is, which one to dial.

        In an environment with hosts of its own there are only these, by either name.
        """
        hosts: dict[str, tuple[str, str]] = {}
        for host in listed:
            if not self.streams or host in self.streams:
                dialed = plain_host(self.streams.get(host, host))
                hosts[host] = host, dialed
                hosts.setdefault(dialed, (host, dialed))
        return hosts


def read_environments(
    table: Table, url: "re.Pattern[str]", signing_headers: Collection[str]
) -> dict[str, Environment]:
    """Read `[environments]`: tables by name. `signing_headers` are the signature's own, in small letters."""
    found = {}
    for name in table.data:
        if not _NAME.fullmatch(name):
            raise table.error(name, f"{name!r} is not a name such as test")
        row = table.table(name, _KEYS)
        if not row.data:
            raise table.error(name, f"{name} changes nothing: it may have {', '.join(_KEYS)}")
        headers, streams = row.table("headers"), row.table("streams")
        for header in headers.data:
            if not FIELD_NAME.fullmatch(header):
                raise headers.error(header, f"{header!r} is not a header name")
            if header.lower() in signing_headers:
                raise headers.error(header, f"{header} is a header of [signing], which sets it")
        for host in streams.data:
            if not _HOST.fullmatch(host):
                raise streams.error(host, f"{host!r} is not a host such as stream.example.com:9443")
        found[name] = Environment(
            row.checked("base_url", url, "an https address without a slash at its end", ""),
            {header: headers.checked(header, _VALUE, "a value of a header") for header in headers.data},
            {
                host: streams.checked(host, _HOST, "a host such as stream.example.com")
                for host in streams.data
            },
        )
    return found
