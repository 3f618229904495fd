"""What `aiohttp.web` alone costs: its low-level server, with the gateway's own connections behind it.

It passes on and does nothing else, like bare_proxy.py, but without what is dear there: ClientSession and
web.Application. low_level_proxy.py BASE_URL [CA_FILE]. Prints its port.
"""

import asyncio
import sys
from pathlib import Path

import uvloop
from aiohttp import web

from bench.bare_proxy import HOP_BY_HOP, serve
from sealgate.exchange.destination import Destination
from sealgate.exchange.failure import Failure
from sealgate.exchange.pool import Upstream
from sealgate.venues.routes import Lane

DROPPED = {name.encode() for name in (*HOP_BY_HOP, "content-length")}
TIMEOUT_S = 10.0


async def main() -> None:
    ca_file = Path(sys.argv[2]) if sys.argv[2:] else None
    upstream = Upstream(Destination(sys.argv[1], TIMEOUT_S, TIMEOUT_S, 64, ca_file))

    async def pass_on(request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        fields = [b"%b: %b\r\n" % field for field in request.raw_headers if field[0].lower() not in DROPPED]
        head = upstream.head(request.method, request.raw_path) + b"".join(fields)
        connection = upstream.take(Lane.ORDER) or await upstream.connect(Lane.ORDER, TIMEOUT_S)
        if isinstance(connection, Failure):
            raise web.HTTPBadGateway(text=connection.detail)
        data = b"%bContent-Length: %d\r\n\r\n%b" % (head, len(body), body)
        answer = await connection.exchange(data, TIMEOUT_S, is_head=False)
        if isinstance(answer, Failure) or answer.remainder is not None:
            raise web.HTTPBadGateway(text="cut, or too large for this")
        passed = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in answer.head.passed]
        return web.Response(status=answer.status, reason=answer.phrase, headers=passed, body=answer.body)

    await serve(web.ServerRunner(web.Server(pass_on, access_log=None)))


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as running:
        running.run(main())
