"""A bot's body, read whole, bounded in size and time, and as it came: nothing is unpacked."""

import asyncio
from typing import Final

from sealgate.errors import Refusal
from sealgate.gateway.http.server import Incoming

_HTTP_11: Final = (1, 1)
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


def whole_body(request: Incoming, max_body: int) -> bytes:
    """Return a body that is there. Raises Refusal `body_too_large`."""
    body = request.body.take()
    _check_size(len(body), max_body)
    return body


async def read_body(request: Incoming, max_body: int, timeout_s: float, *, expects_continue: bool) -> bytes:
    """Return a body of at most `max_body` bytes that still comes.

    Raises Refusal `body_too_large`, `body_timeout`, or what the connection refuses the body with:
    `bad_request` (framed wrongly), `headers_too_large` (what frames it).
    """
    # RFC 9110 section 10.1.1; what else Expect may say was refused before, and HTTP/1.0 knows no 100.
    if expects_continue and request.head.version >= _HTTP_11:
        request.connection.write(_CONTINUE)
    try:
        async with asyncio.timeout(timeout_s):
            parts: list[bytes] = []
            size = 0
            while part := await request.body.read():
                size += len(part)
                _check_size(size, max_body)
                parts.append(part)
            await request.connection.check_presence()
            return b"".join(parts)
    except TimeoutError:
        raise Refusal("body_timeout", f"The body did not arrive within {timeout_s:g} s.") from None


def _check_size(size: int, max_body: int) -> None:
    if size > max_body:
        raise Refusal("body_too_large", f"The body is larger than listen.max_body ({max_body} bytes).")
