"""Where the reply to a request goes, and how it can fail to arrive: over HTTP, or on a stream."""

import contextlib
import socket
import struct
from http import HTTPStatus
from typing import Protocol, TypeVar

from aiohttp import web

from sealgate.sandbox.message import Reply
from sealgate.sandbox.protocol import to_response

Sent_co = TypeVar("Sent_co", covariant=True)


class Line(Protocol[Sent_co]):
    """The way back of one request. Each method returns what its caller hands to the server."""

    async def whole(self, reply: Reply) -> Sent_co:
        """Send a reply."""

    async def half(self, reply: Reply) -> Sent_co:
        """Send the first half of a reply, which says that there is more."""

    def reset(self) -> Sent_co:
        """End the connection with a TCP reset: nothing more is sent, not even what is buffered."""

    def end(self) -> Sent_co:
        """End the connection in good order, as if all had been sent."""

    def withhold(self) -> Sent_co:
        """Send no reply at all, ever."""


class HttpLine:
    """The connection of one request of HTTP."""

    def __init__(self, raw: web.BaseRequest) -> None:
        self._raw = raw
        self._begun: web.StreamResponse = web.Response(status=HTTPStatus.NO_CONTENT)  # sent to nobody

    async def whole(self, reply: Reply) -> web.StreamResponse:
        """Return the response, which the server sends."""
        return to_response(reply)

    async def half(self, reply: Reply) -> web.StreamResponse:
        """Send the head, which promises the whole, and half of the body."""
        self._begun = response = web.StreamResponse(status=reply.status, headers=reply.headers)
        response.content_type = "application/json"
        response.content_length = len(reply.body)
        await response.prepare(self._raw)
        await response.write(reply.body[: len(reply.body) // 2])
        return response

    def reset(self) -> web.StreamResponse:
        """Reset the connection."""
        reset_connection(self._raw)
        return self._begun

    def end(self) -> web.StreamResponse:
        """Close the connection."""
        if self._raw.transport is not None:
            self._raw.transport.close()
        return self._begun

    def withhold(self) -> web.StreamResponse:
        """Close the connection, as another request could not come before the reply."""
        return self.end()


def reset_connection(raw: web.BaseRequest) -> None:
    """End a connection with a TCP reset."""
    transport = raw.transport
    if transport is not None:
        linger = struct.pack("ii", 1, 0)
        with contextlib.suppress(OSError):  # macOS sets no option once the other end has closed it
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        transport.abort()
