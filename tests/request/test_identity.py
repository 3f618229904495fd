"""Who a bot is, on real sockets: by its user, by its token, and what wrong tokens cost."""

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest

from rig.bot import Reply, request
from rig.listeners import bot_on, needs_root, open_folder, unix_connection
from rig.station import ENVIRON, Station, running_station
from rig.upstream import Upstream
from rig.wire import PATIENCE_S
from sealgate.request import strangers
from sealgate.request.strangers import FREE

GRID, WATCH, NOBODY = 4711, 4712, 4713
ENVIRONMENT = {**ENVIRON, "GRID": "grid-token", "WATCH": "watch-token"}
ORDER = request(b"POST", b"/v1/trade/order", body=b"{}")


def with_token(token: str, raw: bytes = ORDER) -> bytes:
    head, _, body = raw.partition(b"\r\n\r\n")
    return head + f"\r\nAuthorization: Bearer {token}\r\n\r\n".encode() + body


async def reply_on_unix(path: Path, user: int | None, raw: bytes) -> Reply:
    async with bot_on(unix_connection(path, user, 0)) as bot:
        return await bot.ask(raw)


@needs_root
async def test_bots_by_user_and_by_token_on_one_socket(upstream: Upstream) -> None:
    bots: dict[str, Any] = {
        "grid": {"uid": GRID},
        "watch": {"uid": WATCH, "token": "env:WATCH", "may": ["read"]},
    }
    cases = [
        (GRID, ORDER, 200),
        (GRID, with_token("watch-token"), 403),
        (GRID, with_token("wrong"), 401),
        (WATCH, ORDER, 403),
        (WATCH, request(), 200),
        (NOBODY, request(), 401),
        (NOBODY, with_token("watch-token", request()), 200),
        (None, request(), 401),  # root may connect, and is no bot
    ]
    with open_folder() as folder:
        path = folder / "bots.sock"
        listen = {"unix": str(path), "unix_mode": "0660", "unix_group": 0}
        async with running_station(upstream, ENVIRONMENT, listen=listen, bots=bots) as station:
            for number, (user, raw, status) in enumerate(cases):
                assert (await reply_on_unix(path, user, raw)).status == status, number
            assert (await station.ask(request())).status == 401
            assert (await station.ask(with_token("watch-token", request()))).status == 200
    assert all(b"authorization" not in got.raw.lower() for got in upstream.received)


async def test_a_client_that_signs_with_authorization_sends_its_token_beside_it(
    upstream: Upstream, bots: dict[str, Any]
) -> None:
    venue: dict[str, Any] = {"venue": "deribit", "clock": {"required": False, "grace": 0}}
    signed = "Authorization: deri-hmac-sha256 id=made-up,ts=1,sig=made-up,nonce=1"
    async with running_station(upstream, ENVIRONMENT, bots=bots, synced=False, **venue) as station:
        for token, status in (("X-Gateway-Token: grid-token", 200), ("X-Gateway-Token: wrong", 401)):
            fields = [signed.encode(), token.encode()]
            reply = await station.ask(request(b"GET", b"/api/v2/private/get_positions", *fields))
            assert reply.status == status
    (sent,) = [one for one in upstream.received if b"get_positions" in one.target]
    assert b"grid-token" not in sent.raw
    assert b"made-up" not in sent.raw
    assert b"x-gateway" not in sent.raw.lower()
    assert [value[:17] for name, value in sent.fields if name == b"Authorization"] == [b"deri-hmac-sha256 "]


async def flood(station: Station, count: int, raw: bytes) -> list[Reply]:
    return await asyncio.gather(*(station.ask(raw) for _ in range(count)))


@pytest.fixture
def bots() -> dict[str, Any]:
    return {"grid": {"token": "env:GRID"}}


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold answers back for longer than a test waits for anything."""
    monkeypatch.setattr(strangers, "HELD_BACK_S", 10 * PATIENCE_S)


@pytest.mark.usefixtures("patience")
async def test_wrong_tokens_are_held_back_and_a_right_one_passes(
    upstream: Upstream, bots: dict[str, Any]
) -> None:
    async with running_station(upstream, ENVIRONMENT, bots=bots) as station:
        for reply in await flood(station, FREE, with_token("wrong")):
            assert (reply.status, reply.text("WWW-Authenticate") is not None) == (401, True)
        held = [asyncio.create_task(station.ask(with_token("wrong"))) for _ in range(20)]
        await station.until(lambda: station.gateway.handler.inflight == len(held))
        assert (await station.ask(with_token("grid-token"))).status == 200
        assert not any(one.done() for one in held)
        for one in held:
            one.cancel()
        await asyncio.gather(*held, return_exceptions=True)


async def test_who_is_held_back_is_answered_in_the_end(
    upstream: Upstream, bots: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strangers, "HELD_BACK_S", 0.01)
    async with running_station(upstream, ENVIRONMENT, bots=bots) as station:
        replies = await flood(station, 2 * FREE, with_token("wrong"))
    assert {(reply.status, reply.reason) for reply in replies} == {(401, "bot_unauthenticated")}


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("field", ["X-Gateway-Token: wrong", "x_gateway.token: wrong", "AUTHORIZATION: x"])
async def test_a_wrong_token_is_held_back_wherever_it_stands(
    upstream: Upstream, bots: dict[str, Any], field: str
) -> None:
    async with running_station(upstream, ENVIRONMENT, bots=bots) as station:
        raw = request(b"GET", b"/v1/trade/orders", field.encode())
        await flood(station, FREE, raw)
        held = asyncio.create_task(station.ask(raw))
        await station.until(lambda: station.gateway.handler.inflight == 1)
        assert (await station.ask(with_token("grid-token"))).status == 200
        assert not held.done()
        held.cancel()
        await asyncio.gather(held, return_exceptions=True)


@pytest.mark.usefixtures("patience")
async def test_who_waits_to_be_asked_is_not_held_back(upstream: Upstream, bots: dict[str, Any]) -> None:
    """wget, Java and urllib send the token only after a 401."""
    async with running_station(upstream, ENVIRONMENT, bots=bots) as station:
        await flood(station, FREE, with_token("wrong"))
        await flood(station, 3 * FREE, request())
        basic = base64.b64encode(b"grid:grid-token").decode()
        raw = with_token("", request()).replace(b"Bearer ", f"Basic {basic}".encode())
        assert (await station.ask(request())).status == 401
        assert (await station.ask(raw)).status == 200


@pytest.mark.usefixtures("patience")
async def test_a_guesser_that_does_not_wait_is_forgotten_at_once(
    upstream: Upstream, bots: dict[str, Any]
) -> None:
    async with running_station(upstream, ENVIRONMENT, bots=bots) as station:
        await flood(station, FREE, with_token("wrong"))
        async with station.bot() as bot:
            await bot.send(with_token("wrong"))
            await station.until(lambda: station.gateway.handler.inflight == 1)
            bot.hang_up()
            await station.until(lambda: station.gateway.handler.inflight == 0)
