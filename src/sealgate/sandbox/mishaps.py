"""What a fault does to a request on its connection: late arrival, delay, reset, cut, stall, false status."""

import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from aiohttp import web

from sealgate.sandbox.catalogue import ApiError
from sealgate.sandbox.journal import Receipt
from sealgate.sandbox.message import Reply
from sealgate.sandbox.models.control import Fault
from sealgate.sandbox.protocol import Refuse, to_response

# The rows that some statuses come with; any other is an "Injected fault".
ROWS: Mapping[int, str] = {429: "rate_limited", 500: "internal"}


@dataclass(frozen=True, slots=True)
class Struck:
    """A request that a fault has struck. `answer` executes it, notes that, and gives the true reply."""

    raw: web.BaseRequest
    receipt: Receipt
    fault: Fault
    answer: Callable[[], Reply]


class Mishaps:
    """Makes faults happen. `refuse` makes a false reply, `sleep` waits."""

    def __init__(self, refuse: Refuse, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._refuse = refuse
        self._sleep = sleep
        self._kinds: Mapping[str, Callable[[Struck], Awaitable[web.StreamResponse]]] = {
            "late": self._late,
            "delay": self._delay,
            "status": self._status,
            "reset_before": self._reset_before,
            "reset_after": self._reset_after,
            "cut": self._cut,
            "stall": self._stall,
        }

    async def happen(self, struck: Struck) -> web.StreamResponse:
        """Let it happen; what is returned has been sent already where the connection has ended."""
        return await self._kinds[struck.fault.kind](struck)

    async def _late(self, struck: Struck) -> web.StreamResponse:
        await self._sleep(struck.fault.delay_s)
        return to_response(struck.answer())

    async def _delay(self, struck: Struck) -> web.StreamResponse:
        response = to_response(struck.answer())
        await self._sleep(struck.fault.delay_s)
        return response

    async def _status(self, struck: Struck) -> web.StreamResponse:
        if struck.fault.executed:
            struck.answer()
        status = struck.fault.status
        reply = self._refuse(ApiError(ROWS.get(status, "fault"), status=status))
        struck.receipt.replace_reply(reply)
        return to_response(reply)

    async def _reset_before(self, struck: Struck) -> web.StreamResponse:
        struck.receipt.verdict = "fault"
        return _reset(struck.raw)

    async def _reset_after(self, struck: Struck) -> web.StreamResponse:
        struck.answer()
        return _reset(struck.raw)

    async def _cut(self, struck: Struck) -> web.StreamResponse:
        return _end(struck.raw, await _half(struck.raw, struck.answer()))

    async def _stall(self, struck: Struck) -> web.StreamResponse:
        response = await _half(struck.raw, struck.answer())
        await self._sleep(struck.fault.delay_s)
        return _end(struck.raw, response)


def _reset(raw: web.BaseRequest) -> web.StreamResponse:
    """End the connection with a TCP reset: nothing more is sent, not even what is buffered."""
    transport = raw.transport
    if transport is not None:
        linger = struct.pack("ii", 1, 0)
        with contextlib.suppress(OSError):  # macOS sets no option once the other end has closed it
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        transport.abort()
    return web.Response(status=HTTPStatus.NO_CONTENT)


async def _half(raw: web.BaseRequest, reply: Reply) -> web.StreamResponse:
    """Send the head, which promises the whole, and half of the body."""
    response = web.StreamResponse(status=reply.status, headers=reply.headers)
    response.content_type = "application/json"
    response.content_length = len(reply.body)
    await response.prepare(raw)
    await response.write(reply.body[: len(reply.body) // 2])
    return response


def _end(raw: web.BaseRequest, response: web.StreamResponse) -> web.StreamResponse:
    """End the connection in good order, as if that had been all."""
    if raw.transport is not None:
        raw.transport.close()
    return response
