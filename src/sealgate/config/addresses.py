"""Addresses and URLs: to listen on, of the exchange, of a proxy, of Redis.

Errors never repeat a URL, because people paste URLs with passwords in them.
"""

import re
import socket
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import SplitResult, parse_qs, quote, unquote, urlsplit

from sealgate.config.names import is_plain_path
from sealgate.config.references import parse_reference

MAX_PORT = 65535

_ADDRESS = re.compile(r"(?:\[(?P<v6>[^\[\]]*)\]|(?P<host>[^\[\]:]*)):(?P<port>[0-9]+)")
_LOCALHOST = frozenset({"localhost", "127.0.0.1", "::1"})
_UNSPECIFIED = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared with, not bound to
_NAME = re.compile(r"(?!-)[A-Za-z0-9.-]{1,253}")
_EXAMPLE = "https://api.example.com"
# A lower-case name with a domain at its end is not a secret, nor is an IP address.
_BARE_HOST = re.compile(
    r"(?P<host>localhost|[0-9]{1,3}(?:\.[0-9]{1,3}){3}|\[[0-9a-f:]{2,39}\]|(?:[a-z0-9-]{1,63}\.)+[a-z]{2,12})"
    r"(?::[0-9]{1,5})?/?"
)
_DEFAULT_PORTS = {"http": 80, "https": 443}
SCHEMES = ("redis", "rediss", "unix")
_PROXY_FORM = 'write "http://HOST:3128" or "socks5://HOST:1080"'
_FORM = 'write "redis://HOST:PORT/0"'


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
        """Whether a connection to the other address may reach a listener at this one."""
        if self.port != other.port or self.port == 0:
            return False
        hosts = {self.host, other.host}
        if hosts & _UNSPECIFIED:
            return all(host in _UNSPECIFIED or is_loopback(host) for host in hosts)
        return len(hosts) == 1 or hosts <= _LOCALHOST

    def __str__(self) -> str:
        return f"{bracketed(self.host)}:{self.port}"


@dataclass(frozen=True, slots=True)
class OwnAddress:
    """A listen address of one exchange or of one bot; the other name is "".

    At an exchange's address, paths do not begin with its name. A client at a bot's address is that bot.
    """

    address: Address
    exchange: str = ""
    bot: str = ""

    @property
    def setting(self) -> str:
        """The name of the setting that it comes from."""
        return f"exchanges.{self.exchange}.listen" if self.exchange else f"bots.{self.bot}.listen"


def parse_address(value: str) -> Address:
    """Parse `host:port`; raise ValueError with the cause and the fix."""
    found = _ADDRESS.fullmatch(value)
    if found is None:
        raise ValueError('is not host:port; write "127.0.0.1:8787", or "[::1]:8787" for IPv6')
    if found["v6"] is not None and ":" not in found["v6"]:
        raise ValueError("has brackets around a host that is not IPv6; remove them")
    host = parse_host(found["v6"] or found["host"] or "")
    # The length first: int() of a very long string raises its own error.
    if len(found["port"]) > len(str(MAX_PORT)) or int(found["port"]) > MAX_PORT:
        raise ValueError(f"has a port out of range; use 0 to {MAX_PORT}")
    return Address(host, int(found["port"]))


def parse_loopback_address(value: str) -> Address:
    """Parse `host:port` of this machine itself; raise ValueError with the cause and the fix."""
    address = parse_address(value)
    if not address.is_loopback:
        raise ValueError(
            "can be reached from other machines, and every client there counts as this bot; "
            'write an address such as "127.0.0.1:8802"'
        )
    return address


def parse_host(value: str) -> str:
    """Check an IP address (IPv6 without brackets) or a host name, and return it in lower case."""
    if not is_ip(value) and _NAME.fullmatch(value) is None:
        raise ValueError("has no valid host; write a name or an IP address, IPv6 in brackets")
    return value.lower()


def is_ip(host: str) -> bool:
    """Whether it is an IP address and not a name."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether a host is this machine itself. Of names, only localhost is trusted to be."""
    return ip_address(host).is_loopback if is_ip(host) else host == "localhost"


def bracketed(host: str) -> str:
    """Return a host as written before a port, IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host


@dataclass(frozen=True, slots=True)
class BaseUrl:
    """A checked base URL.

    The host is an IPv6 address without brackets, an IPv4 address or a name. The path has no slash at its end;
    "" is none.
    """

    scheme: str
    host: str
    port: int
    path: str

    @property
    def origin(self) -> str:
        """Scheme, host and port, without the scheme's default port."""
        return f"{self.scheme}://{self.authority}"

    @property
    def authority(self) -> str:
        """The Host header's value: host and port, without the scheme's default port."""
        host = bracketed(self.host)
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.origin}{self.path}"


def parse_base_url(value: str) -> BaseUrl:
    """Parse and check a base URL; raise ValueError with the cause and the fix.

    Host and path are put before every bot's path, so the URL must have only one reading. For a bare host, the
    error proposes the URL with a scheme.
    """
    parts = _split(value)
    if parts.scheme not in _DEFAULT_PORTS:
        raise ValueError(f'is not an http or https URL; write "{_proposed(value)}"')
    if parts.username is not None or parts.password is not None:
        raise ValueError("contains a user name or a password; remove it: keys belong under [keys]")
    if not parts.hostname:
        raise ValueError(f'has no host; write "{_EXAMPLE}"')
    host = parse_host(parts.hostname)
    if parts.scheme == "http" and not is_loopback(host):
        raise ValueError("is plain http to another machine; use https (http is for loopback hosts only)")

    try:
        port = _DEFAULT_PORTS[parts.scheme] if parts.port is None else parts.port
    except ValueError:
        port = 0
    if port == 0:
        raise ValueError(f"has a port out of range; use 1 to {MAX_PORT}")
    path = parts.path.rstrip("/")
    if not is_plain_path(path):
        raise ValueError(
            "has a path that is not plain; use only letters, digits and -._~ between single slashes"
        )
    return BaseUrl(parts.scheme, host, port, path)


def parse_streams_url(value: str) -> BaseUrl:
    """Parse the address of streams, ws or wss; return the http or https address of their handshakes."""
    if not value.startswith(("ws://", "wss://")):
        raise ValueError('is not a ws or wss URL; write "ws://127.0.0.1:9000"')
    return parse_base_url(f"http{value.removeprefix('ws')}")


@dataclass(frozen=True, slots=True)
class ProxyUrl:
    """A proxy on the way to the exchange. `scheme` is http (by CONNECT) or socks5; `user` is "" for none."""

    scheme: str
    host: str
    port: int
    user: str = ""

    @property
    def authority(self) -> str:
        """Host and port, for people."""
        return f"{bracketed(self.host)}:{self.port}"

    def __str__(self) -> str:
        user = f"{quote(self.user, safe='')}@" if self.user else ""
        return f"{self.scheme}://{user}{self.authority}"


def parse_proxy(value: str) -> ProxyUrl:
    """Parse and check the URL of a proxy; raise ValueError with the cause and the fix."""
    parts = _split(value, _PROXY_FORM)
    scheme = parts.scheme.removesuffix("h") if parts.scheme == "socks5h" else parts.scheme
    if parts.password is not None:
        raise ValueError(
            'contains a password; remove it, and set proxy_password = "file:proxy.password" beside it'
        )
    if scheme == "https":
        raise ValueError(
            "is an https proxy, which cannot be used; name a port where it speaks plain HTTP or SOCKS5"
        )
    if scheme not in {"http", "socks5"}:
        raise ValueError(f"is not the URL of a proxy; {_PROXY_FORM}")
    if not parts.hostname:
        raise ValueError(f"has no host; {_PROXY_FORM}")
    try:
        port = parts.port or 0
    except ValueError:
        port = 0
    if port == 0:
        raise ValueError(f"has no port, or one out of range; {_PROXY_FORM}")
    if parts.path not in {"", "/"}:
        raise ValueError("has a path; remove everything after the port")
    user = unquote(parts.username or "")
    if not re.fullmatch("[!-9;-~]{0,255}", user):  # it may not have a colon (RFC 7617 section 2)
        raise ValueError("has a user name that is not plain; use up to 255 ASCII characters without a colon")
    return ProxyUrl(scheme, parse_host(parts.hostname), port, user)


def _split(url: str, form: str = f'write "{_EXAMPLE}"') -> SplitResult:
    # `urlsplit` drops tabs and line ends, so they are checked before.
    if not url.isascii() or not url.isprintable() or " " in url:
        raise ValueError("is not a URL in plain ASCII; write a foreign host name in its xn-- form")
    if "?" in url or "#" in url or "\\" in url:
        raise ValueError("has a query, a fragment or a backslash; remove everything after the path")
    try:
        return urlsplit(url)
    except ValueError:
        raise ValueError(f"is not a URL; {form}") from None


def _proposed(text: str) -> str:
    """Return the URL of a host without a scheme; for other texts, the example."""
    found = _BARE_HOST.fullmatch(text)
    if found is None:
        return _EXAMPLE
    scheme = "http" if is_loopback(found["host"].strip("[]")) else "https"
    try:
        return str(parse_base_url(f"{scheme}://{text}"))
    except ValueError:
        return _EXAMPLE


def parse_source(value: str) -> str:
    """Check a source address for connections: this machine must have it. Raises ValueError."""
    try:
        address = ip_address("" if "%" in value else value)
    except ValueError:
        raise ValueError('is not an IP address; write one of this machine, as in "203.0.113.7"') from None
    text = "is not an IP address of this machine; write one that it has, or remove the setting"
    if address.is_unspecified or address.is_multicast:
        raise ValueError(text)
    try:
        with socket.socket(family_of(value), socket.SOCK_STREAM) as tried:
            tried.bind((str(address), 0))
    except OSError:
        raise ValueError(text) from None
    return str(address)


def family_of(ip: str) -> socket.AddressFamily:
    """Return the family of an IP address."""
    return socket.AF_INET6 if ":" in ip else socket.AF_INET


def family_name(ip: str) -> str:
    """Return the usual name of an IP address's family."""
    return "IPv6" if ":" in ip else "IPv4"


def parse_redis(value: str) -> str:
    """Check the setting for Redis: a URL, a reference to one, or "" for none. Raises ValueError."""
    if value == "":
        return ""
    if not is_redis_url(value):
        try:
            return parse_reference(value)
        except ValueError:
            raise ValueError(f"is neither a Redis URL nor a reference to one; {_FORM}") from None
    if not value.isascii() or not value.isprintable() or " " in value:
        raise ValueError(f"is not a URL; {_FORM}")
    check_redis_url(value)
    parts = urlsplit(value)
    # A Redis client looks for a password in these two places.
    if parts.password is not None or "password" in parse_qs(parts.query, keep_blank_values=True):
        raise ValueError("contains a password; put the whole URL into a file and write file:/path")
    return value


def is_redis_url(value: str) -> bool:
    """Whether a value is the URL itself, not a reference to one."""
    return value.partition("://")[0] in SCHEMES and "://" in value


def check_redis_url(url: str) -> None:
    """Check a URL. Raise ValueError with the cause and the fix."""
    try:
        parts = urlsplit(url)
        is_fine = (parts.port or 1) > 0
    except ValueError:
        is_fine = False
    if not is_fine or not is_redis_url(url):
        raise ValueError(f"is not a Redis URL; {_FORM}")
    if parts.scheme == "unix" and parts.path in {"", "/"}:
        raise ValueError('names no socket; write "unix:///run/redis/redis.sock"')
    if parts.scheme != "unix" and not parts.hostname:
        raise ValueError(f"has no host; {_FORM}")
