"""What a bot may send, where that goes by the words of the path or by the body."""

from pathlib import Path
from typing import Any

from rig.bot import Reply, request, told
from rig.station import ENVIRON, KEY, running_station
from rig.upstream import Upstream

FORBIDDEN = (403, "not_sent", "bot_forbidden")
MOVE = b"/api/v5/asset/transfer"
FILE = """
name = "mine"
title = "Mine"
[signing]
message = "{timestamp}{method}{target}{body}"
[signing.headers]
SIGN = "{signature}"
[[routes]]
match = "POST /api/v5/asset/transfer"
needs = "keys"
trade_if = { only = [{ "/type" = "0?", "/subAcct" = "" }] }
"""
ENVIRON_OF_BOTS = {**ENVIRON, "GRID": "token-of-grid", "CLERK": "token-of-clerk"}
BOTS = {
    "grid": {"token": "env:GRID"},
    "clerk": {"token": "env:CLERK", "may": ["read", "trade", "keys"]},
}


def move(body: bytes, *fields: bytes, bot: str = "grid", target: bytes = MOVE) -> bytes:
    return request(b"POST", target, b"Authorization: Bearer token-of-" + bot.encode(), *fields, body=body)


async def ask(upstream: Upstream, folder: Path, *requests: bytes) -> list[Reply]:
    (folder / "mine.toml").write_text(FILE)
    venue: dict[str, Any] = {"venue": str(folder / "mine.toml"), "clock": {"path": "/v1/trade/time"}}
    async with (
        running_station(upstream, ENVIRON_OF_BOTS, keys={"main": KEY}, bots=BOTS, **venue) as station,
        station.bot() as connection,
    ):
        return [await connection.ask(each) for each in requests]


async def test_a_body_decides_each_time_also_behind_one_head(upstream: Upstream, tmp_path: Path) -> None:
    own, other = b'{"type":0}', b'{"type":2}'
    replies = await ask(upstream, tmp_path, *(move(body) for body in (own, other, own, other, own)))
    assert [reply.status for reply in replies] == [200, 403, 200, 403, 200]
    assert [one.body for one in upstream.received] == [own] * 3
    assert told(replies[1]) == FORBIDDEN
    assert "needs keys, and the bot grid may not" in replies[1].document()["detail"]


async def test_a_body_that_is_refused_spends_no_idempotency_key(upstream: Upstream, tmp_path: Path) -> None:
    key = b"Idempotency-Key: K"
    refused, sent = await ask(upstream, tmp_path, move(b'{"type":2}', key), move(b'{"type":0}', key))
    assert (told(refused), sent.status) == (FORBIDDEN, 200)


async def test_a_call_that_no_row_names_needs_keys_by_its_words(upstream: Upstream, tmp_path: Path) -> None:
    target = b"/api/v9/asset/With-drawal"
    refused, sent = await ask(
        upstream, tmp_path, move(b"{}", target=target), move(b"{}", bot="clerk", target=target)
    )
    assert (told(refused), sent.status) == (FORBIDDEN, 200)
    assert len(upstream.received) == 1
