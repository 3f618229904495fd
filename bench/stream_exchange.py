"""The exchange of the streams' benchmarks: raw protocol, frames made beforehand. Prints its port.

The end of a stream's path says what it does: `/feed/RATE/BATCH` sends RATE segments of BATCH messages each
second, `/flood/BATCH` sends such segments as fast as they are taken, `/echo` answers each message, `/still`
does nothing, and `/deaf` does not even read.
"""

import asyncio
from itertools import cycle

import uvloop

from bench.stream_frames import FRAMES, segments
from rig.websocket import CLOSE, FrameReader, accepted, frame

_TICK_S = 0.001
_FEEDS: list["Stream"] = []


class Stream(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self._head = b""
        self._loop = asyncio.get_running_loop()
        self._answer = FRAMES[0]
        self._is_paused = False
        self._is_flood = False
        self._kind = ""
        self._reader = FrameReader(is_masked=True)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._kind:
            for opcode, payload in self._reader.feed(data):
                if opcode == CLOSE:
                    self._transport.write(frame(CLOSE, payload))
                    self._transport.close()
                    return
                if self._kind == "echo":
                    self._transport.write(self._answer)
        else:
            self._head += data
            if self._head.endswith(b"\r\n\r\n"):
                head, self._head = self._head, b""
                self._begin(head)

    def _begin(self, head: bytes) -> None:
        self._transport.write(accepted(head))
        words = head.split(b" ", 2)[1].decode().partition("?")[0].split("/")
        place = next(
            at for at, word in enumerate(words) if word in ("feed", "flood", "echo", "still", "deaf")
        )
        self._kind, numbers = words[place], [float(word) for word in words[place + 1 :]]
        if self._kind == "feed":
            self._gap_s, self._next = 1 / numbers[0], cycle(segments(int(numbers[1])))
            # Streams of one rate do not send at the same moments.
            self._due = self._loop.time() + self._gap_s * (len(_FEEDS) % 97) / 97
            _FEEDS.append(self)
        elif self._kind == "flood":
            self._next = cycle(segments(int(numbers[0])))
            self._pour()
        elif self._kind == "deaf":
            self._transport.pause_reading()

    def send_due(self, now: float) -> None:
        """Send a segment, one at most, if it is time for it."""
        if now >= self._due and not self._is_paused:
            self._due = max(self._due + self._gap_s, now - self._gap_s)
            self._transport.write(next(self._next))

    def _pour(self) -> None:
        # One segment in a round of the loop, or the transport would join them.
        if not self._is_paused and not self._transport.is_closing():
            self._transport.write(next(self._next))
            self._loop.call_soon(self._pour)

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        if self._kind == "flood":
            self._loop.call_soon(self._pour)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if self in _FEEDS:
            _FEEDS.remove(self)


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Stream, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(_TICK_S)
        now = loop.time()
        for stream in _FEEDS:
            stream.send_due(now)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as running:
        running.run(main())
