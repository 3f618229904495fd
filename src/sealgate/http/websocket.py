"""The other frames of a WebSocket: those that a bot sends, read by the library, and those of the gateway.

Also the upgrade itself (RFC 6455 section 4). No socket, no loop.
"""

import base64
import binascii
from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple, cast

from websockets.frames import Close, Frame, Opcode
from websockets.protocol import Protocol, Side, State
from websockets.utils import accept_key

from sealgate.errors import Refusal
from sealgate.http.parser import RequestHead

TEXT: Final = Opcode.TEXT
BINARY: Final = Opcode.BINARY
CLOSE: Final = Opcode.CLOSE
PING: Final = Opcode.PING
PONG: Final = Opcode.PONG
_CONTINUATION: Final = Opcode.CONT
_FIRST_CONTROL: Final = Opcode.CLOSE
_KEY_BYTES: Final = 16
_PIECE_BYTES: Final = 512
_LONGEST_REASON: Final = 123  # bytes (section 5.5)
_NOT_SENT_CODES: Final = frozenset({1005, 1006, 1015})  # no frame may have them
PROTOCOL_FIELD: Final = b"sec-websocket-protocol"


def offers_websocket(head: RequestHead) -> bool:
    """Ask whether a request offers to upgrade to a WebSocket."""
    offers = [value for name, value in head.fields if name.lower() == b"upgrade"]
    # Behind a slash is a version (RFC 9110 section 7.8).
    names = [one.partition(b"/")[0].strip().lower() for one in b",".join(offers).split(b",")]
    return b"websocket" in names


def check_offer(head: RequestHead) -> bytes:
    """Return the key of an offer. Raises Refusal where it is not as RFC 6455 section 4.2.1 has it."""
    fields: dict[bytes, list[bytes]] = {}
    for name, value in head.fields:
        fields.setdefault(name.lower(), []).append(value.strip())
    if head.method != "GET" or head.version < (1, 1):
        raise Refusal("upgrade_refused", "An upgrade to a WebSocket must be a GET with HTTP/1.1.")
    if fields.get(b"content-length", [b"0"]) != [b"0"] or b"transfer-encoding" in fields:
        raise Refusal("bad_request", "The upgrade to a WebSocket must not have a body.")
    connection = b",".join(fields.get(b"connection", [])).lower().replace(b" ", b"")
    if b"upgrade" not in connection.split(b","):
        raise Refusal("bad_request", "The upgrade to a WebSocket lacks the header Connection: Upgrade.")
    if fields.get(b"sec-websocket-version") != [b"13"]:
        raise Refusal("bad_request", "The gateway speaks only version 13 of WebSocket (RFC 6455).")
    keys = fields.get(b"sec-websocket-key", [])
    try:
        is_key = len(keys) == 1 and len(base64.b64decode(keys[0], validate=True)) == _KEY_BYTES
    except binascii.Error:
        is_key = False
    if not is_key:
        raise Refusal("bad_request", "The header Sec-WebSocket-Key is not 16 bytes in base64.")
    return keys[0]


def offered_protocols(head: RequestHead) -> list[bytes]:
    """Return the subprotocols that a request offers."""
    values = [value for name, value in head.fields if name.lower() == PROTOCOL_FIELD]
    return [one.strip() for one in b",".join(values).split(b",") if one.strip()]


def without_offer(fields: Iterable[tuple[bytes, bytes]]) -> tuple[tuple[bytes, bytes], ...]:
    """Return the fields that are not the bot's own part of the handshake."""
    return tuple(field for field in fields if not field[0].lower().startswith(b"sec-websocket-"))


def accept_of(key: bytes) -> bytes:
    """Return what answers a key."""
    return accept_key(key.decode("ascii")).encode("ascii")


def key_of(unique: str) -> bytes:
    """Return the key of an upgrade of our own; `unique` is a random UUID."""
    return base64.b64encode(bytes.fromhex(unique.replace("-", "")))


def offer_lines(key: bytes, protocols: Iterable[bytes]) -> bytes:
    """Return the header lines of an upgrade of our own; no extension is offered."""
    named = b", ".join(protocols)
    lines = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    lines += b"Sec-WebSocket-Key: %b\r\n" % key
    return lines + (b"Sec-WebSocket-Protocol: %b\r\n" % named if named else b"")


def accept_fault(fields: Iterable[tuple[bytes, bytes]], key: bytes, protocols: list[bytes]) -> str:
    """Return what is wrong with a server's 101 to an upgrade with this key, "" for nothing (section 4.1).

    `fields` are raw: those of one hop are among them.
    """
    found: dict[bytes, list[bytes]] = {}
    for name, value in fields:
        found.setdefault(name.lower(), []).append(value.strip())
    if [one.lower() for one in found.get(b"upgrade", [])] != [b"websocket"]:
        return "its reply 101 does not switch to WebSocket"
    if found.get(b"sec-websocket-accept") != [accept_of(key)]:
        return "its reply 101 does not match the key that was sent"
    if b"sec-websocket-extensions" in found:
        return "its reply 101 has an extension that was not offered"
    chosen = found.get(PROTOCOL_FIELD, [])
    if chosen and (len(chosen) > 1 or chosen[0] not in protocols):
        return "its reply 101 has a subprotocol that was not offered"
    return ""


def frame(opcode: Opcode, data: bytes, *, is_masked: bool) -> bytes:
    """Return a whole frame; those to a server are masked."""
    return Frame(opcode, data, fin=True).serialize(mask=is_masked, extensions=[])


def close_frame(code: int, reason: str, *, is_masked: bool) -> bytes:
    """Return a close frame; its reason is cut to what fits. One without a code is empty."""
    if code in _NOT_SENT_CODES:
        return frame(CLOSE, b"", is_masked=is_masked)
    text = reason.encode("utf-8")[:_LONGEST_REASON].decode("utf-8", "ignore")
    return frame(CLOSE, code.to_bytes(2, "big") + text.encode("utf-8"), is_masked=is_masked)


class BotMessage(NamedTuple):
    """A whole message of a bot, or a control frame."""

    opcode: Opcode
    data: bytes


class BotFrames:
    """Reads what a bot sends: messages, whole and in order, and control frames.

    `fault` is the close code and the reason by which the library ends what is no WebSocket, None before.
    `unread_bytes` are those behind the messages that were read. With `is_exchange` it reads an exchange.
    """

    def __init__(self, most_bytes: int, *, is_exchange: bool = False) -> None:
        side = Side.CLIENT if is_exchange else Side.SERVER
        self._protocol = Protocol(side, state=State.OPEN, max_size=most_bytes)
        self._unread: deque[bytes] = deque()
        self.unread_bytes = 0
        self._parts = bytearray()  # of a message: a list would grow with empty fragments
        self._opcode = _CONTINUATION
        self._whole: deque[BotMessage] = deque()
        self.fault: tuple[int, str] | None = None

    def add(self, data: bytes) -> None:
        """Take bytes of the bot; `next` reads them."""
        self._unread.append(data)
        self.unread_bytes += len(data)

    def next(self, *, in_turns: bool = False) -> BotMessage | None:
        """Return the next message or control frame, None where there is no whole one, or a fault.

        Few bytes are read at a time, as they may be hundreds of messages. With `in_turns` it also returns
        None behind some fragments of a message, so that others have a turn: while there are `unread_bytes`,
        call it again.
        """
        is_turn_over = False
        while not (self._whole or is_turn_over) and self._unread and self.fault is None:
            data = self._unread.popleft()
            if len(data) > _PIECE_BYTES:
                self._unread.appendleft(data[_PIECE_BYTES:])
                data = data[:_PIECE_BYTES]
            self.unread_bytes -= len(data)
            is_turn_over = self._read(data) and in_turns
        return self._whole.popleft() if self._whole else None

    @property
    def has_more(self) -> bool:
        """Whether there is something that `next` was not asked for."""
        return bool(self._whole or self._unread) or self.fault is not None

    def clear(self) -> None:
        """Drop what was not taken."""
        self._unread.clear()
        self._whole.clear()
        self.unread_bytes = 0

    def _read(self, data: bytes) -> bool:
        """Read bytes; return whether a fragment ended in them."""
        has_fragment = False
        self._protocol.receive_data(data)
        self._protocol.data_to_send()  # answers of its own to pings and closes, which are passed on here
        for event in cast("list[Frame]", self._protocol.events_received()):  # there is no handshake here
            if event.opcode >= _FIRST_CONTROL:
                self._whole.append(BotMessage(event.opcode, bytes(event.data)))
                continue
            if event.opcode != _CONTINUATION:
                self._opcode = event.opcode
            if not event.fin:
                self._parts += event.data
                has_fragment = True
                continue
            message = bytes(self._parts + event.data) if self._parts else bytes(event.data)
            self._parts.clear()
            if self._opcode == TEXT and not _is_utf8(message):
                self.fault = 1007, "a text is not UTF-8"
                break
            self._whole.append(BotMessage(self._opcode, message))
        if self._protocol.parser_exc is not None and self._protocol.close_sent is not None:
            self.fault = self._protocol.close_sent.code, self._protocol.close_sent.reason
        return has_fragment


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def code_and_reason(data: bytes) -> tuple[int, str]:
    """Return what a close frame says; the library has checked it."""
    close = Close.parse(data)
    return close.code, close.reason
