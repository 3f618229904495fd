"""The gateway as a whole: it listens, keeps the clock, says how it is, and ends without losing a reply."""

import asyncio
import contextlib
import errno
import os
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp.http_parser
import structlog

from sealgate import __version__
from sealgate.config import Address, Config
from sealgate.core.status import Status, key_status
from sealgate.gateway.bookkeeping import Bookkeeping
from sealgate.gateway.bot_connection import Service
from sealgate.gateway.build import build_books, build_keeper, build_tree
from sealgate.gateway.handler import Handler
from sealgate.gateway.host import Host
from sealgate.gateway.journal import Keeper
from sealgate.gateway.pipeline import Pipeline
from sealgate.gateway.reporter import Reader, Reporter
from sealgate.gateway.server import BotServer
from sealgate.gateway.tree import Tree

log = structlog.get_logger("sealgate.gateway")

_BACKLOG = 1024
_CLOSING_S = 1.0


class StartError(Exception):
    """The gateway cannot start here. `str()` is one line: cause and fix."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """A running gateway. `address` is where it really listens (a free port may have been asked for)."""

    config: Config
    address: Address
    host: Host
    started: float
    tree: Tree
    books: Bookkeeping
    pipeline: Pipeline
    handler: Handler
    reporter: Reporter
    server: BotServer
    socket: asyncio.Server

    def status(self) -> Status:
        """Return the state of everything at this moment."""
        return Status(
            version=__version__,
            base_url=str(self.config.base_url),
            uptime_s=self.host.now() - self.started,
            not_ready=self._not_ready(),
            is_draining=self.pipeline.is_draining,
            inflight=self.handler.inflight,
            connections=len(self.server.connections),
            clock=self.tree.clock.status(),
            journal=self.books.status,
            keys=tuple(key_status(alias, desk.turnstile.status()) for alias, desk in self.tree.desks.items()),
        )

    def _not_ready(self) -> tuple[str, ...]:
        reasons = []
        if self.pipeline.is_draining:
            reasons.append("shutting down")
        if (clock := self.tree.clock.not_ready) is not None:
            reasons.append(clock)
        if (journal := self.books.status).is_refusing:
            reasons.append(f"the journal cannot be written: {journal.trouble}")
        return tuple(reasons)

    async def wait_until_ready(self, seconds: float) -> None:
        """Return when requests can be signed. Raises Refusal `clock_unsynced` where that is not in time."""
        shortest_ms = min(key.recv_window_ms for key in self.config.keys.values())
        await self.tree.clock.wait_until_good(self.host.now() + seconds, shortest_ms)

    async def drain(self) -> None:
        """Stop accepting, serve what may still come for the grace, answer what is in flight, close."""
        self.pipeline.is_draining = True
        self.socket.close()
        await self.server.wait_until_empty(self.config.listen.drain)
        limits = self.tree.limits
        await self.handler.wait_until_idle(limits.max_wait_s + limits.total_timeout_s)
        await self.server.close(_CLOSING_S)
        self.reporter.flush()


@contextlib.asynccontextmanager
async def running_gateway(
    config: Config, readers: tuple[Reader, ...] = (), environ: Mapping[str, str] | None = None
) -> AsyncIterator[Gateway]:
    """Run a gateway as long as the block lasts; it drains at its end.

    Raises SecretError where a secret cannot be read, JournalError where the journal cannot be used,
    StartError where it cannot listen.
    """
    _check_parser()
    host = Host()
    async with contextlib.AsyncExitStack() as ends:
        tree = build_tree(config, os.environ if environ is None else environ, host)
        ends.push_async_callback(tree.upstream.close)
        books = build_books(config, host)
        ends.push_async_callback(books.close)
        keeper = build_keeper(config, tree, host)
        if keeper is not None:
            ends.push_async_callback(keeper.keep)
        reporter = Reporter(readers)
        pipeline = Pipeline(tree, books, host)
        handler = Handler(pipeline, books, host, reporter.report)
        service = Service(handler.handle, handler.refuse_malformed, config.listen.head_timeout)
        server = BotServer(service, config.listen.max_connections)
        await ends.enter_async_context(_in_background(*_work(config, tree, keeper)))
        socket = await listen(server, config.listen.tcp or Address("127.0.0.1", 0), "listen.tcp")
        address = Address(*socket.sockets[0].getsockname()[:2])
        gateway = Gateway(
            config, address, host, host.now(), tree, books, pipeline, handler, reporter, server, socket
        )
        ends.push_async_callback(gateway.drain)
        yield gateway


def _work(config: Config, tree: Tree, keeper: Keeper | None) -> Iterator[Coroutine[Any, Any, None]]:
    """Return what goes on in the background."""
    yield tree.clock_keeper.run()
    if config.upstream.warm:
        yield tree.upstream.keep_warm()
    if keeper is not None:
        yield keeper.run()


@contextlib.asynccontextmanager
async def _in_background(*work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run `work` as long as the block lasts."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def listen(server: BotServer, address: Address, setting: str) -> asyncio.Server:
    """Listen at an address. Raises StartError naming the setting."""
    loop = asyncio.get_running_loop()
    try:
        return await loop.create_server(server, address.host, address.port, backlog=_BACKLOG)
    except OSError as error:
        raise cannot_listen(address, setting, error) from None


def cannot_listen(address: Address, setting: str, error: OSError) -> StartError:
    """Return the error of an address that cannot be had."""
    return StartError(f"cannot listen on {address}: {_cause(error)}; set {setting} to another one")


def _cause(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "another program listens there"
    return error.strerror or str(error)


def _check_parser() -> None:
    """Refuse aiohttp's pure-Python parser, which judges some malformed requests otherwise."""
    if aiohttp.http_parser.HttpRequestParser is aiohttp.http_parser.HttpRequestParserPy:
        raise StartError(
            "aiohttp runs without its C parser here; install its binary wheel, unset AIOHTTP_NO_EXTENSIONS"
        )
