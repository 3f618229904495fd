"""A ban is kept for as long as the exchange documents it, by all whom it is for."""

import asyncio
from pathlib import Path

from rig.bot import met, request
from rig.station import ENVIRON, KEY, running_station
from rig.upstream import Upstream, say
from rig.wire import reply

VENUE = """
name = "strict"
title = "Strict"
base_url = "https://strict.example"
[signing]
message = "{timestamp}{method}{path}{body}"
[signing.headers]
X-KEY = "{api_key}"
X-SIGN = "{signature}"
X-TIME = "{timestamp}"
[clock]
path = "/v1/trade/time"
[[routes]]
match = "GET /public"
auth = "open"
[[replies]]
status = [403]
means = "banned"
kind = "banned"
wait_s = 600
scope = "address"
[[replies]]
status = [418]
means = "banned"
kind = "banned"
wait_s = 900
"""
KEYS = {"main": KEY, "other": {**KEY, "api_key": "ak-public-2"}}
BOTS = {"one": {"token": "env:ONE", "key": "main"}, "two": {"token": "env:TWO", "key": "other"}}
TOKENS = {**ENVIRON, "ONE": "token-one", "TWO": "token-two"}


def by(bot: str, path: bytes = b"/orders") -> bytes:
    return request(b"GET", path, f"Authorization: Bearer token-{bot}".encode(), b"X-Gateway-Deadline-Ms: 500")


def shut_out(status: bytes) -> bytes:
    return reply(status, b"too many")


async def test_a_ban_of_the_address_pauses_every_key_and_what_needs_none(
    upstream: Upstream, tmp_path: Path
) -> None:
    venue = tmp_path / "strict.toml"
    venue.write_text(VENUE)
    upstream.answers.append(say(shut_out(b"403 Forbidden")))
    async with running_station(upstream, TOKENS, venue=str(venue), keys=KEYS, bots=BOTS) as station:
        refused = await station.ask(by("one"))
        assert refused.status == 429
        assert 600 <= int(refused.text("Retry-After") or 0) <= 601
        assert "as the exchange documents it" in refused.document()["detail"]
        for message in (by("two"), by("one", b"/public"), by("two", b"/public")):
            assert met(await station.ask(message))[:2] == (429, "not_sent")
        assert len(upstream.received) == 1
        assert {key.pause_s > 590 for key in station.gateway.status().keys} == {True}


async def test_a_ban_of_a_key_pauses_no_other(upstream: Upstream, tmp_path: Path) -> None:
    venue = tmp_path / "strict.toml"
    venue.write_text(VENUE)
    upstream.answers.append(say(shut_out(b"418 I'm a teapot")))
    async with running_station(upstream, TOKENS, venue=str(venue), keys=KEYS, bots=BOTS) as station:
        assert met(await station.ask(by("one")))[0] == 429
        others = (by("two"), by("one", b"/public"))
        assert [one.status for one in await asyncio.gather(*map(station.ask, others))] == [200, 200]
        assert len(upstream.received) == 3


async def test_a_ban_that_a_request_without_a_key_meets_is_of_the_address(
    upstream: Upstream, tmp_path: Path
) -> None:
    venue = tmp_path / "strict.toml"
    venue.write_text(VENUE)
    upstream.answers.append(say(shut_out(b"418 I'm a teapot")))
    async with running_station(upstream, TOKENS, venue=str(venue), keys=KEYS, bots=BOTS) as station:
        assert met(await station.ask(by("one", b"/public")))[0] == 429
        assert [(await station.ask(by(bot))).status for bot in ("one", "two")] == [429, 429]
        assert len(upstream.received) == 1
