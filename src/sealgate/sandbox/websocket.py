"""The stream on its WebSocket. aiohttp reads; frames are written here, so that one can be half sent."""

import asyncio
from collections.abc import Awaitable, Callable

from aiohttp import WSMsgType, web

from sealgate.sandbox.lines import HttpLine, reset_connection
from sealgate.sandbox.message import Reply
from sealgate.sandbox.models.streams import StreamMessage
from sealgate.sandbox.stream import Stream, Streams
from sealgate.sandbox.stream_desk import reply_text

MOST_UNREAD_BYTES = 16 << 20  # of a bot that does not read: then it is cut off
UNSUPPORTED_DATA = 1003
OPENED = Reply(101, b"", "ok")

_TEXT_FRAME = 0x81  # the last, and only, frame of a text (RFC 6455 5.2)
_SHORT, _MEDIUM = 125, 0xFFFF

Hear = Callable[["WebSocket", str], Awaitable[None]]


def text_frame(text: str) -> bytes:
    """Return a text as one frame of a server, not masked (RFC 6455 5.1)."""
    payload = text.encode()
    size = len(payload)
    if size <= _SHORT:
        length = bytes((size,))
    elif size <= _MEDIUM:
        length = b"\x7e" + size.to_bytes(2)
    else:
        length = b"\x7f" + size.to_bytes(8)
    return bytes((_TEXT_FRAME,)) + length + payload


class WebSocket:
    """One stream from the upgrade to its end. `hear` answers a message."""

    def __init__(
        self, raw: web.BaseRequest, client_ip: str, streams: Streams, hear: Hear, max_bytes: int
    ) -> None:
        self.client_ip = client_ip
        self._raw = raw
        self._streams = streams
        self._hear = hear
        self._tasks: set[asyncio.Future[None]] = set()
        self._running: asyncio.Future[None] | None = None
        self.response = web.WebSocketResponse(max_msg_size=max_bytes, compress=False)
        self.state = Stream(self.send, self.close, self.vanish)

    async def open(self) -> None:
        """Answer the upgrade, and from then on messages."""
        await self.response.prepare(self._raw)
        self._streams.enter(self.state)
        self._running = asyncio.ensure_future(self._run())

    async def ended(self) -> None:
        """Wait until the stream has ended, if it was opened."""
        if self._running is not None:
            await self._running

    async def _run(self) -> None:
        """Answer messages until the stream has ended; one that a fault holds up does not hold up others."""
        try:
            async for message in self.response:
                if message.type is WSMsgType.TEXT:
                    self._begin(self._hear(self, message.data))
                else:
                    self.close(UNSUPPORTED_DATA, "messages are texts")
            self._streams.leave(self.state)
            await asyncio.gather(*self._tasks)
        finally:  # the server may end before
            self._streams.leave(self.state)
            for task in tuple(self._tasks):
                task.cancel()

    def _begin(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def send(self, text: str) -> None:
        """Send a message, unless the stream has ended."""
        self._write(text_frame(text))

    def send_half(self, text: str) -> None:
        """Send a frame that says it is whole, but for the second half of its text."""
        frame = text_frame(text)
        self._write(frame[: len(frame) - len(text.encode()) // 2])

    def _write(self, data: bytes) -> None:
        transport = self._raw.transport
        if transport is None or transport.is_closing() or self.response.closed:
            return
        transport.write(data)
        if transport.get_write_buffer_size() > MOST_UNREAD_BYTES:
            transport.abort()

    def close(self, code: int, reason: str) -> None:
        """Close the stream with a close frame."""
        self._begin(self._close(code, reason))

    async def _close(self, code: int, reason: str) -> None:
        await self.response.close(code=code, message=reason.encode())

    def vanish(self) -> None:
        """End the connection without a close frame."""
        if self._raw.transport is not None:
            self._raw.transport.close()

    def reset(self) -> None:
        """End the connection with a TCP reset."""
        reset_connection(self._raw)


class OpeningLine(HttpLine):
    """The way back of the request for the upgrade."""

    def __init__(self, raw: web.BaseRequest, websocket: WebSocket) -> None:
        super().__init__(raw)
        self._websocket = websocket

    async def whole(self, reply: Reply) -> web.StreamResponse:
        """Open the stream, or refuse it."""
        if reply is not OPENED:
            return await super().whole(reply)
        self._begun = self._websocket.response
        await self._websocket.open()
        return self._begun

    async def half(self, reply: Reply) -> web.StreamResponse:
        """Open the stream, of which there is no half."""
        return await self.whole(reply)


class MessageLine:
    """The way back of one message."""

    def __init__(self, websocket: WebSocket, message: StreamMessage) -> None:
        self._websocket = websocket
        self._message = message

    async def whole(self, reply: Reply) -> None:
        """Send the reply as a message."""
        self._websocket.send(reply_text(self._message, reply))

    async def half(self, reply: Reply) -> None:
        """Send half of its frame."""
        self._websocket.send_half(reply_text(self._message, reply))

    def reset(self) -> None:
        """Reset the whole stream."""
        self._websocket.reset()

    def end(self) -> None:
        """End the whole stream, without a close frame."""
        self._websocket.vanish()

    def withhold(self) -> None:
        """Send nothing: the stream stays open."""
