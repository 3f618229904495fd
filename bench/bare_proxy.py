"""What the gateway is measured against: the usual small aiohttp proxy, which does nothing but pass on.

No checks, no signature, no pause, no metrics, no log: bare_proxy.py BASE_URL [CA_FILE]. Prints its port.
"""

import asyncio
import ssl
import sys
from collections.abc import AsyncIterator

import uvloop
from aiohttp import ClientSession, TCPConnector, web

HOP_BY_HOP = {"connection", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
SESSION = web.AppKey("SESSION", ClientSession)


async def pass_on(request: web.Request) -> web.StreamResponse:
    headers = [(name, value) for name, value in request.headers.items() if name.lower() not in HOP_BY_HOP]
    async with request.app[SESSION].request(
        request.method, request.raw_path, headers=headers, data=await request.read(), allow_redirects=False
    ) as reply:
        fields = [(name, value) for name, value in reply.headers.items() if name.lower() not in HOP_BY_HOP]
        response = web.StreamResponse(status=reply.status, reason=reply.reason)
        response.headers.extend(fields)
        await response.prepare(request)
        async for chunk in reply.content.iter_any():
            await response.write(chunk)
        await response.write_eof()
        return response


async def session(app: web.Application) -> AsyncIterator[None]:
    trusted = ssl.create_default_context(cafile=sys.argv[2]) if sys.argv[2:] else True
    connector = TCPConnector(limit=32, ssl=trusted)
    async with ClientSession(sys.argv[1], connector=connector, auto_decompress=False) as app[SESSION]:
        yield


async def main() -> None:
    app = web.Application()
    app.cleanup_ctx.append(session)
    app.router.add_route("*", "/{path:.*}", pass_on)
    await serve(web.AppRunner(app, access_log=None))


async def serve(runner: web.BaseRunner) -> None:
    """Listen at a free port, print it, and serve until killed."""
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as running:
        running.run(main())
