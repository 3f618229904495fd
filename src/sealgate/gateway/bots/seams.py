"""Where a request ends among the bytes that came, and what is behind it: aiohttp's parser does not say.

In 3.14.5 it puts the last trailer of a chunked body into the head that comes next, and loses what follows an
offer of another protocol (RFC 9110 section 7.8) in the same piece: then `may_lose` is said.

A piece is what came at once; where it begins with no request, the last bytes `before` it stand in front.
What is found is an event: PART of a head, CUT where that cannot be told or may be wrong, None for nothing.
"""

from collections.abc import Iterator, Sequence

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


def behind_chunks(piece: bytes) -> Event | None:
    """Return what is behind a chunked body that ends in a piece, where nothing may be lost."""
    _, last_chunk, behind = piece.rpartition(_LAST_CHUNK)
    if not last_chunk or _BLANK in behind:  # there are trailers
        return CUT
    return PART if behind else None


def are_as_written(messages: Sequence[RequestMessage], data: bytes) -> list[bool]:
    """Whether each head of a piece has as many fields as lines, so that it got no trailer as well.

    A body may look like a head. So one is looked for from the first place where it can be, behind those in
    front of it, to the last, before those behind it; and all in there that may be that head must agree.
    """
    piece = b"\n" + data  # so that one at its begin is found, too
    lines = [f"\n{one.method} {one.path} HTTP/".encode("utf-8", "surrogateescape") for one in messages]
    places = zip(_firsts(lines, piece), _lasts(lines, piece), strict=True)
    return [
        set(_counts(line, piece, first, last)) == {len(message.raw_headers)}
        for message, line, (first, last) in zip(messages, lines, places, strict=True)
    ]


def _firsts(lines: Sequence[bytes], piece: bytes) -> list[int]:
    """Return where each line can be at the earliest, as they come in this order."""
    firsts, at = [], 0
    for line in lines:
        firsts.append(found := piece.find(line, at))
        at = max(at, found + 1)
    return firsts


def _lasts(lines: Sequence[bytes], piece: bytes) -> list[int]:
    """Return where each line can be at the latest; -1 where it is nowhere."""
    lasts, end = [], len(piece)
    for line in reversed(lines):
        lasts.append(found := piece.rfind(line, 0, end))
        end = min(end, found + 1) if found >= 0 else end
    return lasts[::-1]


def _counts(line: bytes, piece: bytes, first: int, last: int) -> Iterator[int]:
    """Yield how many fields each head has that begins with a line between two places; -1 where it is cut."""
    at = first
    while 0 <= at <= last:
        end = piece.find(_BLANK, at)
        yield piece.count(b"\r\n", at, end) if end >= 0 else -1
        at = piece.find(line, at + 1)
