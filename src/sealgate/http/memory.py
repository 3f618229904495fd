"""What the parser said of heads before, by their exact bytes: bots and exchanges send the same few again."""

from typing import Final, Generic, TypeVar

Fields = tuple[tuple[bytes, bytes], ...]

_MOST_HEAD_BYTES: Final = 4 * 1024  # larger ones are rare, and would crowd out the others
# What a head takes in memory, measured with all that a gateway makes of one.
_COPIES: Final = 3  # of its bytes: as they came, in fields, and as they are passed on
_FIELD_BYTES: Final = 150  # for the objects of a field
_HEAD_BYTES: Final = 700  # for the others
_BLANK: Final = b"\r\n\r\n"


class Head:
    """A message's head, raw but for the space around values.

    `length` is the size that it states for the body, else None. `keep_alive` says whether another message may
    follow on the connection. `raw` holds the head's bytes, but for the empty line, where a HeadMemory may
    keep it, else b"". `memo` is for whoever uses a head that is kept.
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
    """Heads, the oldest of which go first; `most_bytes` is what they take in memory.

    Only a message that comes whole and alone is looked up, and only what the parser said of such a one is
    kept, so this is no second reading of HTTP.
    """

    def __init__(self, most_bytes: int = 8 * 1024 * 1024) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._heads: dict[bytes, H] = {}

    def __len__(self) -> int:
        return len(self._heads)

    def put(self, head: H) -> None:
        """Keep a head that may be kept."""
        raw = head.raw
        if not raw or len(raw) > _MOST_HEAD_BYTES or raw in self._heads:
            return
        self._heads[raw] = head
        self._bytes += _size(head)
        while self._bytes > self._most_bytes:
            self._bytes -= _size(self._heads.pop(next(iter(self._heads))))

    def find(self, data: bytes) -> tuple[H, bytes] | None:
        """Return head and body of the one message that `data` holds, None where the parser has to say."""
        raw, blank, body = data.partition(_BLANK)
        head = self._heads.get(raw) if blank else None
        if head is None or len(body) != head.length:
            return None
        return head, body

    def clear(self) -> None:
        """Forget them; bots' tokens are among their fields."""
        self._heads.clear()
        self._bytes = 0


def _size(head: Head) -> int:
    return _HEAD_BYTES + _FIELD_BYTES * len(head.fields) + _COPIES * len(head.raw)
