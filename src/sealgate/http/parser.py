"""The parser of HTTP/1.1: bytes in, events out. No socket, no loop.

llhttp (httptools) decides where heads, bodies and messages begin and end. This module decides what llhttp
leaves to its user: sizes, what ends a connection, upgrades (RFC 9110 section 7.8), and replies to HEAD.

A message makes these events: a head, the parts of its body, b"" at its end. Malformed is the last event of a
connection. However the bytes are cut, the events are the same, except for how a body is cut into parts.
"""

import enum
import re
from typing import Any, Final, NoReturn

from httptools import (
    HttpParserError,
    HttpParserInvalidURLError,
    HttpParserUpgrade,
    HttpRequestParser,
    HttpResponseParser,
)

from sealgate.http.head_memory import Fields, Head, HeadMemory
from sealgate.http.headers import FRAMING
from sealgate.http.target import escaped

MOST_HEAD_BYTES: Final = 64 * 1024
PIECE_BYTES: Final = 16 * 1024  # parsed at a time: sizes are checked between two pieces
_FRAMING_BYTES: Final = 16 * 1024  # chunk sizes with extensions, and trailers, without a byte of body
_REQUEST_FIELD_BYTES: Final = 8 * 1024
_REPLY_FIELD_BYTES: Final = 32 * 1024
_LENGTH_DIGITS: Final = 18  # llhttp reads the largest number of 20 digits as "no length"
_MOST_INTERIM: Final = 16  # 1xx replies to one request
_UNASKED: Final = "unexpected bytes arrived"
_EMPTY_LINE: Final = b"\r\n"  # ignored between messages (RFC 9112 section 2.2)
_EVENTS_OF_WHOLE: Final = frozenset({2, 3})  # of one message in one piece: head, perhaps a body, its end
_MANY_PARTS: Final = 200  # of a body in one piece: they cost a hundred times as much as one of that size
_CONTINUE: Final = 100
_SWITCHING: Final = 101
_OK: Final = 200
_FRAMING_LENGTHS: Final = frozenset(map(len, FRAMING))
_BEYOND_ASCII: Final = re.compile(rb"[\x80-\xff]+")
_UNPRINTABLE: Final = re.compile(rb"[^\t\x20-\x7e\x80-\xff]")
_VERSIONS: Final = {"0.9": (0, 9), "1.0": (1, 0), "1.1": (1, 1), "2.0": (2, 0)}
_HTTP_11: Final = (1, 1)


class _StopError(Exception):
    """Stops llhttp in a callback. Nothing may keep it: its traceback keeps the frames with their bytes."""


class Malformed:
    """The bytes are not HTTP/1.1, or too large, or follow where no message may.

    `detail` repeats nothing of them, except for one letter of a target.
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
    """A reply's head. Its `length` is None where the body is chunked, or ends with the connection.

    `phrase` has surrogates for bytes that are not UTF-8.
    """

    __slots__ = ("phrase", "status")

    def __init__(self, status: int, phrase: str, fields: Fields) -> None:
        super().__init__(fields)
        self.status = status
        self.phrase = phrase


RequestEvent = RequestHead | bytes | Malformed
ReplyEvent = RawReplyHead | bytes | Malformed


class Part(enum.Enum):
    """What the next byte belongs to."""

    BETWEEN = enum.auto()  # it is the first of a message
    HEAD = enum.auto()
    BODY = enum.auto()  # or to what frames the body: chunk sizes, trailers
    OVER = enum.auto()  # nothing: no message may follow


# Names that cost no look-up.
BETWEEN: Final = Part.BETWEEN
HEAD: Final = Part.HEAD
BODY: Final = Part.BODY
OVER: Final = Part.OVER


class _Parser:
    """A parser of either direction. The methods `on_...` are llhttp's callbacks."""

    most_fields = 128
    longest_field = _REQUEST_FIELD_BYTES  # also of the target or the phrase, and of all trailers together
    no_http = "This is not HTTP/1.1."
    too_large = "A line or the head is too large."
    no_length = "The Content-Length has more than 18 digits."
    reports_surplus = False  # whether bytes where no message may follow are Malformed, or ignored

    def __init__(self) -> None:
        self._llhttp: Any = None  # a parser of httptools, until this one is closed
        self._part = BETWEEN
        self._events: list[Any] = []
        self._body_parts: list[bytes] = []  # will be one event
        self.is_crumbled = False  # the latest bytes had many small parts of a body, or hardly any of it
        self._fields: list[tuple[bytes, bytes]] = []
        self._length: bytes | None = None  # the value of Content-Length
        self._coding: bytes | None = None  # the value of the last Transfer-Encoding
        self._target_or_phrase = b""
        self._bytes_since_event = 0  # of a head, or of what frames a body
        self._trailer_bytes = 0
        self._refusal: Malformed | None = None  # why a callback stopped llhttp

    @property
    def is_between(self) -> bool:
        """Whether the next byte is the first of a message."""
        return self._part is BETWEEN

    @property
    def is_in_head(self) -> bool:
        """Whether a head has begun to arrive; an empty line before it belongs to it."""
        return self._part is HEAD or (self._part is BETWEEN and self._bytes_since_event > 0)

    @property
    def is_over(self) -> bool:
        """Whether no message may follow."""
        return self._part is OVER

    def feed(self, data: bytes) -> list[Any]:
        """Return the events that these bytes complete."""
        was_between = self._part is BETWEEN
        self.is_crumbled = False
        events = self._events = []
        for at in range(0, len(data), PIECE_BYTES):
            piece = data[at : at + PIECE_BYTES]
            events_before = len(events)
            try:
                if self._part is OVER and piece.strip(_EMPTY_LINE):
                    self._refuse(_UNASKED)
                self._feed(piece)
                self._join_parts()
                if self._part is BODY and len(piece) == PIECE_BYTES:
                    body = sum(len(event) for event in events[events_before:] if isinstance(event, bytes))
                    self.is_crumbled = self.is_crumbled or body < PIECE_BYTES // 2
                self._bytes_since_event = (
                    self._bytes_since_event + len(piece) if len(events) == events_before else 0
                )
                if self._bytes_since_event > (_FRAMING_BYTES if self._part is BODY else MOST_HEAD_BYTES):
                    self._refuse(self.too_large, is_too_large=True)
            except (_StopError, HttpParserError) as error:
                self._join_parts()
                if self._part is not OVER:
                    events.append(self._refusal or Malformed(self._fault(error, piece)))
                elif self.reports_surplus:
                    events.append(Malformed(_UNASKED))
                self._part = OVER
                break
        if was_between and len(data) <= PIECE_BYTES:
            self._note_raw(data)
        self._events = []
        return events

    def _fault(self, error: Exception, piece: bytes) -> str:  # noqa: ARG002 - for requests
        """Return in words what is wrong with a piece at which llhttp stopped."""
        return self.no_http

    def close(self) -> None:
        """Drop llhttp: it and this parser refer to each other, a cycle that only the collector would free."""
        self._part, self._llhttp, self._fields = OVER, None, []

    def _feed(self, piece: bytes) -> None:
        """Let llhttp parse a piece, in the way of this direction."""

    def _note_raw(self, data: bytes) -> None:
        """Let a head be remembered by its bytes, if they hold one whole message and nothing else."""
        events = self._events
        if len(events) not in _EVENTS_OF_WHOLE or events[-1] != b"" or not events[0].keep_alive:
            return
        head, body = events[0], events[1]
        raw, blank, behind = data.partition(b"\r\n\r\n")
        if blank and head.length == len(body) == len(behind):
            head.raw = raw

    def _refuse(self, detail: str, *, is_too_large: bool = False) -> NoReturn:
        """Stop llhttp, which raises an error of its own when a callback raises this one."""
        self._refusal = Malformed(detail, is_too_large=is_too_large)
        raise _StopError

    def on_message_begin(self) -> None:
        if self._part is OVER:
            self._refuse(_UNASKED)
        self._part = HEAD
        self._fields = []
        self._length = self._coding = None
        self._target_or_phrase = b""
        self._trailer_bytes = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._part is HEAD:
            fields = self._fields
            if len(fields) >= self.most_fields:
                self._refuse(self.too_large, is_too_large=True)
            fields.append((name, value.rstrip(b" \t")))
        else:  # a trailer is dropped (RFC 9110 section 6.5.1)
            self._trailer_bytes += len(name) + len(value) + 4
            if self._trailer_bytes > self.longest_field:
                self._refuse(self.too_large, is_too_large=True)

    def _look_at_fields(self) -> None:
        """Find the fields that frame the body; refuse a field that is too large."""
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
        if self._part is BODY:
            self._body_parts.append(part)

    def _join_parts(self) -> None:
        """Make one event of the parts that arrived together: a thousand tiny chunks are one read."""
        parts = self._body_parts
        if parts:
            self.is_crumbled = self.is_crumbled or len(parts) > _MANY_PARTS
            self._events.append(parts[0] if len(parts) == 1 else b"".join(parts))
            self._body_parts = []

    def _end_body(self) -> None:
        self._join_parts()
        self._events.append(b"")

    def _begin_body(self, head: Head) -> None:
        if self._length is not None:
            digits = self._length.lstrip(b"0") or b"0"
            if len(digits) > _LENGTH_DIGITS:
                self._refuse(self.no_length)
            head.length = int(digits)
        self._part = BODY
        self._fields = []  # an idle connection need not keep them
        self._events.append(head)


class RequestParser(_Parser):
    """Parses the requests of one connection."""

    def __init__(self) -> None:
        super().__init__()
        self._llhttp = HttpRequestParser(self)
        self._keep_alive = True

    def find(self, memory: HeadMemory[RequestHead], data: bytes) -> tuple[RequestHead, bytes] | None:
        """Return a whole request whose head is remembered; None if `feed` must parse it."""
        found = memory.find(data) if self._part is BETWEEN else None
        if found is not None:
            self._bytes_since_event = 0
        return found

    def _feed(self, piece: bytes) -> None:
        while True:
            try:
                self._llhttp.feed_data(piece)
            except HttpParserUpgrade as stop:
                if self._part is OVER:
                    return
                self._ignore_offer()
                piece = piece[stop.args[0] :]
            else:
                return

    def _ignore_offer(self) -> None:
        """Parse on behind the head of an upgrade, which a server may ignore (RFC 9110 section 7.8).

        llhttp takes the body for the other protocol. So a new llhttp gets a head that frames the same body;
        as `_part` is BODY by now, that head makes no event.
        """
        self._llhttp = HttpRequestParser(self)
        framing = b""
        if self._coding is not None:
            framing = b"Transfer-Encoding: %b\r\n" % self._coding
        elif self._length is not None:
            framing = b"Content-Length: %b\r\n" % self._length
        self._llhttp.feed_data(b"POST / HTTP/1.1\r\n%b\r\n" % framing)

    def _fault(self, error: Exception, piece: bytes) -> str:
        """Name the character of a target that the client should have escaped: llhttp accepts only ASCII."""
        found = _BEYOND_ASCII.search(piece.partition(b"\r\n")[0])
        if found is None or not isinstance(error, HttpParserInvalidURLError):
            return self.no_http
        letter = found[0].decode("utf-8", "ignore")[:1]
        if not letter.isprintable() or not letter:
            return "The target has a character beyond ASCII that is not escaped."
        return f"The target has {letter} unescaped; it is written {escaped(letter.encode())}."

    def on_message_begin(self) -> None:
        if self._part is not BODY:
            super().on_message_begin()

    def on_url(self, part: bytes) -> None:
        if self._part is HEAD:
            self._target_or_phrase += part
            if len(self._target_or_phrase) > self.longest_field:
                self._refuse(self.too_large, is_too_large=True)

    def on_headers_complete(self) -> None:
        if self._part is not HEAD:
            return
        self._look_at_fields()
        parser = self._llhttp
        method = parser.get_method().decode("ascii")
        version = _VERSIONS[parser.get_http_version()]
        head = RequestHead(method, self._target_or_phrase.decode("ascii"), version, tuple(self._fields))
        # 1. Without any framing field there is no body (RFC 9112 section 6.3, step 7). llhttp refuses a
        #    request with both of them (step 3).
        head.length = 0 if self._coding is None else None
        # 2. An HTTP/1.0 client with a transfer coding may have meant anything: close behind it (section 6.1).
        is_sound = version == _HTTP_11 or self._coding is None
        # 3. What follows a CONNECT is not HTTP (RFC 9110 section 9.3.6): its message ends here, the last one.
        self._keep_alive = head.keep_alive = parser.should_keep_alive() and is_sound and method != "CONNECT"
        self._begin_body(head)
        if method == "CONNECT":
            self._end_message()

    def on_message_complete(self) -> None:
        if self._part is BODY and not self._llhttp.should_upgrade():
            self._end_message()

    def _end_message(self) -> None:
        self._part = BETWEEN if self._keep_alive else OVER
        self._end_body()


class ReplyParser(_Parser):
    """Parses the replies of one connection: `expect` each, then feed. It skips interim replies (1xx)."""

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
        # A recipient may accept LF alone as the end of a line (RFC 9112 section 2.2).
        self._llhttp.set_dangerous_leniencies(lenient_optional_cr_before_lf=True)
        self._is_head = self._may_switch = False
        self._interim = 0
        self._status = 0
        self._part = OVER
        self.behind_switch: bytes | None = None  # bytes of the other protocol, once a 101 has come

    def expect(self, *, is_head: bool, may_switch: bool = False) -> None:
        """Parse one more reply. A reply to a HEAD request has no body, and is the last.

        With `may_switch` it may be a 101, the last reply of its connection.
        """
        self._is_head, self._may_switch = is_head, may_switch
        self._interim = self._bytes_since_event = 0
        self._part = BETWEEN

    @property
    def ends_with_connection(self) -> bool:
        """Whether an orderly end of the connection is the end of the body (RFC 9112 section 6.3, step 8)."""
        is_framed = self._coding is not None or self._length is not None
        return self._part is BODY and self._status >= _OK and not is_framed

    def find(self, data: bytes) -> tuple[RawReplyHead, bytes] | None:
        """Return a whole reply whose head is remembered; None if `feed` must parse it."""
        if self._part is not BETWEEN or self._is_head:
            return None
        found = self._memory.find(data)
        if found is not None:
            self._part = OVER
        return found

    def feed(self, data: bytes) -> list[ReplyEvent]:
        """Return the events that these bytes complete; Malformed, if any byte follows the reply."""
        events: list[ReplyEvent] = super().feed(data)
        if events and isinstance(head := events[0], RawReplyHead):
            self._memory.put(head)
        return events

    def _feed(self, piece: bytes) -> None:
        try:
            self._llhttp.feed_data(piece)
        except HttpParserUpgrade as stop:
            self.behind_switch = piece[stop.args[0] :]

    def on_status(self, part: bytes) -> None:
        self._target_or_phrase += part

    def on_headers_complete(self) -> None:
        status = self._status = self._llhttp.get_status_code()
        if status < _CONTINUE:
            self._refuse("the reply has an invalid status")
        # 1. A 101 answers an upgrade alone, and ends HTTP here; other interim replies (1xx) are skipped.
        if status == _SWITCHING:
            if not self._may_switch:
                self._refuse("it switched to another protocol (101) without being asked")
            self._events += [RawReplyHead(status, "Switching Protocols", tuple(self._fields)), b""]
            self._part = OVER
            return
        if status < _OK:
            self._part = BODY
            self._interim += 1
            if self._interim > _MOST_INTERIM:
                self._refuse("it sent endless interim replies (1xx)")
            return
        # 2. HTTP/1.0 with a transfer coding: the framing is faulty, whatever the Content-Length states (RFC
        #    9112 section 6.1). So an order stays `unknown`.
        self._look_at_fields()
        if self._coding is not None and self._llhttp.get_http_version() != "1.1":
            self._refuse("the reply is HTTP/1.0 with a transfer coding, so its end is unknown")
        phrase = b"" if _UNPRINTABLE.search(self._target_or_phrase) else self._target_or_phrase
        head = RawReplyHead(status, phrase.decode("utf-8", "surrogateescape"), tuple(self._fields))
        # 3. A reply to HEAD has no body (section 6.3, step 1). llhttp cannot be told so and would wait for
        #    one: the reply ends here, and is the last of its connection.
        head.keep_alive = self._llhttp.should_keep_alive() and not self._is_head
        self._begin_body(head)
        if self._is_head:
            self.on_message_complete()

    def on_body(self, part: bytes) -> None:
        if self._status < _OK:  # it would become a part of the final reply's
            self._refuse("an interim reply (1xx) has a body")
        super().on_body(part)

    def on_message_complete(self) -> None:
        if self._part is not BODY:
            return
        if self._status < _OK:
            self._part = BETWEEN
        else:
            self._part = OVER
            self._end_body()
