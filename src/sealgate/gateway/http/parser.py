"""HTTP/1.1 messages out of bytes: bytes in, events out. No socket, no loop.

llhttp (httptools) decides where heads, bodies and messages begin and end. What it leaves to its user is
decided here: sizes, what ends a connection, an offer of another protocol (RFC 9110 section 7.8), a reply to a
HEAD request, and a length that is stated twice. A parser returns the same events whether the bytes come whole
or one by one, but for how a body is cut into parts.
"""

import re
from enum import IntEnum
from typing import Any, Final, NoReturn

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser, HttpResponseParser

MOST_HEAD_BYTES: Final = 64 * 1024  # of a request
_MOST_FIELDS: Final = 128
_MOST_REPLY_FIELDS: Final = 256
_LONGEST_FIELD: Final = 8 * 1024  # bytes of a field or the target of a request, and of all trailers
_FRAMING_BYTES: Final = 16 * 1024  # of chunk sizes with their extensions, and of trailers, in a row
_PIECE_BYTES: Final = 16 * 1024  # parsed at once, so that sizes are looked at as the bytes arrive
_MOST_REMEMBERED_BYTES: Final = 4 * 1024  # of a head; larger ones are rare, and would crowd out the others
_TOO_LARGE: Final = "A line or the head is too large."
_BLANK: Final = b"\r\n\r\n"
_ENDS_OF_HEAD: Final = (b"\n\r\n", b"\n\n")  # of a reply
_CONTINUE: Final = 100
_OK: Final = 200
_LENGTH_DIGITS: Final = 18
_BODILESS: Final = frozenset({204, 304})
_MOST_LINES: Final = 1024
_LONGEST_KEPT_LINE: Final = 256
_MOST_REPLY_HEADS: Final = 128

Fields = tuple[tuple[bytes, bytes], ...]
_VERSIONS: Final = {"0.9": (0, 9), "1.0": (1, 0), "1.1": (1, 1), "2.0": (2, 0)}
_HTTP_11: Final = (1, 1)


class Mark(IntEnum):
    """What a parser reports beside heads, parts of bodies and faults."""

    END = 0  # the message is whole
    SURPLUS = 1  # something came that belongs to no message


END, SURPLUS = Mark
_WHOLE: Final = 3  # events of a message with a body that came at once: head, body, END


class Malformed(Exception):  # noqa: N818 - a verdict on a peer, and reported as an event
    """What came is no HTTP/1.1, or more than is taken; all that follows is ignored.

    `detail` repeats nothing of what came.
    """

    def __init__(self, detail: str, *, is_too_large: bool = False) -> None:
        super().__init__(detail)
        self.detail = detail
        self.is_too_large = is_too_large


class RequestHead:
    """A request's head, raw but for the space around values.

    `length` is the size of its body, None where it is chunked. `keep_alive` says whether another request may
    follow on the connection, `is_offer` whether the sender offers to switch protocols. `raw` holds the bytes
    of the head where a HeadMemory may keep it, else b"". `memo` is for whoever uses a head that is kept.
    """

    __slots__ = ("fields", "is_offer", "keep_alive", "length", "memo", "method", "raw", "target", "version")

    def __init__(self, method: str, target: str, version: tuple[int, int], fields: Fields) -> None:
        self.method = method
        self.target = target
        self.version = version
        self.fields = fields
        self.length: int | None = 0
        self.keep_alive = True
        self.is_offer = False
        self.raw = b""
        self.memo: object = None


class ReplyHead:
    """A reply's head, raw but for the space around values.

    `length` is the stated size of its body, None where none is stated; `ends_by_close` says that the body
    ends where the connection does. `memo` is for whoever uses a head that is kept.
    """

    __slots__ = ("ends_by_close", "fields", "is_chunked", "keep_alive", "length", "memo", "phrase", "status")

    def __init__(self, status: int, phrase: bytes, fields: Fields) -> None:
        self.status = status
        self.phrase = phrase
        self.fields = fields
        self.length: int | None = None
        self.is_chunked = False
        self.keep_alive = True
        self.ends_by_close = False
        self.memo: object = None


RequestEvent = RequestHead | bytes | Mark | Malformed
ReplyEvent = ReplyHead | bytes | Mark | Malformed


def whole_reply(events: list[ReplyEvent]) -> tuple[ReplyHead, bytes] | None:
    """Return head and body where these events are one whole reply, and no more."""
    if len(events) != _WHOLE or events[2] is not END:
        return None
    head, body = events[0], events[1]
    if isinstance(head, ReplyHead) and isinstance(body, bytes) and head.status >= _OK:
        return head, body
    return None


class HeadMemory:
    """What the parser said of heads before, by their exact bytes; the oldest go first.

    Bots send the same few heads again and again. Only a request that comes whole and alone is looked up, and
    only what the parser said of such a one is kept, so this is no second reading of HTTP.
    """

    def __init__(self, most_bytes: int = 1024 * 1024) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._heads: dict[bytes, RequestHead] = {}

    def __len__(self) -> int:
        return len(self._heads)

    def put(self, head: RequestHead) -> None:
        """Keep a head that may be kept."""
        if not head.raw or head.raw in self._heads:
            return
        self._heads[head.raw] = head
        self._bytes += len(head.raw)
        while self._bytes > self._most_bytes:
            oldest = next(iter(self._heads))
            self._bytes -= len(oldest)
            del self._heads[oldest]

    def find(self, data: bytes) -> tuple[RequestHead, bytes] | None:
        """Return head and body of the one request that `data` holds, None where it is not known to."""
        end = data.find(_BLANK) + len(_BLANK)
        head = self._heads.get(data[:end])
        if head is None or len(data) - end != head.length:
            return None
        return head, data[end:]

    def clear(self) -> None:
        """Forget them; bots' tokens are among their fields."""
        self._heads.clear()
        self._bytes = 0


_FRAMING: Final = frozenset({b"content-length", b"transfer-encoding"})
_FRAMING_LENGTHS: Final = frozenset(map(len, _FRAMING))
_PLAIN: Final = -1
_SPECIAL: Final = -2


class LineMemory:
    """What the parser said of replies before: of whole heads, and of single lines.

    Where `Date` or the ids that proxies add change, a head hardly ever comes twice; most of its lines do.
    A head whose every line ends with CRLF may be cut there, as llhttp takes no folded line. A line that is
    not known is read by a strict llhttp on its own. Whatever frames the body by more than one Content-Length,
    or ends the connection, is left to the parser as a whole.
    """

    def __init__(self) -> None:
        self._heads: dict[bytes, ReplyHead] = {}
        self._statuses: dict[bytes, tuple[int, bytes]] = {}
        # The field, and its length where it is Content-Length, else _PLAIN or _SPECIAL.
        self._fields: dict[bytes, tuple[tuple[bytes, bytes], int]] = {}

    @property
    def size(self) -> int:
        """How many lines are remembered."""
        return len(self._statuses) + len(self._fields)

    def learn(self, data: bytes, head: ReplyHead) -> None:
        """Take in the lines of a reply that came whole and alone in `data`."""
        end = data.find(_BLANK)
        status, *lines = data[:end].split(b"\r\n")
        if not head.keep_alive or head.length is None or head.status < _OK or head.status in _BODILESS:
            return
        # By HTTP/1.0 a connection ends where no line says otherwise.
        if end > _MOST_REMEMBERED_BYTES or not status.startswith(b"HTTP/1.1 "):
            return
        # Where lines end with LF alone, the first empty one that is found may be the body's.
        if len(lines) != len(head.fields) or data.count(b"\n", 0, end) != len(lines):
            return
        if self.size + 1 + len(lines) > _MOST_LINES:
            self._statuses.clear()
            self._fields.clear()
        self._statuses[status] = head.status, head.phrase
        for line, field in zip(lines, head.fields, strict=True):
            self._fields[line] = field, _kind(*field)
        if head.length == len(data) - end - len(_BLANK):
            if len(self._heads) >= _MOST_REPLY_HEADS:
                self._heads.clear()
            self._heads[data[:end]] = head

    def find(self, data: bytes) -> tuple[ReplyHead, bytes] | None:
        """Return head and body of the one reply that `data` holds, None where the parser has to say."""
        end = data.find(_BLANK)
        if end < 0:
            return None
        whole = self._heads.get(data[:end])
        if whole is not None:
            body = data[end + len(_BLANK) :]
            return (whole, body) if len(body) == whole.length else None
        status, *lines = data[:end].split(b"\r\n")
        known = self._statuses.get(status)
        if known is None or end > _MOST_REMEMBERED_BYTES or len(lines) > _MOST_FIELDS:
            return None
        length = _PLAIN
        fields = []
        for line in lines:
            field, kind = self._fields.get(line) or self._read(line)
            if kind != _PLAIN:
                if kind == _SPECIAL or length != _PLAIN:
                    return None
                length = kind
            fields.append(field)
        if length != len(data) - end - len(_BLANK):
            return None
        head = ReplyHead(*known, tuple(fields))
        head.length = length
        return head, data[end + len(_BLANK) :]

    def _read(self, line: bytes) -> tuple[tuple[bytes, bytes], int]:
        """Read a line that is not known. A `Date` or a length comes more than once, so it is kept."""
        found = _read_line(line)
        if len(line) <= _LONGEST_KEPT_LINE:
            if len(self._fields) >= _MOST_LINES:
                self._fields.clear()
            self._fields[line] = found
        return found


class _OneLine:
    """What llhttp reads in one line of a head."""

    def __init__(self) -> None:
        self.field = (b"", b"")
        self.kind = _SPECIAL  # also where there is none, or more than one

    def on_header(self, name: bytes, value: bytes) -> None:
        self.kind = _SPECIAL if self.field[0] else _kind(name, value)
        self.field = name, value.rstrip(b" \t")


def _read_line(line: bytes) -> tuple[tuple[bytes, bytes], int]:
    found = _OneLine()
    try:
        HttpResponseParser(found).feed_data(b"HTTP/1.1 200 OK\r\n%b\r\n\r\n" % line)
    except HttpParserError:
        return found.field, _SPECIAL
    return found.field, found.kind


def _kind(name: bytes, value: bytes) -> int:
    lower = name.lower()
    if lower == b"content-length":
        return int(value) if len(value) <= _LENGTH_DIGITS else _SPECIAL
    if lower in _CONNECTION:
        return _PLAIN if value.lower() == b"keep-alive" else _SPECIAL
    return _SPECIAL if lower in _DECIDING else _PLAIN


_CONNECTION: Final = frozenset({b"connection", b"proxy-connection"})
_DECIDING: Final = frozenset({b"transfer-encoding", b"upgrade"})


class _Part(IntEnum):
    """What the next byte belongs to."""

    NONE = 0  # it is the first of a message
    HEAD = 1
    BODY = 2
    OVER = 3  # whatever it is, it is ignored


_NONE, _HEAD, _BODY, _OVER = _Part


class _Parser:
    """What both directions share. The methods `on_...` are llhttp's callbacks."""

    most_head_bytes = MOST_HEAD_BYTES
    most_fields = _MOST_FIELDS
    longest_field = _LONGEST_FIELD
    no_http = "This is not HTTP/1.1."

    def __init__(self) -> None:
        self._events: list[Any] = []
        self._part = _NONE
        self._fields: list[tuple[bytes, bytes]] = []
        self._framing: dict[bytes, bytes] = {}  # the fields that frame the body, of several the last
        self._line = b""  # the target or the phrase
        self._held = 0  # bytes that came since the last event: of a head, or of what frames a body
        self._trailers = 0  # bytes of them
        self._given: Malformed | None = None  # the verdict of a callback

    @property
    def is_between(self) -> bool:
        """Whether the next byte is the first of a message."""
        return self._part is _NONE

    @property
    def is_in_head(self) -> bool:
        """Whether a part of a head has come."""
        return self._part is _HEAD

    @property
    def is_over(self) -> bool:
        """Whether all that follows is ignored."""
        return self._part is _OVER

    def feed(self, data: bytes) -> list[Any]:
        """Return what these bytes add: heads, parts of bodies, marks; last a Malformed, if there is one."""
        events = self._events = []
        for at in range(0, len(data), _PIECE_BYTES):
            piece = data[at : at + _PIECE_BYTES]
            came = len(events)
            try:
                self._feed(piece)
                self._held = self._held + len(piece) if len(events) == came else 0
                if self._held > (_FRAMING_BYTES if self._part is _BODY else self.most_head_bytes):
                    self._refuse(_TOO_LARGE, is_too_large=True)
            except Malformed:
                self._part = _OVER
                events.append(self._verdict())
            except HttpParserError:
                if self._part is not _OVER:  # else it is behind the last message, and ignored
                    self._part = _OVER
                    events.append(self._verdict())
            if self._part is _OVER:
                self._ignore(data[at + _PIECE_BYTES :])
                break
        return events

    def _feed(self, piece: bytes) -> None:
        raise NotImplementedError

    def _ignore(self, rest: bytes) -> None:
        """Look at what is left behind the last message."""

    def _verdict(self) -> Malformed:
        """Return our own verdict where a callback gave one, else that this is no HTTP/1.1."""
        given = self._given
        return Malformed(self.no_http) if given is None else given.with_traceback(None)

    def _refuse(self, detail: str, *, is_too_large: bool = False) -> NoReturn:
        """Stop the parser. llhttp raises an error of its own where this one leaves a callback."""
        self._given = Malformed(detail, is_too_large=is_too_large)
        raise self._given

    def on_message_begin(self) -> None:
        self._part = _HEAD
        self._fields = []
        self._framing = {}
        self._line = b""
        self._trailers = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._part is not _HEAD:  # a trailer is dropped (RFC 9110 section 6.5.1)
            self._trailers += len(name) + len(value) + 4
            if self._trailers > self.longest_field:
                self._refuse(_TOO_LARGE, is_too_large=True)
            return
        if len(name) + len(value) > self.longest_field or len(self._fields) >= self.most_fields:
            self._refuse(_TOO_LARGE, is_too_large=True)
        self._fields.append((name, value.rstrip(b" \t")))
        if len(name) in _FRAMING_LENGTHS and (lower := name.lower()) in _FRAMING:
            self._framing[lower] = self._fields[-1][1]

    def on_body(self, part: bytes) -> None:
        self._events.append(part)

    def _stated_length(self) -> int | None:
        digits = self._framing.get(b"content-length")
        if digits is None:
            return None
        digits = digits.lstrip(b"0") or b"0"
        if len(digits) > _LENGTH_DIGITS:  # llhttp takes the largest for none
            self._refuse("the reply states a length that no body has")
        return int(digits)


class RequestParser(_Parser):
    """Reads the requests of one connection."""

    def __init__(self) -> None:
        super().__init__()
        self._llhttp = HttpRequestParser(self)
        self._keep_alive = True
        self._resumes = False  # behind an offer: the next head is our own, and no message

    def feed(self, data: bytes) -> list[RequestEvent]:
        """Return what these bytes add, as above."""
        was_between = self._part is _NONE
        events: list[RequestEvent] = super().feed(data)
        if was_between and len(data) <= _PIECE_BYTES:
            _note_raw(data, events)
        return events

    def _feed(self, piece: bytes) -> None:
        rest = piece
        while self._part is not _OVER:
            try:
                self._llhttp.feed_data(rest)
            except HttpParserUpgrade as stop:
                rest = self._resumed() + rest[stop.args[0] :]
            else:
                return

    def _resumed(self) -> bytes:
        """Make a new parser behind an offer, which is ignored; return the head that it has to be fed first.

        llhttp skipped the body and takes what follows for the other protocol. The head frames the same body.
        """
        length, coding = self._framing.get(b"content-length"), self._framing.get(b"transfer-encoding")
        framing = b""
        if coding is not None:
            framing = b"Transfer-Encoding: %b\r\n" % coding
        elif length is not None:
            framing = b"Content-Length: %b\r\n" % length
        self._resumes = True
        self._llhttp = HttpRequestParser(self)
        return b"POST / HTTP/1.1\r\n%b\r\n" % framing

    def on_message_begin(self) -> None:
        if self._part is _OVER:
            self._refuse("Nothing may follow the last message.")
        if not self._resumes:
            super().on_message_begin()

    def on_url(self, part: bytes) -> None:
        if self._resumes:
            return
        self._line += part
        if len(self._line) > self.longest_field:
            self._refuse(_TOO_LARGE, is_too_large=True)

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._resumes:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._part = _BODY
        if self._resumes:
            self._resumes = False
            return
        parser = self._llhttp
        method = parser.get_method().decode("ascii")
        version = _VERSIONS[parser.get_http_version()]
        head = RequestHead(method, self._line.decode("ascii"), version, tuple(self._fields))
        coding = self._framing.get(b"transfer-encoding")
        head.is_offer = parser.should_upgrade()
        head.length = (self._stated_length() or 0) if coding is None else None
        # RFC 9112 section 6.1: nobody knows what an HTTP/1.0 sender means by a transfer coding. And what
        # follows a CONNECT is no HTTP.
        is_sound = version == _HTTP_11 or coding is None
        head.keep_alive = parser.should_keep_alive() and is_sound and method != "CONNECT"
        self._keep_alive = head.keep_alive
        self._events.append(head)
        if method == "CONNECT":
            head.is_offer = False
            self._events.append(END)
            self._part = _OVER

    def on_message_complete(self) -> None:
        if self._llhttp.should_upgrade():  # llhttp skipped the body; `_resumed` reads it
            return
        self._part = _NONE if self._keep_alive else _OVER
        self._events.append(END)


class ReplyParser(_Parser):
    """Reads the replies of one connection: `expect` one, feed, and `finish` where the connection ends.

    Interim replies (1xx) are heads, each with its END.
    """

    most_fields = _MOST_REPLY_FIELDS
    longest_field = 32 * 1024
    no_http = "the reply is not HTTP"

    def __init__(self, memory: LineMemory) -> None:
        super().__init__()
        self._memory = memory
        self._llhttp: HttpResponseParser | None = self._new_llhttp()
        self._is_head = False
        self._head: ReplyHead | None = None
        self._raw = b""  # of the head, where it may have to be read once more
        self._states_length_twice = False
        self._part = _OVER

    def _new_llhttp(self) -> HttpResponseParser:
        """Return a parser that takes LF alone for the end of a line (RFC 9112 section 2.2)."""
        made = HttpResponseParser(self)
        made.set_dangerous_leniencies(lenient_optional_cr_before_lf=True)
        return made

    def expect(self, *, is_head: bool) -> None:
        """Read one more reply; that to a HEAD request has no body."""
        if self._llhttp is None:
            self._llhttp = self._new_llhttp()
        self._is_head = is_head
        self._part = _NONE

    def feed(self, data: bytes) -> list[ReplyEvent]:
        """Return what these bytes add, as above; SURPLUS for what comes behind a reply, or unasked."""
        if self._part is _OVER:
            return [SURPLUS] if data.strip(b"\r\n") else []  # an empty line between messages is none
        is_first, is_head = self._part is _NONE, self._is_head
        if is_first and not is_head and (found := self._memory.find(data)) is not None:
            self._part = _OVER
            head, body = found
            return [head, body, END] if body else [head, END]
        events: list[ReplyEvent] = super().feed(data)
        if is_first and not is_head and events and events[-1] is END and events[0] is self._head:
            self._memory.learn(data, self._head)
        return events

    def finish(self) -> list[ReplyEvent]:
        """Return what the orderly end of the connection adds: END of a body that it ends."""
        if self._part is _BODY and self._head is not None and self._head.ends_by_close:
            self._part = _OVER
            return [END]
        return []

    def _feed(self, piece: bytes) -> None:
        if self._llhttp is None:
            return
        self._raw = piece if self._part is _NONE else self._raw + piece if self._part is _HEAD else b""
        try:
            if not self._states_length_twice:
                self._llhttp.feed_data(piece)
        except HttpParserUpgrade:
            pass  # a 101: whoever asked for none ends the connection
        except HttpParserError:
            if self._part is _OVER:
                self._surplus()
                return
            lengths = b",".join(_LENGTH.findall(self._raw.partition(_BLANK)[0]))
            self._states_length_twice = self._part is _HEAD and b"," in lengths
            if not self._states_length_twice:
                raise
        # Of a body behind the reply to a HEAD request, llhttp says nothing before the first byte in a chunk.
        if self._is_head and self._part is _OVER and not self._raw.endswith(_ENDS_OF_HEAD):
            self._surplus()
        if self._states_length_twice and _BLANK in self._raw:
            self._read_again()

    def _ignore(self, rest: bytes) -> None:
        if self._events[-1] is END and rest.strip(b"\r\n"):
            self._surplus()

    def _read_again(self) -> None:
        """Read a head without a length that repeats an equal one (RFC 9110 section 8.6)."""
        end = self._raw.index(_BLANK)
        head, before, rest = self._raw[: end + 2], b"", self._raw[end + 2 :]
        while head != before:
            head, before = _REPEATED_LENGTH.sub(rb"\1", _LISTED_LENGTH.sub(rb"\1", head)), head
        if b"," in b",".join(_LENGTH.findall(head)):
            self._refuse("the reply states different lengths")
        self._states_length_twice = False
        self._part, self._llhttp = _NONE, self._new_llhttp()
        self._feed(head + rest)

    def _surplus(self) -> None:
        self._llhttp = None
        if self._events[-1:] != [SURPLUS]:
            self._events.append(SURPLUS)

    def on_message_begin(self) -> None:
        if self._part is _OVER:
            self._surplus()
            self._refuse("Nothing was asked that this could answer.")
        super().on_message_begin()

    def on_status(self, part: bytes) -> None:
        self._line += part

    def on_body(self, part: bytes) -> None:
        if self._part is _OVER:
            self._surplus()
            self._refuse("Nothing was asked that this could answer.")
        if self._head is not None and self._head.status < _OK:  # it would go before that of the next reply
            self._refuse("an interim reply (1xx) has a body")
        super().on_body(part)

    def on_headers_complete(self) -> None:
        parser = self._llhttp
        if parser is None:
            return
        self._part = _BODY
        phrase = b"" if _UNPRINTABLE.search(self._line) else self._line
        head = ReplyHead(parser.get_status_code(), phrase, tuple(self._fields))
        if head.status < _CONTINUE:
            self._refuse("the reply has a status that is none")
        coding, length = self._framing.get(b"transfer-encoding"), self._stated_length()
        head.is_chunked = coding is not None
        head.length = length
        head.ends_by_close = coding is None and length is None
        head.keep_alive = parser.should_keep_alive()
        self._head = head
        self._events.append(head)
        if self._is_head and head.status >= _OK:
            # llhttp waits for a body, and cannot be told otherwise.
            self._llhttp = None
            self._complete(head)

    def on_message_complete(self) -> None:
        if self._part is _BODY and self._head is not None:
            self._complete(self._head)

    def _complete(self, head: ReplyHead) -> None:
        self._part = _OVER if head.status >= _OK else _NONE
        self._events.append(END)


_UNPRINTABLE: Final = re.compile(rb"[^\t\x20-\x7e\x80-\xff]")
_LENGTH: Final = re.compile(rb"(?i)\nContent-Length:([^\r\n]*)")
_LISTED_LENGTH: Final = re.compile(rb"(?i)(\nContent-Length:[ \t]*([0-9]+))[ \t]*,[ \t]*\2(?![0-9])")
_REPEATED_LENGTH: Final = re.compile(
    rb"(?i)(\r\nContent-Length:[ \t]*([0-9]+)[ \t]*(?:\r\n[^\r\n]+)*?)"
    rb"\r\nContent-Length:[ \t]*\2[ \t]*(?=\r\n)"
)


def _note_raw(data: bytes, events: list[RequestEvent]) -> None:
    """Give a head its bytes where they are all of one request that came whole and alone, and stays simple."""
    if not events or events[-1] is not END or len(events) > _WHOLE:
        return
    head, body = events[0], events[1]
    if not isinstance(head, RequestHead) or not head.keep_alive or head.is_offer or head.length is None:
        return
    end = len(data) - (len(body) if isinstance(body, bytes) else 0)
    if end <= _MOST_REMEMBERED_BYTES and data.find(_BLANK) == end - len(_BLANK):
        raw = data[:end]
        if b"expect" not in raw.lower():
            head.raw = raw
