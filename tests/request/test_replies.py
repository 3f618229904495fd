"""Replies as they are written: where the body ends (RFC 9112 section 6.3), and what a cut one looks like."""

import json
import math
import socket

import pytest

from rig.scene import Scene, Wire, scene_on
from sealgate.errors import REASONS, Refusal
from sealgate.exchange.answer import BrokenReplyError
from sealgate.request import replies
from sealgate.request.replies import Reply, problem, write_reply

NOTES = b"X-Gateway-Attempts: 1\r\n"
WALL = 1_790_000_000.0


@pytest.fixture
async def scene() -> Scene:
    return scene_on(Wire())


HEAD = b"HTTP/1.1 200 OK\r\nX-Gateway-Attempts: 1\r\n"
NO_CONTENT = b"HTTP/1.1 204 No Content\r\nX-Gateway-Attempts: 1\r\n"
NOT_MODIFIED = b"HTTP/1.1 304 Not Modified\r\nX-Gateway-Attempts: 1\r\n"


def ok(body: bytes = b"", length: bytes | None = None) -> Reply:
    return Reply(200, "OK", (), body, None, length)


WHOLE = {
    "a body": ("GET", ok(b"abc"), HEAD + b"Content-Length: 3\r\n\r\nabc"),
    "an empty body": ("GET", ok(), HEAD + b"Content-Length: 0\r\n\r\n"),
    "HEAD with a length": ("HEAD", ok(length=b"12"), HEAD + b"Content-Length: 12\r\n\r\n"),
    "HEAD without a length": ("HEAD", ok(), HEAD + b"\r\n"),
    "HEAD with a problem's body": ("HEAD", ok(b"abc"), HEAD + b"\r\n"),
    "204": ("GET", Reply(204, "No Content", (), b""), NO_CONTENT + b"\r\n"),
    "204 with a length, which it must not have": (
        "GET",
        Reply(204, "No Content", (), b"", None, b"5"),
        NO_CONTENT + b"\r\n",
    ),
    "304 with the length of what was not sent": (
        "GET",
        Reply(304, "Not Modified", (), b"", None, b"12"),
        NOT_MODIFIED + b"Content-Length: 12\r\n\r\n",
    ),
    "304 without a length": ("GET", Reply(304, "Not Modified", (), b""), NOT_MODIFIED + b"\r\n"),
}


@pytest.mark.parametrize(("method", "reply", "written"), WHOLE.values(), ids=WHOLE)
async def test_a_whole_reply(scene: Scene, method: str, reply: Reply, written: bytes) -> None:
    assert await write_reply(scene.request(method), reply, NOTES, is_last=False)
    assert scene.wire.written == written


STREAMED = {
    "its length was stated": (b"6", (1, 1), b"Content-Length: 6\r\n\r\nabcdef", True),
    "chunked": (None, (1, 1), b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n4\r\ncdef\r\n0\r\n\r\n", True),
    "to the end of the connection": (None, (1, 0), b"Connection: close\r\n\r\nabcdef", False),
}


@pytest.mark.parametrize(("length", "version", "written", "may_stay"), STREAMED.values(), ids=STREAMED)
async def test_a_large_reply(
    scene: Scene, length: bytes | None, version: tuple[int, int], written: bytes, *, may_stay: bool
) -> None:
    reply = Reply(200, "OK", (), b"ab", scene.remainder(b"cdef"), length)
    request = scene.request(version=version)
    assert await write_reply(request, reply, NOTES, is_last=False) is may_stay
    assert scene.wire.written == HEAD + written
    assert scene.upstream.ends == ["released"]


async def test_a_large_reply_whose_first_part_is_empty_is_not_ended_by_it(scene: Scene) -> None:
    """A chunk of no bytes would be the end of the body (RFC 9112 section 7.1)."""
    reply = Reply(200, "OK", (), b"", scene.remainder(b"cdef"))
    await write_reply(scene.request(), reply, NOTES, is_last=False)
    assert scene.wire.written.endswith(b"chunked\r\n\r\n4\r\ncdef\r\n0\r\n\r\n")


STAYS = {
    "1.1": ((1, 1), False, b"", True),
    "1.1, the bot closes": ((1, 1), True, b"Connection: close\r\n", False),
    "1.0, which has to be told": ((1, 0), False, b"Connection: keep-alive\r\n", True),
    "1.0, the bot closes": ((1, 0), True, b"Connection: close\r\n", False),
}


@pytest.mark.parametrize(("version", "should_close", "line", "stays"), STAYS.values(), ids=STAYS)
async def test_whether_the_connection_stays(
    scene: Scene, version: tuple[int, int], line: bytes, *, should_close: bool, stays: bool
) -> None:
    request = scene.request(version=version, should_close=should_close)
    assert await write_reply(request, ok(), NOTES, is_last=False) is stays
    assert scene.wire.written == HEAD + b"Content-Length: 0\r\n" + line + b"\r\n"


async def test_a_connection_with_an_unread_body_is_closed(scene: Scene) -> None:
    """What follows would be read as the next request."""
    request = scene.request("POST")
    request.body = scene.content()
    assert not await write_reply(request, Reply(413, "Too Large", (), b""), NOTES, is_last=False)
    assert b"Connection: close\r\n" in scene.wire.written


@pytest.mark.parametrize(("version", "length"), [((1, 1), b"9"), ((1, 0), None)])
async def test_a_reply_that_is_cut_resets_the_bots_connection(
    scene: Scene, version: tuple[int, int], length: bytes | None
) -> None:
    """In HTTP/1.0 the end of the connection is that of the body: only a reset says that it is none."""
    cut = scene.remainder(error=OSError(104, "Connection reset by peer"))
    reply = Reply(200, "OK", (), b"ab", cut, length)
    with pytest.raises(BrokenReplyError, match="Connection reset by peer"):
        await write_reply(scene.request(version=version), reply, NOTES, is_last=False)
    assert scene.wire.is_aborted
    assert scene.upstream.ends == ["closed"]


async def test_a_bot_that_goes_leaves_no_connection_held(scene: Scene) -> None:
    scene.wire.then = scene.wire.abort
    reply = Reply(200, "OK", (), b"ab", scene.remainder(b"cd"))
    with pytest.raises(ConnectionResetError, match="the client is gone"):
        await write_reply(scene.request(), reply, NOTES, is_last=False)
    assert scene.upstream.ends == ["closed"]


async def test_where_a_cut_would_look_like_the_end_a_large_reply_is_not_begun() -> None:
    """A Unix socket knows no reset, and HTTP/1.0 no other end of a body without a length than that."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        scene = scene_on(Wire(ours))
        reply = Reply(200, "OK", (), b"ab", scene.remainder(b"cd"))
        with pytest.raises(BrokenReplyError, match=r"HTTP/1\.0 on a Unix socket"):
            await write_reply(scene.request(version=(1, 0)), reply, NOTES, is_last=False)
        assert (scene.wire.written, scene.upstream.ends) == (b"", ["closed"])


async def test_a_bot_that_reads_nothing_holds_the_upstream_no_longer_than_its_time(scene: Scene) -> None:
    scene.bot.pause_writing()
    reply = Reply(200, "OK", (), b"ab", scene.remainder(b"cd", ends_at=0.0))
    with pytest.raises(BrokenReplyError, match="the bot does not read it"):
        await write_reply(scene.request(), reply, NOTES, is_last=False)
    assert (scene.wire.is_aborted, scene.upstream.ends) == (True, ["closed"])


async def test_nor_does_it_where_others_wait_for_a_connection(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replies, "_PATIENCE_S", 0.0)
    scene.bot.pause_writing()
    scene.upstream.is_wanted = True
    reply = Reply(200, "OK", (), b"ab", scene.remainder(b"cd"))
    with pytest.raises(BrokenReplyError, match="the bot does not read it"):
        await write_reply(scene.request(), reply, NOTES, is_last=False)
    assert scene.upstream.ends == ["closed"]


async def test_a_slow_bot_is_waited_for_where_nobody_else_does(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads again only after it was given up once, if anybody else had waited."""
    monkeypatch.setattr(replies, "_PATIENCE_S", 0.0)
    asked: list[str] = []

    def is_wanted() -> bool:
        asked.append("is_wanted")
        scene.bot.resume_writing()
        return False

    content = scene.content()
    content.feed(b"cd")
    content.end()
    scene.bot.pause_writing()
    patient = scene.upstream.remainder(content, math.inf, is_wanted)
    reply = Reply(200, "OK", (), b"ab", patient, b"4")
    assert await write_reply(scene.request(), reply, NOTES, is_last=False)
    assert scene.wire.written.endswith(b"\r\n\r\nabcd")
    assert (asked, scene.upstream.ends) == (["is_wanted"], ["released"])


@pytest.mark.parametrize("slug", REASONS)
def test_every_refusal_is_a_problem_document(slug: str) -> None:
    reply = problem(Refusal(slug, "This is wrong."), "r-1", WALL)
    document = json.loads(reply.body)
    assert (reply.status, document["status"]) == (REASONS[slug].status,) * 2
    assert document["type"] == f"urn:sealgate:problem:{slug}"
    assert document["detail"] == f"This is wrong. {REASONS[slug].advice}"
    assert document["timestamp"] == "2026-09-21T14:13:20.000+00:00"
    assert (document["reason"], document["request_id"]) == (slug, "r-1")
    assert (b"X-Gateway-Error", slug.encode()) in reply.fields


def test_a_status_that_calls_for_a_field_has_it() -> None:
    slugs = ("bot_unauthenticated", "method_refused")
    unknown, method = (problem(Refusal(slug, "x"), "r-1", WALL) for slug in slugs)
    assert (b"WWW-Authenticate", b'Basic realm="sealgate"') in unknown.fields
    assert (b"Allow", b"GET, HEAD, POST, PUT, PATCH, DELETE") in method.fields


WAITS = {
    "none": (None, None),
    "at once": (0.0, b"0"),
    "a part of a second, rounded up": (1.2, b"2"),
    "longer than anybody writes": (1e12, b"1000000000"),
}


@pytest.mark.parametrize(("wait_s", "value"), WAITS.values(), ids=WAITS)
def test_how_long_to_wait(wait_s: float | None, value: bytes | None) -> None:
    fields = dict(problem(Refusal("rate_limited", "x", retry_after_s=wait_s), "r-1", WALL).fields)
    assert fields.get(b"Retry-After") == value
