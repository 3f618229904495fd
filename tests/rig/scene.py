"""A bot on a wire that keeps what is written, and the connection to the upstream behind it."""

import asyncio
import math
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sealgate.errors import Refusal
from sealgate.exchange.answer import Remainder
from sealgate.http.flow import Body
from sealgate.http.parser import RequestHead
from sealgate.http.places import Places
from sealgate.http.server import Incoming, ServerConnection, Service


class Wire(asyncio.Transport):
    """A transport that keeps what is written, and how it ends; each write may have a consequence."""

    def __init__(self, sock: socket.socket | None = None) -> None:
        super().__init__({"socket": sock})
        self.written = b""
        self.is_aborted = False
        self.then: Callable[[], None] = lambda: None

    def write(self, data: Any) -> None:
        self.written += data
        self.then()

    def is_closing(self) -> bool:
        return self.is_aborted

    def abort(self) -> None:
        self.is_aborted = True

    def resume_reading(self) -> None:
        """Read on: nothing comes."""


class Upstreams:
    """A connection of the upstream's, as far as a large reply holds it."""

    def __init__(self) -> None:
        self.ends: list[str] = []
        self.is_wanted = False

    def remainder(
        self, content: Body, ends_at: float, is_wanted: Callable[[], bool] | None = None
    ) -> Remainder:
        return Remainder(
            content,
            ends_at,
            lambda: self.ends.append("released"),
            lambda: self.ends.append("closed"),
            is_wanted or (lambda: self.is_wanted),
        )


@dataclass(frozen=True)
class Scene:
    """A bot on a wire, and the upstream's connection behind it."""

    wire: Wire
    bot: ServerConnection
    upstream: Upstreams

    def request(
        self, method: str = "GET", version: tuple[int, int] = (1, 1), *, should_close: bool = False
    ) -> Incoming:
        """Return a request whose body was read."""
        head = RequestHead(method, "/v1/trade/x", version, ())
        head.keep_alive = not should_close
        return Incoming(head, Body(self.bot, b""), self.bot)

    def content(self) -> Body:
        """Return a body of which nothing has come yet."""
        return Body(self.bot)

    def remainder(
        self, *chunks: bytes, error: Exception | None = None, ends_at: float = math.inf
    ) -> Remainder:
        """Return what is left of a large reply: the chunks, then its end or an error."""
        content = self.content()
        for chunk in chunks:
            content.feed(chunk)
        if error is None:
            content.end()
        else:
            content.fail(error)
        return self.upstream.remainder(content, ends_at)


def scene_on(wire: Wire) -> Scene:
    nobody: Any = None
    places = Places(1, Refusal("queue_full", ""))
    bot = ServerConnection(Service(nobody, nobody, head_timeout_s=math.inf), set(), places)
    bot.transport = wire
    return Scene(wire, bot, Upstreams())
