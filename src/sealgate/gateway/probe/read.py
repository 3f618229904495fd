"""Single reads that commands send, past the gateway's line: nothing else of the gateway runs then."""

import contextlib
from collections.abc import AsyncIterator

from sealgate.config import Config
from sealgate.core.attempts import Failure
from sealgate.core.headers import content_length
from sealgate.core.routes import Lane
from sealgate.gateway.keys.sealing import STATES_LENGTH
from sealgate.gateway.upstream.answer import Answer
from sealgate.gateway.upstream.destination import destination_of
from sealgate.gateway.upstream.pool import Upstream


@contextlib.asynccontextmanager
async def direct_upstream(config: Config) -> AsyncIterator[Upstream]:
    """Hold a connection to the exchange as long as the block lasts."""
    upstream = Upstream(destination_of(config))
    try:
        yield upstream
    finally:
        await upstream.close()


async def read(
    upstream: Upstream, target: str, fields: bytes = b"", body: bytes = b"", method: str = "GET"
) -> Answer | Failure:
    """Send one read, once, and return its reply. `target` has the prefix, `fields` are whole header lines.

    Of a reply too large to be held the first part is returned.
    """
    timeout_s = upstream.destination.total_timeout_s
    connection = await upstream.connect(Lane.READ, timeout_s)
    if isinstance(connection, Failure):
        return connection
    length = content_length(len(body)) if body or method in STATES_LENGTH else b""
    request = b"".join((upstream.head(method, target), length, fields, b"\r\n", body))
    answer = await connection.exchange(request, timeout_s, is_head=False)
    if isinstance(answer, Answer) and answer.remainder is not None:
        answer.remainder.abandon()
    return answer
