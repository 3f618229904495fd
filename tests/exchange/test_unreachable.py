"""Why there is no connection, in words that name the cause: what a user reads first when nothing works."""

import asyncio
import socket
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from rig.acts import say_and_close
from rig.connections import ask, connections_to, port_of
from rig.tls import Authority
from rig.upstream import running_upstream
from rig.wire import PATIENCE_S, chunked, let_pass
from sealgate.exchange.connection import UpstreamConnection
from sealgate.exchange.destination import Destination
from sealgate.exchange.failure import Failure, FailureKind
from sealgate.exchange.pool import Upstream
from sealgate.venues.routes import Lane


async def failure_at(base_url: str, ca_file: Path | None = None) -> Failure:
    upstream = Upstream(Destination(base_url, 5.0, 5.0, 1, ca_file))
    try:
        failure = await upstream.connect(Lane.READ, 5.0)
    finally:
        await upstream.close()
    assert isinstance(failure, Failure)
    assert failure.kind is FailureKind.UNREACHABLE
    return failure


async def test_nobody_listens() -> None:
    server, port = await port_of()
    server.close()
    await server.wait_closed()
    failure = await failure_at(f"http://127.0.0.1:{port}")
    assert failure.detail == f"cannot connect to 127.0.0.1:{port}: Connection refused"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (socket.EAI_NONAME, "no such host name"),
        (
            socket.EAI_AGAIN,
            "its name cannot be resolved at the moment: the DNS servers do not answer",
        ),
        (socket.EAI_FAIL, "its name cannot be resolved (as the resolver says)"),
    ],
)
async def test_a_name_that_cannot_be_looked_up(
    monkeypatch: pytest.MonkeyPatch, code: int, words: str
) -> None:
    def getaddrinfo(*_: Any, **__: Any) -> None:
        raise socket.gaierror(code, "as the resolver says")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    failure = await failure_at("http://exchange.invalid")
    assert failure.detail == f"cannot connect to exchange.invalid:80: {words}"


@pytest.mark.parametrize(
    ("name", "is_known", "words"),
    [
        pytest.param("127.0.0.1", False, "unable to get local issuer certificate", id="unknown authority"),
        pytest.param("localhost", True, "IP address mismatch", id="another name"),
    ],
)
async def test_a_certificate_that_is_refused(
    authority: Authority, tmp_path: Path, *, name: str, is_known: bool, words: str
) -> None:
    server, port = await port_of(authority.server_context(name))
    with closing(server):
        ca_file = Path(authority.write(tmp_path)) if is_known else None
        failure = await failure_at(f"https://127.0.0.1:{port}", ca_file)
    assert words in failure.detail
    assert failure.detail.endswith("see upstream.ca_file")


async def test_no_tls_on_that_port() -> None:
    async def speak_http(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(speak_http, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with closing(server):
        failure = await failure_at(f"https://127.0.0.1:{port}")
    assert f"cannot connect to 127.0.0.1:{port}: it does not speak TLS as expected" in failure.detail


async def test_a_connection_that_is_dead_when_it_is_there() -> None:
    """The end of it came before anybody could use it."""
    loop = asyncio.get_running_loop()
    connect = loop.create_connection

    async def connect_and_rest(*arguments: Any, **more: Any) -> tuple[asyncio.Transport, UpstreamConnection]:
        transport, connection = await connect(*arguments, **more)
        async with asyncio.timeout(PATIENCE_S):
            while connection.transport is not None:
                await let_pass(0)
        return transport, connection

    server, port = await port_of()
    with closing(server), patch.object(loop, "create_connection", connect_and_rest):
        failure = await failure_at(f"http://127.0.0.1:{port}")
    assert failure.detail == "the connection was closed immediately"


SAID = {
    "nothing": (b"", "the connection was closed without a reply"),
    "a part of the body": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
        "the reply was cut off",
    ),
    "no HTTP": (b"SSH-2.0-x\r\n\r\n", "the reply is not HTTP"),
    "interim replies": (
        b"HTTP/1.1 103 Early Hints\r\n\r\n" * 17,
        "it sent endless interim replies (1xx)",
    ),
    "another protocol": (
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
        "it switched to another protocol (101) without being asked",
    ),
    "a length of nineteen digits": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 1%b\r\n\r\n" % (b"0" * 18),
        "the reply states an impossible length",
    ),
    "another coding": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n" + chunked(b"ab"),
        "the reply has a transfer coding other than chunked",
    ),
}


@pytest.mark.parametrize(("said", "words"), SAID.values(), ids=SAID)
async def test_a_reply_that_is_not_taken_is_told_with_its_cause(said: bytes, words: str) -> None:
    async with running_upstream() as server, connections_to(server.port) as upstream:
        server.answers.append(say_and_close(said))
        assert await ask(upstream) == Failure(FailureKind.LOST, words)
