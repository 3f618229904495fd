"""The parameters that only the gateway sets: a bot may send none that a server could read as one of them.

Servers differ in how they read a query or a body, and the gateway does not know which one it faces. So a
request passes only if no reading of it has a value of the bot under a name of the gateway. The readings are
in tests/rig/parameter_readings.py.
"""

import functools
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from sealgate.venues.json_bytes import MOST_MEMBERS, check_size
from sealgate.venues.letters import plain_letters
from sealgate.venues.unsignable import UnsignableError

_MOST_PARAMETERS = 1000  # of a query or form: PHP and Express read no more, and each takes time
_READ_TWICE = 2  # how often a server, and what is behind it, may undo percent escapes
_MOST_NAMES, _LONGEST_NAME = 1024, 64  # of parameters, that are kept at hand
# Left out before a name by one server or another, and where it ends: PHP and Rails make lists of name[].
_NAME_READ = re.compile(r"[\x00-\x20?\[\]]*([^\x00\[\]]*).*", re.DOTALL)
_UNICODE_ESCAPE = re.compile(rb"%u([0-9A-Fa-f]{4})")  # of Microsoft's servers
# ASCII in more bytes than it takes, which lenient decoders of UTF-8 accept.
_OVERLONG = re.compile(
    rb"(?:[\xc0\xc1]|(?:\xe0|\xf0\x80|\xf8\x80\x80|\xfc\x80\x80\x80)[\x80\x81])[\x80-\xbf]"
)
_JSON_BEGINS = (b"{", b"[")
_BEFORE_JSON = b"\xef\xbb\xbf\xfe\xff\x00\t\n\x0b\x0c\r "  # bytes that some parser skips, the BOM among them
_ASCII_SUPERSETS = frozenset({b"utf-8", b"utf8", b"us-ascii", b"ascii", b"iso-8859-1", b"latin1"})
_CHARSET = re.compile(rb"charset\s*=\s*[\"']?([^\"';,\s]*)")
_OWN = "a parameter could be read as one that the gateway sets"


@dataclass(frozen=True, slots=True)
class BodyType:
    """What a request declares its body to be. `fault` is why no such body is signed, "" if it may be."""

    is_json: bool = False
    fault: str = ""


@functools.lru_cache(maxsize=256)
def body_type(content_type: bytes | None, content_encoding: bytes | None) -> BodyType:
    """Read Content-Type and Content-Encoding, of which the fault is one only for bodies with parameters."""
    if content_encoding is not None and content_encoding.strip().lower() not in (b"", b"identity"):
        return BodyType(fault="a body with a Content-Encoding could hide parameters that the gateway sets")
    declared = (content_type or b"").lower()
    if b"multipart" in declared:
        return BodyType(fault="a multipart body could hide parameters of the gateway; send a form or JSON")
    if any(charset not in _ASCII_SUPERSETS for charset in _CHARSET.findall(declared)):
        return BodyType(fault="the body must be in UTF-8")
    return BodyType(is_json=b"json" in declared)


def looks_like_json(body: bytes) -> bool:
    """Ask whether a body begins as a JSON object or list does."""
    return body[:1] in _JSON_BEGINS or body.lstrip(_BEFORE_JSON)[:1] in _JSON_BEGINS


class OwnParameters:
    """The parameters that are the gateway's alone, whatever way a bot may spell them."""

    def __init__(self, names: Iterable[bytes]) -> None:
        self._names = {name.decode("ascii").casefold().replace(".", "_") for name in names}
        self._known: dict[bytes, bool] = {}

    def check(self, text: bytes) -> None:
        """Raise UnsignableError if a server could read a parameter of a query or form as the gateway's.

        Escapes are undone in the whole text as well: a server may do that before it splits it.
        """
        if not self._names or not text:
            return
        known = self._known
        for _ in range(_READ_TWICE + 1):
            parts = text.replace(b";", b"&").split(b"&")
            if len(parts) > _MOST_PARAMETERS:
                raise UnsignableError(f"there are more than {_MOST_PARAMETERS} parameters")
            for part in parts:
                name = part.partition(b"=")[0]
                is_own = known.get(name)
                if is_own is None:
                    is_own = self._is_own(name)
                    if len(known) < _MOST_NAMES and len(name) <= _LONGEST_NAME:
                        known[name] = is_own
                if is_own:
                    raise UnsignableError(_OWN)
            text, before = _unescaped(text), text
            if text == before:
                return

    def check_body(self, body: bytes) -> None:
        """Raise UnsignableError if a server could read a parameter of a body as the gateway's.

        A body that begins as JSON must be JSON: a lenient parser would read it in its own way.
        """
        if not self._names:
            return
        if looks_like_json(body):
            if (members := _members(body)) is None:
                raise UnsignableError("the body begins as JSON does, and is not valid JSON in UTF-8")
            if len(members) > MOST_MEMBERS:
                raise UnsignableError(f"an object has more than {MOST_MEMBERS} members")
            if any(self._is_own(name.encode("utf-8", "surrogatepass")) for name in members):
                raise UnsignableError(_OWN)
        self.check(body)

    def check_declared(self, body: bytes, declared: BodyType) -> None:
        """Raise UnsignableError if a server could read more in a body of this type than `check_body` does."""
        if not self._names:
            return
        if declared.fault:
            raise UnsignableError(declared.fault)
        if declared.is_json and not looks_like_json(body):
            raise UnsignableError("the body is declared as JSON, and is neither an object nor a list")

    def _is_own(self, name: bytes) -> bool:
        for _ in range(_READ_TWICE):
            name = _unescaped(name.replace(b"+", b" "))
        plain = plain_letters(name.replace(b"+", b" ").decode("utf-8", "replace"))
        read = _NAME_READ.sub(r"\1", plain, count=1).strip()
        # PHP writes "_" for a dot or a space; others take what stands before the dot for the name of a group.
        return bool({read.replace(".", "_").replace(" ", "_"), read.partition(".")[0]} & self._names)


def cut_parameters(query: bytes, names: frozenset[bytes]) -> bytes:
    """Cut out the parameters of these names, in any spelling; the others keep their bytes and order."""
    parts = query.split(b"&") if names else []
    kept = [part for part in parts if unquote_to_bytes(part.partition(b"=")[0]) not in names]
    # What was cut out may have left an empty parameter beside it, which was the bot's library's.
    return query if len(kept) == len(parts) else b"&".join(filter(None, kept))


def _unescaped(text: bytes) -> bytes:
    """Undo one level of escapes, as the most lenient server would."""
    if b"%" in text:
        text = _UNICODE_ESCAPE.sub(lambda found: chr(int(found[1], 16)).encode("utf-8", "replace"), text)
        text = unquote_to_bytes(text)
    return text if text.isascii() else _OVERLONG.sub(_shortened, text)


def _shortened(found: re.Match[bytes]) -> bytes:
    """Return the ASCII that an overlong sequence stands for: its last seven bits."""
    *_, before, last = found[0]
    return bytes([(before & 0x01) << 6 | last & 0x3F])


def _members(body: bytes) -> tuple[str, ...] | None:
    """Return the names of a JSON object's members, none of a list's; None if the body is no JSON in UTF-8.

    Raises UnsignableError where it is too large to be looked at.
    """
    check_size(body)
    try:
        document = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=lambda pairs: tuple(name for name, _ in pairs),
            parse_constant=_refuse,
        )
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, tuple) else ()


def _refuse(_constant: str) -> None:
    raise ValueError
