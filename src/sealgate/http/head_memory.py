"""Heads that were parsed before, by their exact bytes: bots and exchanges repeat the same few."""

from typing import Final, Generic, TypeVar

Fields = tuple[tuple[bytes, bytes], ...]

_MOST_HEAD_BYTES: Final = 4 * 1024  # larger ones are rare, and would crowd out the others
# The memory that a head takes, measured with everything that the gateway derives from one.
_COPIES: Final = 3  # of its bytes: as they arrived, in fields, and as they are passed on
_FIELD_BYTES: Final = 150  # for the objects of each field
_HEAD_BYTES: Final = 700  # for all other objects
_BLANK: Final = b"\r\n\r\n"


class Head:
    """A message's head, raw except for the space around values.

    `length` is the stated size of the body, or None. `keep_alive`: another message may follow on the
    connection. `raw` holds the head's bytes without the empty line if a HeadMemory may keep it, else b"".
    `memo` is for whoever derives something from the head, and is remembered with it.
    """

    __slots__ = ("fields", "keep_alive", "length", "memo", "raw")

    def __init__(self, fields: Fields) -> None:
        self.fields = fields
        self.length: int | None = None
        self.keep_alive = True
        self.raw = b""
        self.memo: object = None


H = TypeVar("H", bound=Head)


class HeadMemory(Generic[H]):
    """Remembers heads, up to `most_bytes` of memory; the oldest are forgotten first.

    Only what the parser returned is kept, and only for a message that arrived whole and alone; only such a
    message is looked up. So this is not a second reading of HTTP.
    """

    def __init__(self, most_bytes: int = 8 * 1024 * 1024) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._heads: dict[bytes, H] = {}

    def __len__(self) -> int:
        return len(self._heads)

    def put(self, head: H) -> None:
        """Remember a head, if it may be kept."""
        raw = head.raw
        if not raw or len(raw) > _MOST_HEAD_BYTES or raw in self._heads:
            return
        self._heads[raw] = head
        self._bytes += _size(head)
        while self._bytes > self._most_bytes:
            self._bytes -= _size(self._heads.pop(next(iter(self._heads))))

    def find(self, data: bytes) -> tuple[H, bytes] | None:
        """Return head and body if `data` is one whole message with a remembered head; else None."""
        raw, blank, body = data.partition(_BLANK)
        head = self._heads.get(raw) if blank else None
        if head is None or len(body) != head.length:
            return None
        return head, body

    def clear(self) -> None:
        """Forget all heads: bots' tokens are among their fields."""
        self._heads.clear()
        self._bytes = 0


def _size(head: Head) -> int:
    return _HEAD_BYTES + _FIELD_BYTES * len(head.fields) + _COPIES * len(head.raw)
