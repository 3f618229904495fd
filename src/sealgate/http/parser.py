"""HTTP/1.1 messages out of bytes: bytes in, events out. No socket, no loop.

llhttp (httptools) decides where heads, bodies and messages begin and end. What it leaves to its user is
decided here: sizes, what ends a connection, an offer of another protocol (RFC 9110 section 7.8) and a reply
to a HEAD request. The events are the same whether the bytes come whole or one by one, but for how a body is
cut into parts: a head, the parts of its body, b"" at its end; and Malformed, after which nothing is taken.
"""

import re
from typing import Any, Final, NoReturn

from httptools import (
    HttpParserError,
    HttpParserInvalidURLError,
    HttpParserUpgrade,
    HttpRequestParser,
    HttpResponseParser,
)

from sealgate.http.headers import FRAMING
from sealgate.http.memory import Fields, Head, HeadMemory
from sealgate.http.target import escaped

MOST_HEAD_BYTES: Final = 64 * 1024
PIECE_BYTES: Final = 16 * 1024  # parsed at once, so that sizes are looked at as the bytes arrive
_FRAMING_BYTES: Final = 16 * 1024  # of chunk sizes with their extensions, and of trailers, in a row
_REQUEST_FIELD_BYTES: Final = 8 * 1024
_REPLY_FIELD_BYTES: Final = 32 * 1024
_LENGTH_DIGITS: Final = 18  # llhttp takes the largest number of more for no length
_MOST_INTERIM: Final = 16  # 1xx replies to one request
_UNASKED: Final = "bytes came that nobody asked for"
_EMPTY_LINE: Final = b"\r\n"  # between messages it is nothing (RFC 9112 section 2.2)
_WHOLE: Final = frozenset({2, 3})  # events of a message that came at once: head, perhaps a body, its end
_MANY_PARTS: Final = 200  # of a body in one piece: they take a hundred times as long as one of that size
_CONTINUE: Final = 100
_SWITCHING: Final = 101
_OK: Final = 200
_FRAMING_LENGTHS: Final = frozenset(map(len, FRAMING))
_BEYOND_ASCII: Final = re.compile(rb"[\x80-\xff]+")
_UNPRINTABLE: Final = re.compile(rb"[^\t\x20-\x7e\x80-\xff]")
_VERSIONS: Final = {"0.9": (0, 9), "1.0": (1, 0), "1.1": (1, 1), "2.0": (2, 0)}
_HTTP_11: Final = (1, 1)


class _StopError(Exception):
    """Ends the parsing of a piece. It holds the frames that it came through, so nothing may hold it."""


class Malformed:
    """What came is no HTTP/1.1, or more than is taken; behind a message it is merely more than that.

    `detail` repeats nothing of what came, but for one letter of a target.
    """

    __slots__ = ("detail", "is_too_large")

    def __init__(self, detail: str, *, is_too_large: bool = False) -> None:
        self.detail = detail
        self.is_too_large = is_too_large


class RequestHead(Head):
    """A request's head. Its `length` is None where the body is chunked."""

    __slots__ = ("method", "target", "version")

    def __init__(self, method: str, target: str, version: tuple[int, int], fields: Fields) -> None:
        super().__init__(fields)
        self.method = method
        self.target = target
        self.version = version


class RawReplyHead(Head):
    """A reply's head. Its `length` is None where the body is chunked, or ends where the connection does.

    `phrase` has surrogates for what is no UTF-8.
    """

    __slots__ = ("phrase", "status")

    def __init__(self, status: int, phrase: str, fields: Fields) -> None:
        super().__init__(fields)
        self.status = status
        self.phrase = phrase


RequestEvent = RequestHead | bytes | Malformed
ReplyEvent = RawReplyHead | bytes | Malformed


# What the next byte belongs to.
_NONE: Final = 0  # it is the first of a message
_HEAD: Final = 1
_BODY: Final = 2
_OVER: Final = 3  # no message


class _Parser:
    """What both directions share. The methods `on_...` are llhttp's callbacks."""

    most_fields = 128
    longest_field = _REQUEST_FIELD_BYTES  # of a field, the target or the phrase, and of all trailers
    no_http = "This is not HTTP/1.1."
    too_large = "A line or the head is too large."
    no_length = "The Content-Length has more than 18 digits."
    reports_surplus = False  # whether it is Malformed that something comes where no message may

    def __init__(self) -> None:
        self._llhttp: Any = None  # a parser of httptools, until this one is closed
        self._events: list[Any] = []
        self._parts: list[bytes] = []  # of a body, which are no event yet
        self.is_crumbled = False  # whether the latest bytes were of many small parts
        self._part = _NONE
        self._fields: list[tuple[bytes, bytes]] = []
        self._length: bytes | None = None  # the field that states it
        self._coding: bytes | None = None  # the last field that states one
        self._line = b""  # the target or the phrase
        self._held = 0  # bytes that came since the last event: of a head, or of what frames a body
        self._trailers = 0  # bytes of them
        self._verdict: Malformed | None = None  # a callback's

    @property
    def is_between(self) -> bool:
        """Whether the next byte is the first of a message."""
        return self._part == _NONE

    @property
    def is_in_head(self) -> bool:
        """Whether a part of a head has come; an empty line in front belongs to it."""
        return self._part == _HEAD or (self._part == _NONE and self._held > 0)

    @property
    def is_over(self) -> bool:
        """Whether no message may follow."""
        return self._part == _OVER

    def feed(self, data: bytes) -> list[Any]:
        """Return what these bytes add: heads, parts of bodies, b"" at their ends, or Malformed."""
        was_between = self._part == _NONE
        self.is_crumbled = False
        events = self._events = []
        for at in range(0, len(data), PIECE_BYTES):
            piece = data[at : at + PIECE_BYTES]
            came = len(events)
            try:
                if self._part == _OVER and piece.strip(_EMPTY_LINE):
                    self._refuse(_UNASKED)
                self._feed(piece)
                self._join_parts()
                self._held = self._held + len(piece) if len(events) == came else 0
                if self._held > (_FRAMING_BYTES if self._part == _BODY else MOST_HEAD_BYTES):
                    self._refuse(self.too_large, is_too_large=True)
            except (_StopError, HttpParserError) as error:
                self._join_parts()
                if self._part != _OVER:
                    events.append(self._verdict or Malformed(self._fault(error, piece)))
                elif self.reports_surplus:
                    events.append(Malformed(_UNASKED))
                self._part = _OVER
                break
        if was_between and len(data) <= PIECE_BYTES:
            self._note_raw(data)
        self._events = []
        return events

    def _fault(self, error: Exception, piece: bytes) -> str:  # noqa: ARG002 - for requests
        """Say what is wrong with a piece at which llhttp stopped."""
        return self.no_http

    def close(self) -> None:
        """Let go of llhttp with what it holds: the two refer to each other, which only the collector sees."""
        self._part, self._llhttp, self._fields = _OVER, None, []

    def _feed(self, piece: bytes) -> None:
        raise NotImplementedError

    def _note_raw(self, data: bytes) -> None:
        """Give a head its bytes where they are those of one message that came whole and alone."""
        events = self._events
        if len(events) not in _WHOLE or events[-1] != b"" or not events[0].keep_alive:
            return
        head, body = events[0], events[1]
        raw, blank, behind = data.partition(b"\r\n\r\n")
        if blank and head.length == len(body) == len(behind):
            head.raw = raw

    def _refuse(self, detail: str, *, is_too_large: bool = False) -> NoReturn:
        """Stop the parser. llhttp raises an error of its own where this one leaves a callback."""
        self._verdict = Malformed(detail, is_too_large=is_too_large)
        raise _StopError

    def on_message_begin(self) -> None:
        if self._part == _OVER:
            self._refuse(_UNASKED)
        self._part = _HEAD
        self._fields = []
        self._length = self._coding = None
        self._line = b""
        self._trailers = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._part == _HEAD:
            fields = self._fields
            if len(fields) >= self.most_fields:
                self._refuse(self.too_large, is_too_large=True)
            fields.append((name, value.rstrip(b" \t")))
        else:  # a trailer is dropped (RFC 9110 section 6.5.1)
            self._trailers += len(name) + len(value) + 4
            if self._trailers > self.longest_field:
                self._refuse(self.too_large, is_too_large=True)

    def _look_at_fields(self) -> None:
        """Find what frames the body; refuse a field that is too large."""
        longest = self.longest_field
        for name, value in self._fields:
            if len(name) + len(value) > longest:
                self._refuse(self.too_large, is_too_large=True)
            if len(name) in _FRAMING_LENGTHS and (lower := name.lower()) in FRAMING:
                if lower == b"content-length":
                    self._length = value
                else:
                    self._coding = value

    def on_body(self, part: bytes) -> None:
        if self._part == _BODY:
            self._parts.append(part)

    def _join_parts(self) -> None:
        """Make one event of what has come of a body: chunks of a byte each cost whoever reads no more."""
        parts = self._parts
        if parts:
            self.is_crumbled = self.is_crumbled or len(parts) > _MANY_PARTS
            self._events.append(parts[0] if len(parts) == 1 else b"".join(parts))
            self._parts = []

    def _end_body(self) -> None:
        self._join_parts()
        self._events.append(b"")

    def _begin_body(self, head: Head) -> None:
        if self._length is not None:
            digits = self._length.lstrip(b"0") or b"0"
            if len(digits) > _LENGTH_DIGITS:
                self._refuse(self.no_length)
            head.length = int(digits)
        self._part = _BODY
        self._fields = []  # else an idle connection would keep them
        self._events.append(head)


class RequestParser(_Parser):
    """Reads the requests of one connection."""

    def __init__(self) -> None:
        super().__init__()
        self._llhttp = HttpRequestParser(self)
        self._keep_alive = True

    def find(self, memory: HeadMemory[RequestHead], data: bytes) -> tuple[RequestHead, bytes] | None:
        """Take a whole request whose head is known; None where `feed` has to say."""
        found = memory.find(data) if self._part == _NONE else None
        if found is not None:
            self._held = 0
        return found

    def _feed(self, piece: bytes) -> None:
        while True:
            try:
                self._llhttp.feed_data(piece)
            except HttpParserUpgrade as stop:
                if self._part == _OVER:
                    return
                self._ignore_offer()
                piece = piece[stop.args[0] :]
            else:
                return

    def _ignore_offer(self) -> None:
        """Go on behind the head of an offer, whose body llhttp skipped: it takes it for the other protocol.

        A parser of its own is given a head that frames the same body; as `_part` is _BODY by now, that head
        makes no event.
        """
        self._llhttp = HttpRequestParser(self)
        framing = b""
        if self._coding is not None:
            framing = b"Transfer-Encoding: %b\r\n" % self._coding
        elif self._length is not None:
            framing = b"Content-Length: %b\r\n" % self._length
        self._llhttp.feed_data(b"POST / HTTP/1.1\r\n%b\r\n" % framing)

    def _fault(self, error: Exception, piece: bytes) -> str:
        """Name the character that clients which do not escape put into a target; llhttp takes ASCII alone."""
        found = _BEYOND_ASCII.search(piece.partition(b"\r\n")[0])
        if found is None or not isinstance(error, HttpParserInvalidURLError):
            return self.no_http
        letter = found[0].decode("utf-8", "ignore")[:1]
        if not letter.isprintable() or not letter:
            return "The target has a character beyond ASCII that is not escaped."
        return f"The target has {letter} unescaped; it is written {escaped(letter.encode())}."

    def on_message_begin(self) -> None:
        if self._part != _BODY:
            super().on_message_begin()

    def on_url(self, part: bytes) -> None:
        if self._part == _HEAD:
            self._line += part
            if len(self._line) > self.longest_field:
                self._refuse(self.too_large, is_too_large=True)

    def on_headers_complete(self) -> None:
        if self._part != _HEAD:
            return
        self._look_at_fields()
        parser = self._llhttp
        method = parser.get_method().decode("ascii")
        version = _VERSIONS[parser.get_http_version()]
        head = RequestHead(method, self._line.decode("ascii"), version, tuple(self._fields))
        head.length = 0 if self._coding is None else None
        # RFC 9112 section 6.1: nobody knows what an HTTP/1.0 sender means by a transfer coding.
        is_sound = version == _HTTP_11 or self._coding is None
        self._keep_alive = head.keep_alive = parser.should_keep_alive() and is_sound and method != "CONNECT"
        self._begin_body(head)
        if method == "CONNECT":  # what follows is no HTTP
            self._end_message()

    def on_message_complete(self) -> None:
        if self._part == _BODY and not self._llhttp.should_upgrade():
            self._end_message()

    def _end_message(self) -> None:
        self._part = _NONE if self._keep_alive else _OVER
        self._end_body()


class ReplyParser(_Parser):
    """Reads the replies of one connection: `expect` one, and feed. Interim replies (1xx) are skipped."""

    most_fields = 256
    longest_field = _REPLY_FIELD_BYTES
    no_http = "the reply is not HTTP"
    too_large = "a line or the head of the reply is too large"
    no_length = "the reply states an impossible length"
    reports_surplus = True

    def __init__(self, memory: HeadMemory[RawReplyHead]) -> None:
        super().__init__()
        self._memory = memory
        self._llhttp = HttpResponseParser(self)
        # RFC 9112 section 2.2: LF alone may end a line.
        self._llhttp.set_dangerous_leniencies(lenient_optional_cr_before_lf=True)
        self._is_head = False
        self._interim = 0
        self._status = 0
        self._part = _OVER

    def expect(self, *, is_head: bool) -> None:
        """Read one more reply; that to a HEAD request has no body, and is the last."""
        self._is_head = is_head
        self._interim = self._held = 0
        self._part = _NONE

    @property
    def ends_with_connection(self) -> bool:
        """Whether the body under way is whole where the connection ends in order."""
        is_framed = self._coding is not None or self._length is not None
        return self._part == _BODY and self._status >= _OK and not is_framed

    def find(self, data: bytes) -> tuple[RawReplyHead, bytes] | None:
        """Take a whole reply whose head is known; None where `feed` has to say."""
        if self._part != _NONE or self._is_head:
            return None
        found = self._memory.find(data)
        if found is not None:
            self._part = _OVER
        return found

    def feed(self, data: bytes) -> list[ReplyEvent]:
        """Return what these bytes add, as above; Malformed behind a reply where more comes than that."""
        events: list[ReplyEvent] = super().feed(data)
        if events and isinstance(head := events[0], RawReplyHead):
            self._memory.put(head)
        return events

    def _feed(self, piece: bytes) -> None:
        self._llhttp.feed_data(piece)

    def on_status(self, part: bytes) -> None:
        self._line += part

    def on_headers_complete(self) -> None:
        status = self._status = self._llhttp.get_status_code()
        if status < _CONTINUE:
            self._refuse("the reply has an invalid status")
        if status == _SWITCHING:
            self._refuse("it switched to another protocol (101) unasked")
        if status < _OK:
            self._part = _BODY
            self._interim += 1
            if self._interim > _MOST_INTERIM:
                self._refuse("it sent endless interim replies (1xx)")
            return
        self._look_at_fields()
        # RFC 9112 section 6.1: the framing is faulty, even with a Content-Length. An order stays `unknown`.
        if self._coding is not None and self._llhttp.get_http_version() != "1.1":
            self._refuse("the reply is HTTP/1.0 with a transfer coding, so its end is not known")
        phrase = b"" if _UNPRINTABLE.search(self._line) else self._line
        head = RawReplyHead(status, phrase.decode("utf-8", "surrogateescape"), tuple(self._fields))
        # llhttp waits for a body behind the reply to a HEAD request, and cannot be told otherwise.
        head.keep_alive = self._llhttp.should_keep_alive() and not self._is_head
        self._begin_body(head)
        if self._is_head:
            self.on_message_complete()

    def on_body(self, part: bytes) -> None:
        if self._status < _OK:  # it would go before that of the next reply
            self._refuse("an interim reply (1xx) has a body")
        super().on_body(part)

    def on_message_complete(self) -> None:
        if self._part != _BODY:
            return
        if self._status < _OK:
            self._part = _NONE
        else:
            self._part = _OVER
            self._end_body()
