"""Where a request ends among the bytes that came, and what is behind it: aiohttp's parser does not say.

In 3.14.5 it puts the last trailer of a chunked body into the head that comes next, and loses what follows an
offer of another protocol (RFC 9110 section 7.8) in the same piece: then `may_lose` is said.

A piece is what came at once; where it begins with no request, the last bytes `before` it stand in front.
What is found is an event: PART of a head, CUT where that cannot be told or may be wrong, None for nothing.
"""

from sealgate.gateway.bots.parser import RequestMessage
from sealgate.gateway.bots.states import CUT, PART, Event

_BLANK = b"\r\n\r\n"
_LAST_CHUNK = b"\r\n0\r\n\r\n"  # and no trailers
_BEFORE = len(_LAST_CHUNK) - 1


def before_next(before: bytes, data: bytes) -> bytes:
    """Return the last bytes that came, as many as a search in the next piece needs."""
    return data[-_BEFORE:] if len(data) >= _BEFORE else (before + data)[-_BEFORE:]


def behind_request(piece: bytes, body: int, *, may_lose: bool) -> Event | None:
    """Return what is behind a request that ends in a piece, with a body of that many bytes in it."""
    if may_lose:
        _, blank, behind = piece.partition(_BLANK)
        return None if blank and len(behind) == body else CUT
    end = len(piece) - body
    # A part of a head never ends as a head does. Where too little is there to tell, the parser held it back.
    return None if end < len(_BLANK) or piece.endswith(_BLANK, 0, end) else PART


def behind_body(came: int, body: int, *, may_lose: bool) -> Event | None:
    """Return what is behind a body of that many bytes, when so many came since its head."""
    if came == body:
        return None
    return CUT if may_lose else PART


def behind_chunks(piece: bytes, *, may_lose: bool) -> Event | None:
    """Return what is behind a chunked body that ends in a piece."""
    _, last_chunk, behind = piece.rpartition(_LAST_CHUNK)
    if not last_chunk or _BLANK in behind:  # there are trailers
        return CUT
    if may_lose and (behind or piece.count(_LAST_CHUNK) > 1):
        return CUT
    return PART if behind else None


def is_as_written(message: RequestMessage, data: bytes) -> bool:
    """Whether a head that is whole in a piece has as many fields as lines, so that it got no trailer as well.

    A body may look like it, so all that may be that head must agree.
    """
    line = f"\n{message.method} {message.path} HTTP/".encode("utf-8", "surrogateescape")
    is_found, start = False, data.find(line)
    while start >= 0 and (end := data.find(_BLANK, start)) >= 0:
        if data.count(b"\r\n", start, end) != len(message.raw_headers):
            return False
        is_found, start = True, data.find(line, end)
    return is_found
