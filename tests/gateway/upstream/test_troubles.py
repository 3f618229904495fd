"""What is said of a reply that is none: its cause, as an operator reads it."""

import pytest

from gateway.upstream.test_warm_connections import ask, connections_to
from rig.acts import say_and_close
from rig.upstream import running_upstream
from rig.wire import chunked
from sealgate.core.attempts import Failure, FailureKind

SAID = {
    "nothing": (b"", "the connection was closed without a reply"),
    "a part of the body": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
        "the reply was cut short",
    ),
    "no HTTP": (b"SSH-2.0-x\r\n\r\n", "the reply is not HTTP"),
    "interim replies": (
        b"HTTP/1.1 103 Early Hints\r\n\r\n" * 17,
        "it sent endless interim replies (1xx)",
    ),
    "another protocol": (
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
        "it switched to another protocol (101) unasked",
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
