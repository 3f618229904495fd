"""A request that somebody has in a file, read as it would go on the wire: raw HTTP, or a curl command.

It is read to be compared, so what is not understood is refused: a part that was passed over could be the one
that differs. Sources: RFC 9112 sections 2 and 3 for the raw form; curl's manual page for the options.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

_REQUEST_LINE = re.compile(r"([A-Za-z]+) (\S+)(?: HTTP/\d(?:\.\d)?)?")
_FIELD = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*?)[ \t]*")
_ORIGIN = re.compile(r"\A(?:[A-Za-z][A-Za-z0-9+.-]*://)?[^/?#]*")
_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")
_LINE_CONTINUES = re.compile(r"\\\r?\n")

_METHOD, _HEADER, _URL_OPTION = ("-X", "--request"), ("-H", "--header"), ("--url",)
_DATA = ("-d", "--data", "--data-ascii", "--data-raw", "--data-binary", "--json")
_NO_FILE, _BINARY = ("--data-raw",), ("--data-binary", "--json")
_HEAD = ("-I", "--head")
# What changes nothing of the request line, the signature's headers and the body.
_OTHERS_WITH_VALUE = (
    *("-o", "--output", "-A", "--user-agent", "-e", "--referer", "-b", "--cookie", "-m", "--max-time"),
    *("--connect-timeout", "--cacert", "-x", "--proxy", "-w", "--write-out", "--unix-socket", "--retry"),
    *("-u", "--user", "--resolve", "-D", "--dump-header"),
)
_OTHERS = (
    *("-s", "--silent", "-S", "--show-error", "-f", "--fail", "--fail-with-body", "-i", "--include"),
    *("-v", "--verbose", "-k", "--insecure", "-g", "--globoff", "--path-as-is", "--compressed", "-N"),
    *("--no-buffer", "--http1.1", "--http2", "-L", "--location"),
)
_WITH_VALUE = frozenset((*_METHOD, *_HEADER, *_URL_OPTION, *_DATA, *_OTHERS_WITH_VALUE))
_KNOWN = _WITH_VALUE | {*_HEAD, *_OTHERS}


class UnreadableRequestError(ValueError):
    """The text is no request; the message says what is not understood."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a body: bytes, or the file that has them. Of an `is_text` one curl drops the line ends."""

    content: bytes = b""
    file: str | None = None
    is_text: bool = False


@dataclass(frozen=True, slots=True)
class WrittenRequest:
    """A request. `target` is what the request line has, `pieces` are its body in order."""

    method: str
    target: str
    fields: tuple[tuple[str, str], ...]
    pieces: tuple[Piece, ...] = ()

    def values(self, name: str) -> list[str]:
        """Return the values of a header, whatever case its name is in."""
        return [value for own, value in self.fields if own.lower() == name.lower()]


def parse_written(data: bytes) -> WrittenRequest:
    """Read a request. Raises UnreadableRequestError."""
    data = data.lstrip()
    return _parse_curl(data) if re.match(rb"curl\s", data) else _parse_raw(data)


def _parse_raw(data: bytes) -> WrittenRequest:
    head, *rest = _END_OF_HEAD.split(data, maxsplit=1)
    first, *lines = head.decode("latin-1").splitlines() or [""]
    found = _REQUEST_LINE.fullmatch(first.strip())
    if found is None:
        raise UnreadableRequestError(
            "it begins neither with `curl` nor with a line such as `GET /path HTTP/1.1`"
        )
    fields = tuple(map(_field, lines))
    lengths = [value for name, value in fields if name.lower() == "content-length"]
    body = _cut(rest[0], lengths) if rest else b""
    return WrittenRequest(found[1], _target(found[2]), fields, (Piece(body),) if body else ())


def _cut(body: bytes, lengths: list[str]) -> bytes:
    """Return the body without what an editor put behind it, where the length is stated."""
    return body[: int(lengths[0])] if lengths and lengths[0].isdecimal() else body


def _field(line: str) -> tuple[str, str]:
    found = _FIELD.fullmatch(line)
    if found is None:
        raise UnreadableRequestError("a header line has no `Name: value`")
    return found[1], found[2]


def _target(url: str) -> str:
    target = _ORIGIN.sub("", url.partition("#")[0])
    return target if target.startswith("/") else f"/{target}"


def _parse_curl(data: bytes) -> WrittenRequest:
    options = list(_options(_words(data)))
    urls = [value for name, value in options if name in ("", *_URL_OPTION)]
    if len(urls) != 1:
        raise UnreadableRequestError(f"the curl command has {len(urls)} URLs, and one is needed")
    pieces = tuple(_pieces((name, value) for name, value in options if name in _DATA))
    methods = [value for name, value in options if name in _METHOD]
    is_head = any(name in _HEAD for name, _ in options)
    usual = "HEAD" if is_head else "POST" if pieces else "GET"
    fields = tuple(_field(value) for name, value in options if name in _HEADER)
    return WrittenRequest(methods[-1] if methods else usual, _target(urls[0]), fields, pieces)


def _words(data: bytes) -> list[str]:
    try:
        return shlex.split(_LINE_CONTINUES.sub(" ", data.decode("utf-8", "surrogateescape")))[1:]
    except ValueError:
        raise UnreadableRequestError("the curl command has a quote that does not end") from None


def _options(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield (option, value); the option is "" for a URL, the value "" where there is none."""
    left = list(reversed(words))
    while left:
        word = left.pop()
        if not word.startswith("-"):
            yield "", word
            continue
        name, attached = (word, "") if word.startswith("--") else (word[:2], word[2:])
        if name not in _KNOWN:
            raise UnreadableRequestError(f"the curl option {name} is not understood; leave it out")
        if name in _WITH_VALUE:
            if not attached and not left:
                raise UnreadableRequestError(f"the curl option {name} has no value")
            yield name, attached or left.pop()
        else:
            yield name, ""
            if attached:
                left.append(f"-{attached}")


def _pieces(options: Iterator[tuple[str, str]]) -> Iterator[Piece]:
    """Yield the body; curl puts `&` between the pieces, but not with --json."""
    for number, (name, value) in enumerate(options):
        if number and name != "--json":
            yield Piece(b"&")
        if value.startswith("@") and name not in _NO_FILE:
            yield Piece(file=value[1:], is_text=name not in _BINARY)
        else:
            yield Piece(value.encode("utf-8", "surrogateescape"))
