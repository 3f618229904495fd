"""Frames of a WebSocket in bytes that are passed on as they came (RFC 6455 section 5.2). No socket, no loop.

A server sends its frames unmasked, also to a gateway: so the bytes that an exchange sends are those that the
bot gets. Here is only seen where frames end, how many messages came, and, if somebody asks, what they say.
"""

from typing import Final

HELD_BYTES: Final = 64 * 1024  # of a frame that has not arrived whole; a larger one is passed on in parts
MOST_READ_BYTES: Final = 64 * 1024  # of a message that is read
_MOST_FRAMES: Final = 2048  # that are followed at a time
_TEXT: Final = 1
_CLOSE: Final = 8
_FIRST_CONTROL: Final = 8
_LENGTH_OF_2: Final = 126


class FrameFollower:
    """Follows the frames of a server.

    `messages` and `bytes` count what came. `has_closed`: a close frame came, `code` and `reason` are its own
    (1005 where it has none). `reads`: keep text messages, for `take_texts`. `has_more`: so many frames came
    at once that `feed` is to be called again, with nothing.
    """

    def __init__(self) -> None:
        self.messages = 0
        self.bytes = 0
        self.has_closed = False
        self.code = 1005
        self.reason = ""
        self.reads = False
        self.has_more = False
        self._held = b""  # the beginning of a frame
        self._left = 0  # bytes of a large frame that are still to come
        self._texts: list[str] = []
        self._parts: list[bytes] | None = None  # of a text message that is being read
        self._size = 0  # of these

    @property
    def is_between(self) -> bool:
        """Whether a frame of our own can stand here: all that was passed on are whole frames."""
        return self._left == 0

    def feed(self, data: bytes) -> bytes:
        """Take bytes; return what may be passed on, which ends with a frame unless that is a large one."""
        self.bytes += len(data)
        if self._held:
            data = self._held + data
            self._held = b""
        if not self.reads:
            self._parts = None
        size, frames = len(data), 0
        self.has_more = False
        at = min(self._left, size)
        self._left -= at
        while size - at >= 2:  # noqa: PLR2004 - the shortest head
            frames += 1
            if frames > _MOST_FRAMES:
                self.has_more = True
                break
            head, length = _lengths(data, at)
            if not head:
                break
            first = data[at]
            end = at + head + length
            # Has it arrived whole? A large one is not waited for.
            if end > size:
                if head + length <= HELD_BYTES:
                    break
                self._left = end - size
                self._note(first, b"", is_read=False)
                at = size
                break
            if self.reads or first & 0x0F >= _FIRST_CONTROL:
                self._note(first, data[at + head : end], is_read=True)
            else:
                self.messages += first >> 7  # the last of a message
            at = end
        if at == size:
            return data
        self._held = data[at:]
        return data[:at]

    def _note(self, first: int, payload: bytes, *, is_read: bool) -> None:
        """Count a frame, and read it if that is asked for; the payload of one that is not read is empty."""
        opcode, is_last = first & 0x0F, first & 0x80 != 0
        if opcode >= _FIRST_CONTROL:
            if opcode == _CLOSE and not self.has_closed:
                self.has_closed = True
                if len(payload) >= 2:  # noqa: PLR2004 - the code
                    self.code = payload[0] << 8 | payload[1]
                    self.reason = payload[2:].decode("utf-8", "replace")
            return
        self.messages += is_last
        if not self.reads:
            return
        if opcode:
            self._parts, self._size = ([] if opcode == _TEXT else None), 0
        if self._parts is None:
            return
        self._size += len(payload)
        if not is_read or self._size > MOST_READ_BYTES:
            self._parts = None
            return
        self._parts.append(payload)
        if is_last:
            self._texts.append(b"".join(self._parts).decode("utf-8", "replace"))
            self._parts = None

    def take_texts(self) -> list[str]:
        """Return the text messages that arrived since the last call, while `reads` was set."""
        texts, self._texts = self._texts, []
        return texts


def _lengths(data: bytes, at: int) -> tuple[int, int]:
    """Return how long the head and the payload of a frame are; (0, 0) while that has not arrived."""
    second, left = data[at + 1], len(data) - at
    length = second & 0x7F
    head = 6 if second & 0x80 else 2  # with a mask, which no server may send
    if length < _LENGTH_OF_2:
        return head, length
    if length == _LENGTH_OF_2:
        return (head + 2, data[at + 2] << 8 | data[at + 3]) if left >= 4 else (0, 0)  # noqa: PLR2004 - 16 bits
    return (head + 8, int.from_bytes(data[at + 2 : at + 10], "big")) if left >= 10 else (0, 0)  # noqa: PLR2004 - 64
