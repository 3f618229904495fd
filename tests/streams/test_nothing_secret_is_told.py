"""A stream's query and the listen key in its path are told to nobody but the exchange.

They are looked for in all that a gateway says of streams, whatever becomes of them: in its log at the level
debug, in its own replies, on its admin address, and in its journal.
"""

import io
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import structlog
from aiohttp import web

from rig.admin import Admin, running_admin
from rig.bot import bot_at
from rig.stream_lab import TOKENS, Lab, running_lab
from rig.stream_venue import HOST
from rig.wire import until
from sealgate.machine.system import System
from sealgate.observe.live import Live
from sealgate.observe.log import RequestLog, configure_log
from sealgate.observe.metrics import Metrics

CANARY = "cAnArY-0123456789"
QUERY = f"token={CANARY}&listenKey={CANARY}"
PATH = f"/{HOST}/ws/{CANARY}?{QUERY}"
PAGES = ("/metrics", "/status.json", "/requests.json", "/-/ready", "/", "/errors")


@dataclass
class Watched:
    """A gateway, and all that it says; what the exchange said is none of it."""

    lab: Lab
    admin: Admin
    log: io.StringIO
    journal: Path
    replies: list[str] = field(default_factory=list)

    async def refused(self, path: str, bot: str = "GRID", **headers: str) -> tuple[int, str]:
        """Ask for an upgrade that is refused; keep the reply if it is the gateway's own."""
        status, reason, text = await self.lab.refused(path, bot, **headers)
        if reason:
            self.replies.append(text)
        return status, reason

    async def raw(self, data: bytes) -> str:
        """Send bytes, and return why they are refused."""
        address = self.lab.gateway.address
        async with bot_at(address.host, address.port) as bot:
            reply = await bot.ask(data)
        self.replies.append(reply.raw.decode())
        return str(reply.reason)

    async def said(self) -> str:
        """Return everything, once all streams are over."""
        await until(lambda: len(self.lab.gateway.streams) == 0)
        self.lab.gateway.reporter.flush()
        pages = [(await self.admin.ask(page)).raw.decode() for page in PAGES]
        journal = [file.read_bytes().decode("latin-1") for file in self.journal.parent.glob("journal.db*")]
        return "\n".join([self.log.getvalue(), *self.replies, *pages, *journal])


@pytest.fixture(params=["json", "console"])
async def watched(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Watched]:
    log, before = io.StringIO(), structlog.get_config()
    configure_log("debug", request.param, System().wall, log)
    structlog.configure(cache_logger_on_first_use=False)
    (tmp_path / "kept").mkdir()
    journal = tmp_path / "kept" / "journal.db"
    try:
        async with running_lab(tmp_path, journal={"file": str(journal)}) as lab:
            status = lab.gateway.status
            metrics, live = Metrics(status), Live(status, System())
            for reader in (RequestLog(log), metrics, live):
                lab.gateway.reporter.add(reader)
            async with running_admin(status, metrics, live) as admin:
                yield Watched(lab, admin, log, journal)
    finally:
        structlog.configure(**before)


def upgrade(target: str, *lines: str) -> bytes:
    token = f"X-Gateway-Token: {TOKENS['GRID']}"
    fields = ("Host: 127.0.0.1", token, "Connection: Upgrade", "Upgrade: websocket", *lines)
    offer = ("Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==")
    return "\r\n".join((f"GET {target} HTTP/1.1", *fields, *offer, "", "")).encode()


async def is_open(watched: Watched) -> None:
    """Look at the page while it is open, too; the exchange closes it with words of its own."""

    async def react(stream: web.WebSocketResponse, data: object) -> None:
        del data
        await stream.close(code=4001, message=f"no such listenKey: {CANARY}".encode())

    watched.lab.exchange.react = react
    stream = await watched.lab.open(PATH)
    watched.replies += [(await watched.admin.ask(page)).raw.decode() for page in PAGES]
    await stream.send_str("anything")
    closed = await stream.receive()
    assert (closed.data, CANARY in str(closed.extra)) == (4001, True)
    await stream.close()
    assert CANARY in watched.lab.exchange.opened[0].path_qs


async def is_closed_by_the_bot(watched: Watched) -> None:
    stream = await watched.lab.open(PATH)
    await stream.close(code=4002, message=CANARY.encode())


async def has_an_order(watched: Watched) -> None:
    """One that is in doubt, which is on the page and in the journal; and one that is refused."""
    stream = await watched.lab.open(f"/{HOST}/private?{QUERY}")
    order = {"op": "order.place", "id": "1", "status": 500, "args": {"symbol": "BTC", "size": "1"}}
    await stream.send_json(order)
    await stream.receive()
    await stream.send_json({"op": "withdraw"})
    watched.replies.append(str((await stream.receive()).extra))
    await stream.close()
    said = await watched.said()
    assert "order.place" in said
    assert "stream_message_refused" in said


async def is_at_no_host(watched: Watched) -> None:
    assert await watched.refused(f"/nowhere.example/ws/{CANARY}?{QUERY}") == (404, "unknown_stream")
    assert await watched.refused(f"/ws/{CANARY}?{QUERY}") == (404, "unknown_stream")
    assert await watched.refused(f"/{CANARY}?{QUERY}") == (404, "unknown_stream")
    assert await watched.refused(f"/{HOST}/elsewhere/{CANARY}?{QUERY}") == (404, "unknown_stream")


async def is_refused_by_the_exchange(watched: Watched) -> None:
    """Its words are passed on to the bot, and to nobody else."""
    watched.lab.exchange.answer = lambda: web.Response(status=401, text=f"listenKey {CANARY} is unknown")
    status, reason, text = await watched.lab.refused(PATH)
    assert (status, reason, CANARY in text) == (401, "", True)


async def is_answered_with_no_websocket(watched: Watched) -> None:
    other = {"Upgrade": CANARY, "Connection": "Upgrade", "X-Why": CANARY}
    watched.lab.exchange.answer = lambda: web.Response(status=101, headers=other)
    assert await watched.refused(PATH) == (502, "upstream_broken")


async def is_ambiguous(watched: Watched) -> None:
    for target in (
        f"/{HOST}/ws/{CANARY}?token={CANARY}%zz",
        f"/{HOST}/ws/{CANARY}?token={CANARY}\x7f",
        f"/{HOST}/ws/{CANARY}?",
        f"/{HOST}/ws/{CANARY}?token={CANARY}%00",
        f"/{HOST}//ws/{CANARY}?{QUERY}",
        f"/{HOST}/ws/{CANARY}/../x?{QUERY}",
        f"/{HOST}/ws/{CANARY}%2f?{QUERY}",
    ):
        assert await watched.raw(upgrade(target)) in ("ambiguous_target", "bad_request"), target
    for before in ("wss://", "http://", "/http://"):
        reason = await watched.raw(upgrade(f"{before}{HOST}/ws/{CANARY}?{QUERY}"))
        assert reason in ("unknown_stream", "ambiguous_target"), before


async def is_no_upgrade(watched: Watched) -> None:
    """Ask as behind a proxy that drops the headers of the upgrade."""
    for bot in ("GRID", "EYE"):
        for method in ("GET", "POST"):
            token = f"X-Gateway-Token: {TOKENS[bot]}\r\nContent-Length: 0"
            request = f"{method} {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\n{token}\r\n\r\n"
            assert await watched.raw(request.encode()) == "upgrade_refused"
    assert watched.lab.exchange.opened == []
    assert await watched.refused(PATH, **{"Sec-WebSocket-Key": "short"}) == (400, "bad_request")
    assert await watched.raw(upgrade(PATH, f"No colon {CANARY}")) == "bad_request"


async def is_a_strangers(watched: Watched) -> None:
    assert await watched.refused(PATH, "") == (401, "bot_unauthenticated")
    assert await watched.refused(PATH, Origin="https://evil.example") == (403, "browser_refused")
    assert await watched.refused(PATH, Host="evil.example") == (421, "host_refused")


async def fails_inside(watched: Watched) -> None:
    """Look at the traceback that the log has of it."""
    watched.lab.gateway.streams.begin = _fail  # type: ignore[method-assign]
    assert await watched.refused(PATH) == (500, "internal_error")
    assert "internal_error" in await watched.said()


def _fail(stream: object) -> None:
    raise RuntimeError(type(stream).__name__)


@pytest.mark.parametrize(
    "happens",
    [
        is_open,
        is_closed_by_the_bot,
        has_an_order,
        is_at_no_host,
        is_refused_by_the_exchange,
        is_answered_with_no_websocket,
        is_ambiguous,
        is_no_upgrade,
        is_a_strangers,
        fails_inside,
    ],
)
async def test_nothing_secret_is_told(
    watched: Watched, happens: Callable[[Watched], Awaitable[None]]
) -> None:
    await happens(watched)
    said = await watched.said()
    assert "request" in watched.log.getvalue()
    assert CANARY not in said
    assert "listenKey" not in said
