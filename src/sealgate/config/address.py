"""Addresses to listen on: `host:port`, an IPv6 host in brackets (RFC 3986 section 3.2.2)."""

import re
from dataclasses import dataclass
from ipaddress import ip_address

MAX_PORT = 65535

_ADDRESS = re.compile(r"(?:\[(?P<v6>[^\[\]]*)\]|(?P<host>[^\[\]:]*)):(?P<port>[0-9]+)")
_LOCALHOST = frozenset({"localhost", "127.0.0.1", "::1"})
_UNSPECIFIED = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared with, not bound to
_NAME = re.compile(r"(?!-)[A-Za-z0-9.-]{1,253}")


@dataclass(frozen=True, slots=True)
class Address:
    """A host (an IPv6 one without its brackets) and a port; port 0 lets the system choose a free one."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    def takes(self, other: "Address") -> bool:
        """Whether who connects to the other one on this machine may come out here."""
        if self.port != other.port or self.port == 0:
            return False
        hosts = {self.host, other.host}
        if hosts & _UNSPECIFIED:
            return all(host in _UNSPECIFIED or is_loopback(host) for host in hosts)
        return len(hosts) == 1 or hosts <= _LOCALHOST

    def __str__(self) -> str:
        return f"{bracketed(self.host)}:{self.port}"


def parse_address(value: object) -> Address:
    """Parse `host:port`; raise ValueError with the cause and the fix."""
    found = _ADDRESS.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError('is not host:port; write "127.0.0.1:8787", or "[::1]:8787" for IPv6')
    host = found["host"] if found["v6"] is None else _bracketed_host(found["v6"])
    return Address(parse_host(host), parse_port(found["port"]))


def parse_optional_address(value: object) -> Address | None:
    """Parse `host:port`, or "" for none."""
    return None if value == "" else parse_address(value)


def parse_host(value: str) -> str:
    """Check an IP address (IPv6 without brackets) or a host name, and return it in lower case."""
    if not is_ip(value) and _NAME.fullmatch(value) is None:
        raise ValueError("has no valid host; write a name or an IP address, IPv6 in brackets")
    return value.lower()


def parse_port(value: str) -> int:
    """Check a port number, 0 to 65535."""
    # The length first: int() of a very long string is an error of its own.
    if len(value) > len(str(MAX_PORT)) or int(value) > MAX_PORT:
        raise ValueError(f"has a port out of range; use 0 to {MAX_PORT}")
    return int(value)


def is_ip(host: str) -> bool:
    """Whether it is an IP address and not a name."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether a host is this machine itself. Names other than localhost are not trusted to be."""
    return ip_address(host).is_loopback if is_ip(host) else host == "localhost"


def bracketed(host: str) -> str:
    """Return a host as it stands before a port."""
    return f"[{host}]" if ":" in host else host


def _bracketed_host(host: str) -> str:
    if ":" not in host:
        raise ValueError("has brackets around a host that is not IPv6; leave them out")
    return host
