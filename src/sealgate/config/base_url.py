"""The upstream's base URL.

Its host and its path are put before every bot's path, so it must have one reading only: no user name, no
query, no fragment, no escapes and no dot segments. It is never echoed in an error, as people paste URLs with
passwords in them; what has the form of a host, and no more, is proposed with its scheme.
"""

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from sealgate.config.address import bracketed, is_loopback, parse_host
from sealgate.config.names import is_plain_path

_EXAMPLE = "https://api.example.com"
# A name in small letters with a domain at its end is no secret, neither is an address.
_BARE_HOST = re.compile(
    r"(?P<host>localhost|[0-9]{1,3}(?:\.[0-9]{1,3}){3}|\[[0-9a-f:]{2,39}\]|(?:[a-z0-9-]{1,63}\.)+[a-z]{2,12})"
    r"(?::[0-9]{1,5})?/?"
)
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class BaseUrl:
    """A checked base URL.

    The host is an IPv6 address without brackets, an IPv4 address or a name; the path of its own has no slash
    at its end, "" is none.
    """

    scheme: str
    host: str
    port: int
    path: str

    @property
    def origin(self) -> str:
        """Scheme, host and port, the scheme's default port left out."""
        return f"{self.scheme}://{self.authority}"

    @property
    def authority(self) -> str:
        """The Host header's value: host and port, the scheme's default port left out."""
        host = bracketed(self.host)
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.origin}{self.path}"


def parse_base_url(value: object) -> BaseUrl:
    """Parse and check a base URL; raise ValueError with the cause and the fix."""
    parts = _split(value)
    if parts.username is not None or parts.password is not None:
        raise ValueError("holds a user name or a password; remove it, keys belong under [keys]")
    if not parts.hostname:
        raise ValueError(f'has no host; write "{_EXAMPLE}"')
    host = parse_host(parts.hostname)
    if parts.scheme == "http" and not is_loopback(host):
        raise ValueError("is plain http to another machine; use https (http is for loopback hosts only)")
    return BaseUrl(parts.scheme, host, _port(parts), _path(parts))


def _split(value: object) -> SplitResult:
    # urlsplit drops tabs and line ends silently, so they are looked for before.
    if not isinstance(value, str) or not value.isascii() or not value.isprintable() or " " in value:
        raise ValueError("is not a URL in plain ASCII; write a foreign host name in its xn-- form")
    if "?" in value or "#" in value or "\\" in value:
        raise ValueError("has a query, a fragment or a backslash; end it after the path")
    try:
        parts = urlsplit(value)
    except ValueError:
        raise ValueError(f'is not a URL; write "{_EXAMPLE}"') from None
    if parts.scheme not in _DEFAULT_PORTS:
        raise ValueError(f'is not an http or https URL; write "{_proposed(value)}"')
    return parts


def _proposed(text: str) -> str:
    """Return the URL that a host without a scheme means; for all else the example."""
    found = _BARE_HOST.fullmatch(text)
    if found is None:
        return _EXAMPLE
    scheme = "http" if is_loopback(found["host"].strip("[]")) else "https"
    try:
        return str(parse_base_url(f"{scheme}://{text}"))
    except ValueError:
        return _EXAMPLE


def _port(parts: SplitResult) -> int:
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0:
        raise ValueError("has a port out of range; use 1 to 65535")
    return port or _DEFAULT_PORTS[parts.scheme]


def _path(parts: SplitResult) -> str:
    path = parts.path.rstrip("/")
    if not is_plain_path(path):
        raise ValueError("has a path that is not plain; use letters, digits and -._~ between single slashes")
    return path
