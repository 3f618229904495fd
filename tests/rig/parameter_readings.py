"""How servers read the parameters of a query or a body: small models of what each documents, or does.

- `urllib`: Python, and with it Django, Flask (werkzeug) and aiohttp, which all split at "&" alone.
- `rack`: Ruby, which splits at ";" as well, and makes tables of `a[b]`.
- `php`: `parse_str`, which skips blanks, ends a name at NUL or "[", and writes "_" for "." and " ".
- `servlet`: Java, which takes `+` for a blank and undoes escapes in a lenient UTF-8.
- `asp`: ASP.NET, which knows %uXXXX and ignores case.
- `node`: `querystring`, which keeps what it cannot unescape.
- `decodes_first`: a proxy, or a firewall, that undoes all escapes before it splits; also twice.
- JSON: strict (`json`), and lenient as Fastjson and Jackson can be: blanks, BOM, comments, unquoted names.
"""

import json
import re
from collections.abc import Callable, Iterable
from email.parser import BytesParser
from urllib.parse import parse_qsl, unquote_to_bytes

from yarl import URL

Pairs = list[tuple[str, str]]
_LENIENT_MEMBER = re.compile(r"""(?:^|[{,\s])["']?([A-Za-z_]\w*)["']?\s*:\s*["']?([^,"'}\]]*)""")


def _overlong(text: bytes) -> str:
    """Decode UTF-8 without the rule of the shortest form."""
    read, at = [], 0
    while at < len(text):
        first, size = text[at], 1
        for bits, mask in ((0xC0, 0xE0), (0xE0, 0xF0), (0xF0, 0xF8)):
            size += 1
            if first & mask == bits:
                break
        else:
            size = 1
        tail = text[at + 1 : at + size]
        if len(tail) != size - 1 or any(octet & 0xC0 != 0x80 for octet in tail) or size == 1:
            read.append(chr(first))
            at += 1
            continue
        code = first & (0xFF >> (size + 1))
        for octet in tail:
            code = code << 6 | octet & 0x3F
        read.append(chr(min(code, 0x10FFFF)))
        at += size
    return "".join(read)


def _split(text: bytes, separators: str, read: Callable[[bytes], str]) -> Pairs:
    parts = re.split(f"[{separators}]".encode(), text)
    return [(read(name), read(value)) for name, _, value in (part.partition(b"=") for part in parts if part)]


def _plus(text: bytes) -> bytes:
    return unquote_to_bytes(text.replace(b"+", b" "))


def urllib(text: bytes) -> Pairs:
    return parse_qsl(text.decode("latin-1"), keep_blank_values=True)


def yarl(text: bytes) -> Pairs:
    return list(URL(f"http://h/?{text.decode('latin-1')}", encoded=True).query.items())


def rack(text: bytes) -> Pairs:
    pairs = _split(text, "&;", lambda piece: _plus(piece).decode("utf-8", "replace"))
    return [
        (re.sub(r"^[\[\]]*([^\[\]]+).*", r"\1", name.strip(), flags=re.DOTALL), value)
        for name, value in pairs
    ]


def php(text: bytes) -> Pairs:
    found = []
    for name, value in _split(text, "&", lambda piece: _plus(piece).decode("latin-1")):
        read = name.lstrip(" ").partition("\0")[0].partition("[")[0]
        found.append((read.replace(".", "_").replace(" ", "_"), value))
    return found


def servlet(text: bytes) -> Pairs:
    return _split(text, "&", lambda piece: _overlong(_plus(piece)))


def asp(text: bytes) -> Pairs:
    def read(piece: bytes) -> str:
        piece = re.sub(
            rb"%u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)).encode("utf-8", "replace"), piece
        )
        return _plus(piece).decode("utf-8", "replace").casefold()

    return _split(text, "&", read)


def node(text: bytes) -> Pairs:
    return _split(text, "&", lambda piece: _plus(piece).decode("utf-8", "replace"))


def decodes_first(text: bytes) -> Pairs:
    return servlet(unquote_to_bytes(text)) + rack(unquote_to_bytes(text))


def decodes_twice_first(text: bytes) -> Pairs:
    return servlet(unquote_to_bytes(unquote_to_bytes(text)))


QUERIES: tuple[Callable[[bytes], Pairs], ...] = (
    *(urllib, yarl, rack, php, servlet, asp, node, decodes_first, decodes_twice_first),
)


def strict_json(body: bytes) -> Pairs:
    try:
        found = json.loads(
            body, object_pairs_hook=lambda pairs: tuple((name, str(value)) for name, value in pairs)
        )
    except (ValueError, RecursionError):
        return []
    return list(found) if isinstance(found, tuple) else []


def lenient_json(body: bytes) -> Pairs:
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", body.decode("utf-8", "replace"), flags=re.DOTALL).lstrip(
        "\ufeff\0 \t\r\n\v\f"
    )
    return _LENIENT_MEMBER.findall(text) if text.startswith(("{", "[{")) else []


def multipart(body: bytes, content_type: str) -> Pairs:
    message = BytesParser().parsebytes(f"Content-Type: {content_type}\r\n\r\n".encode("latin-1") + body)
    parts = message.get_payload() if message.is_multipart() else []
    return [
        (str(part.get_param("name", "", "content-disposition")), str(part.get_payload()))
        for part in parts
        if not isinstance(part, str)
    ]


def bodies(body: bytes, content_type: str | None) -> Iterable[Pairs]:
    """Yield all readings of a body: as a form, whatever it is declared, and by its type where it has one."""
    yield from (read(body) for read in QUERIES)
    declared = (content_type or "").lower()
    if "form" not in declared:
        yield strict_json(body)
    if "json" in declared:
        yield lenient_json(body)
    if "multipart" in declared:
        yield multipart(body, content_type or "")


def queries(query: bytes) -> Iterable[Pairs]:
    """Yield all readings of a query."""
    yield from (read(query) for read in QUERIES)
