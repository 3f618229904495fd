"""What streams through the gateway are measured against: the usual small aiohttp proxy of WebSockets.

It passes messages on and does nothing else: stream_proxy.py BASE_URL. Prints its port.
"""

import asyncio
import sys
from collections.abc import AsyncIterator

import uvloop
from aiohttp import ClientSession, ClientWebSocketResponse, TCPConnector, WSMsgType, web

from bench.bare_proxy import serve

SESSION = web.AppKey("SESSION", ClientSession)
End = ClientWebSocketResponse | web.WebSocketResponse


async def pass_on(request: web.Request) -> web.WebSocketResponse:
    session = request.app[SESSION]
    async with session.ws_connect(request.raw_path, autoping=False, compress=0, max_msg_size=0) as exchange:
        bot = web.WebSocketResponse(autoping=False, compress=False, max_msg_size=0)
        await bot.prepare(request)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(relay(bot, exchange))
            tasks.create_task(relay(exchange, bot))
        return bot


async def relay(source: End, target: End) -> None:
    code, reason = 1012, b"gone"
    while True:
        message = await source.receive()
        try:
            if message.type is WSMsgType.TEXT:
                await target.send_str(message.data)
            elif message.type is WSMsgType.BINARY:
                await target.send_bytes(message.data)
            elif message.type is WSMsgType.PING:
                await target.ping(message.data)
            elif message.type is WSMsgType.PONG:
                await target.pong(message.data)
            else:
                if message.type is WSMsgType.CLOSE:
                    code, reason = message.data or 1000, (message.extra or "").encode()
                break
        except ConnectionError:
            break
    await target.close(code=code, message=reason)


async def session(app: web.Application) -> AsyncIterator[None]:
    async with ClientSession(sys.argv[1], connector=TCPConnector(limit=0)) as app[SESSION]:
        yield


async def main() -> None:
    app = web.Application()
    app.cleanup_ctx.append(session)
    app.router.add_get("/{path:.*}", pass_on)
    await serve(web.AppRunner(app, access_log=None))


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as running:
        running.run(main())
