"""The request target: one reading only.

The bytes that arrive are the bytes that are signed and sent, so nothing is repaired here. A target that two
parsers could read differently is refused (RFC 3986 section 6 lists what normalisers do; proxies and
frameworks do more). Policy is decided on the same string.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from sealgate.errors import Refusal

# RFC 3986 section 3.3, without ";" (parameters are stripped by some servers) and with well-formed escapes.
_PATH = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,=:@/]|%[0-9A-Fa-f]{2})+")
# Section 3.4, and the square brackets that many APIs use; "#" never reaches a server.
_QUERY = re.compile(r"(?:[A-Za-z0-9\-._~!$&'()*+,=:@/?\[\]]|%[0-9A-Fa-f]{2})+")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
# Some servers decode these once more, or cut the path there.
_STRUCTURAL = frozenset(b"/\\%;?#")
_SEPARATOR = frozenset(b";")  # some servers separate parameters by it
_DELETE, _SPACE = 0x7F, 0x20
# RFC 9112 sections 3.2.2 and 3.2.3; some clients write a whole address behind the gateway's own.
_ABSOLUTE = re.compile(
    r"/?(https?)://(?:[^/?#@]*@)?([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(?![^/?#])", re.IGNORECASE
)
_AUTHORITY = re.compile(r"([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})")
_HTTPS_PORT = "443"
_MOST_SHOWN = 200  # letters
_LONGEST_PATH = 8000  # octets: the least that RFC 9112 section 3 asks of every server
_C1_CONTROLS = re.compile("[\x80-\x9f]")  # two octets each in UTF-8
# RFC 9110 section 7.2: a name or an IPv4 address, or an IPv6 address in brackets; then perhaps a port.
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._~-]+))(?::[0-9]{1,5})?")


@dataclass(frozen=True, slots=True)
class Target:
    """A target that has one reading. `raw` is as it arrived: `path`, or `path?query`."""

    raw: str
    path: str
    query: str | None

    @property
    def shown(self) -> str:
        """The path for messages, cut if it is long."""
        return self.path[:_MOST_SHOWN]


@lru_cache(maxsize=512)  # bots repeat a few targets; a refusal is never kept
def parse_target(raw: str, prefix: str) -> Target:
    """Check a raw request target against the grammar and the prefix.

    `raw` is as in the request line, `prefix` is like "/v1/trade". Raises Refusal `ambiguous_target` or
    `outside_prefix`.
    """
    path, mark, query = raw.partition("?")
    _check_path(path)
    if mark:
        _check_query(query)
    if not path.startswith(prefix + "/"):
        raise Refusal("outside_prefix", f"This gateway forwards only paths under {prefix}/.")
    return Target(raw, path, query if mark else None)


def reached_by_proxy(method: str, raw: str) -> str | None:
    """Return the address for which a client uses us as a proxy; None if it does not, "" if unclear."""
    if method == "CONNECT":
        match = _AUTHORITY.fullmatch(raw)
        if match is None:
            return ""
        return f"https://{match[1]}" if match[2] == _HTTPS_PORT else f"https://{match[0]}"
    if raw.startswith("/") and not raw.startswith(("/http://", "/https://")):
        return None
    match = _ABSOLUTE.match(raw)
    return None if match is None else f"{match[1].lower()}://{match[2]}{match[3] or ''}"


def _check_path(path: str) -> None:
    if not path.startswith("/"):
        raise _ambiguous("the target must be a path that begins with /")
    if len(path) > _LONGEST_PATH:  # what is decided by the path takes time in proportion
        raise _ambiguous(f"the path is longer than {_LONGEST_PATH} bytes")
    if not _PATH.fullmatch(path):
        raise _ambiguous(f"the path has {_unfit(path, _PATH, _STRUCTURAL)}")
    if "//" in path:
        raise _ambiguous("the path has an empty segment")
    if "/./" in path or "/../" in path or path.endswith(("/.", "/..")):
        raise _ambiguous("the path has a dot segment")
    if "%" in path:
        _check_path_escapes(path)


def _check_path_escapes(path: str) -> None:
    octets = bytes(int(pair, 16) for pair in _ESCAPE.findall(path))
    if any(octet in _UNRESERVED for octet in octets):
        raise _ambiguous("the path escapes a character that needs no escape")
    if any(octet in _STRUCTURAL or octet < _SPACE or octet == _DELETE for octet in octets):
        raise _ambiguous("the path escapes a separator or a control character")
    try:  # runs of escapes must be whole UTF-8; the plain characters between them are ASCII
        text = _ESCAPE.sub(lambda match: chr(int(match[1], 16)), path).encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        raise _ambiguous("the path's escapes are not UTF-8") from None
    if _C1_CONTROLS.search(text):
        raise _ambiguous("the path escapes a control character")


def _check_query(query: str) -> None:
    if not query:
        raise _ambiguous("the query is empty: remove the ?")
    if not _QUERY.fullmatch(query):
        raise _ambiguous(f"the query has {_unfit(query, _QUERY, _SEPARATOR)}")
    if "%00" in query:
        raise _ambiguous("the query escapes a NUL")


def _unfit(text: str, grammar: re.Pattern[str], not_even_escaped: frozenset[int]) -> str:
    """Return the first character that the grammar does not allow, and how to write it."""
    match = grammar.match(text)
    letter = text[match.end() if match else 0]
    octets = letter.encode("utf-8", "surrogatepass")
    if letter == "%":
        plain = "" if octets[0] in not_even_escaped else "; a plain % is written %25"
        return f"a % that does not begin an escape, which RFC 3986 does not allow{plain}"
    if octets[0] in not_even_escaped:
        return f"a {letter}, which the gateway does not allow there"
    shown = letter if letter.isprintable() and letter != " " else "an invisible character"
    return f"{shown}, which RFC 3986 does not allow unescaped; it is written {escaped(octets)}"


def escaped(octets: bytes) -> str:
    """Return the escapes of octets (RFC 3986 section 2.1)."""
    return "".join(f"%{octet:02X}" for octet in octets)


def _ambiguous(why: str) -> Refusal:
    return Refusal("ambiguous_target", f"Refused because {why}.")


@lru_cache(maxsize=64)
def host_name(value: str) -> str:
    """Return a Host field's name in lower case, without port and brackets; "" if it is not a host."""
    match = _HOST.fullmatch(value)
    return "" if match is None else (match[1] or match[2]).lower()
