"""What the exchange of the streams' benchmarks sends: messages of 150 to 400 bytes, over and over again."""

from bisect import bisect_right
from itertools import accumulate
from random import Random

from rig.websocket import TEXT, frame

_MANY = 60
_LEVEL = '["%d.%d","0.%03d"]'


def _message(number: int, chance: Random) -> bytes:
    size = chance.randint(150, 400)
    text = f'{{"topic":"orderbook.50.BTCUSDT","type":"delta","seq":{number},"data":{{"b":['
    while len(text) < size - 24:
        text += _LEVEL % (chance.randint(60000, 70000), chance.randint(0, 9), chance.randint(0, 999)) + ","
    return (text[:-1] + "]}}").ljust(size).encode()


_CHANCE = Random(38)  # the client must know them
FRAMES = tuple(frame(TEXT, _message(number, _CHANCE)) for number in range(_MANY))
RING = b"".join(FRAMES)
_ENDS = tuple(accumulate(map(len, FRAMES)))
_LONG = RING * (2 + (1 << 20) // len(RING))


def segments(batch: int) -> tuple[bytes, ...]:
    """Return them, as many in each as `batch` says."""
    return tuple(b"".join(FRAMES[at : at + batch]) for at in range(0, _MANY, batch))


class FrameCount:
    """Counts frames that must be these, in this order."""

    def __init__(self) -> None:
        self.bytes = 0

    def add(self, data: bytes) -> None:
        """Take bytes. Raises SystemExit for others."""
        for at in range(0, len(data), 1 << 20):
            piece = data[at : at + (1 << 20)]
            if not _LONG.startswith(piece, self.bytes % len(RING)):
                raise SystemExit(f"behind {self.bytes} bytes came {piece[:80]!r} ...")
            self.bytes += len(piece)

    @property
    def frames(self) -> int:
        """How many have come whole."""
        rings, rest = divmod(self.bytes, len(RING))
        return rings * _MANY + bisect_right(_ENDS, rest)
