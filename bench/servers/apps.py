"""Servers in Python that answer with NAME and the path they read: apps.py SERVER, PORT in the environment."""

# Each is imported by itself, from whichever Python has it.
# ruff: noqa: ARG005, N802, N815, PLC0415
# mypy: ignore-errors

import os
import sys
from collections.abc import Callable
from typing import Any

NAME, PORT = os.environ["NAME"].encode(), int(os.environ["PORT"])
HOST = "127.0.0.1"


def said(path: str | bytes) -> bytes:
    return NAME + b"\n" + (path if isinstance(path, bytes) else path.encode("utf-8", "surrogateescape"))


def wsgi(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    body = said((environ["SCRIPT_NAME"] + environ["PATH_INFO"]).encode("latin-1"))
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]


async def asgi(scope: dict[str, Any], receive: Callable[..., Any], send: Callable[..., Any]) -> None:
    if scope["type"] == "lifespan":
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})
        return
    body = said(scope["path"])
    fields = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    await send({"type": "http.response.body", "body": body})


def standard() -> None:
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = said(self.path.partition("?")[0].encode("latin-1"))
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    ThreadingHTTPServer((HOST, PORT), Handler).serve_forever()


def wsgiref() -> None:
    from wsgiref.simple_server import WSGIRequestHandler, make_server

    class Handler(WSGIRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    make_server(HOST, PORT, wsgi, handler_class=Handler).serve_forever()


def aiohttp() -> None:
    from aiohttp import web

    async def handle(request: web.Request) -> web.Response:
        return web.Response(body=said(request.path))

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    web.run_app(app, host=HOST, port=PORT, print=None)


def tornado() -> None:
    import asyncio

    from tornado.web import Application, RequestHandler

    class Handler(RequestHandler):
        def get(self) -> None:
            self.write(said(self.request.path))

    async def run() -> None:
        Application([(r".*", Handler)]).listen(PORT, HOST)
        await asyncio.Event().wait()

    asyncio.run(run())


def twisted() -> None:
    from twisted.internet import reactor
    from twisted.web.resource import Resource
    from twisted.web.server import Site

    class Root(Resource):
        isLeaf = True

        def render_GET(self, request: Any) -> bytes:
            return said(b"/" + b"/".join(request.postpath))

    reactor.listenTCP(PORT, Site(Root()), interface=HOST)
    reactor.run()


def sanic() -> None:
    from sanic import Sanic
    from sanic.response import raw

    app = Sanic("reader")

    @app.route("/<path:path>")
    async def handle(request: Any, path: str) -> Any:
        del path
        return raw(said(request.path))

    app.run(HOST, PORT, single_process=True, access_log=False, motd=False)


def werkzeug() -> None:
    from werkzeug.serving import run_simple

    run_simple(HOST, PORT, wsgi, threaded=True)


def gevent() -> None:
    from gevent.pywsgi import WSGIServer

    WSGIServer((HOST, PORT), wsgi, log=None).serve_forever()


def eventlet() -> None:
    import eventlet
    from eventlet import wsgi as server

    server.server(eventlet.listen((HOST, PORT)), wsgi, log_output=False)


def cheroot() -> None:
    from cheroot.wsgi import Server

    Server((HOST, PORT), wsgi).start()


def waitress() -> None:
    from waitress import serve

    serve(wsgi, host=HOST, port=PORT)


def flask() -> None:
    from flask import Flask, request
    from waitress import serve

    app = Flask("reader")
    app.add_url_rule("/<path:path>", view_func=lambda path: said(request.path), endpoint="path")
    serve(app, host=HOST, port=PORT)


def falcon() -> None:
    import falcon
    from waitress import serve

    def sink(request: Any, response: Any) -> None:
        response.data = said(request.path)

    app = falcon.App()
    app.add_sink(sink, "/")
    serve(app, host=HOST, port=PORT)


def starlette() -> None:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.responses import Response
    from starlette.routing import Route

    async def handle(request: Any) -> Response:
        return Response(said(request.path_params["path"]).replace(b"\n", b"\n/", 1))

    app = Starlette(routes=[Route("/{path:path}", handle)])
    uvicorn.run(app, host=HOST, port=PORT, log_level="critical")


if __name__ == "__main__":
    globals()[sys.argv[1]]()
