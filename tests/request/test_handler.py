"""One request from its head to its record, where something fails that no rule foresees."""

import json
from types import SimpleNamespace
from typing import Any, Self

import pytest
from structlog.testing import capture_logs

from rig.compiled import needs_sources
from rig.hand_host import HandHost
from rig.scene import Scene, Wire, scene_on
from sealgate.errors import Refusal
from sealgate.http.server import Incoming
from sealgate.keys.bot import Bot
from sealgate.orders.idempotency import IdempotencyKeys, ReplayBounds
from sealgate.orders.outcome import Conclusion, Outcome
from sealgate.request import handler as handler_module
from sealgate.request.bookkeeping import Bookkeeping
from sealgate.request.context import InFlightRequests, RequestContext
from sealgate.request.handler import Handler
from sealgate.request.replies import Reply

BOT = Bot("grid", ("main",), frozenset())

pytestmark = needs_sources


class Carrying:
    """A pipeline that ends each request in one way."""

    halting = SimpleNamespace(is_draining=False)

    def __init__(self, end: Reply | Exception, bot: Bot | None) -> None:
        self._end = end
        self._bot = bot

    def choose(self, request: Incoming, listener: str | None, context: RequestContext) -> tuple[Self, str]:
        del listener, context
        return self, request.head.target

    def errors_of(self, target: str, own: str) -> None:
        del target, own

    async def carry(self, request: Incoming, target: str, context: RequestContext) -> Reply:
        del request, target
        context.bot = None if self._bot is None else self._bot.name
        if isinstance(self._end, Exception):
            raise self._end
        context.conclusion = Conclusion.DONE
        return self._end


class Desk:
    """A handler, and what it reported: of each request the reason and the status."""

    def __init__(self, end: Reply | Exception, bot: Bot | None = BOT) -> None:
        self.reported: list[tuple[str | None, int, Conclusion]] = []
        self.in_flight = InFlightRequests()
        host, pipeline = HandHost(), Carrying(end, bot)
        carrier: Any = pipeline
        books = Bookkeeping(IdempotencyKeys(ReplayBounds(1, 1, 1.0)), None, host)
        self.handler = Handler(carrier, self.in_flight, books, host, self._report, self._opens)

    async def _opens(self, *_: object) -> Reply:
        raise Refusal("unknown_stream", "No stream is opened here.")

    def _report(self, outcome: Outcome) -> None:
        self.reported.append((outcome.reason, outcome.status, outcome.conclusion))


@pytest.fixture
async def scene() -> Scene:
    return scene_on(Wire())


def document(scene: Scene) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(scene.wire.written.partition(b"\r\n\r\n")[2])
    return found


async def test_a_fault_of_our_own_is_a_problem_and_a_line_in_the_log(scene: Scene) -> None:
    desk = Desk(ZeroDivisionError("s3cret"))
    with capture_logs() as logs:
        assert await desk.handler.handle(scene.request())
    assert (document(scene)["status"], document(scene)["reason"]) == (500, "internal_error")
    assert b"s3cret" not in scene.wire.written
    assert [line["event"] for line in logs] == ["internal_error"]
    assert desk.reported == [("internal_error", 500, Conclusion.NOT_SENT)]


async def test_it_is_answered_also_where_the_log_is_what_fails(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    class FullDisk:
        def exception(self, *_: object, **__: object) -> None:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(handler_module, "log", FullDisk())
    assert await Desk(ZeroDivisionError()).handler.handle(scene.request())
    assert document(scene)["reason"] == "internal_error"


async def test_one_that_goes_before_there_is_a_reply_too(scene: Scene) -> None:
    desk = Desk(ConnectionResetError())
    assert not await desk.handler.handle(scene.request())
    assert desk.reported == [(None, 499, Conclusion.NOT_SENT)]
    assert scene.wire.written == b""
