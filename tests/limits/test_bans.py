"""A ban is kept for as long as the exchange documents it, by all whom it is for."""

import asyncio
from email.utils import formatdate
from pathlib import Path

import pytest

from rig.bot import met, request
from rig.station import ENVIRON, KEY, running_station
from rig.upstream import Act, Received, Upstream, say
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


@pytest.fixture
def strict(tmp_path: Path) -> str:
    (tmp_path / "strict.toml").write_text(VENUE)
    return str(tmp_path / "strict.toml")


def shut_out(status: bytes) -> bytes:
    return reply(status, b"too many")


async def test_a_ban_of_the_address_pauses_every_key_and_what_needs_none(
    upstream: Upstream, strict: str
) -> None:
    upstream.answers.append(say(shut_out(b"403 Forbidden")))
    async with running_station(upstream, TOKENS, venue=strict, keys=KEYS, bots=BOTS) as station:
        refused = await station.ask(by("one"))
        assert refused.status == 429
        assert 600 <= int(refused.text("Retry-After") or 0) <= 601
        assert "as the exchange documents it" in refused.document()["detail"]
        for message in (by("two"), by("one", b"/public"), by("two", b"/public")):
            assert met(await station.ask(message))[:2] == (429, "not_sent")
        assert len(upstream.received) == 1
        assert {key.pause_s > 590 for key in station.gateway.status().keys} == {True}


async def test_a_ban_of_a_key_pauses_no_other(upstream: Upstream, strict: str) -> None:
    upstream.answers.append(say(shut_out(b"418 I'm a teapot")))
    async with running_station(upstream, TOKENS, venue=strict, keys=KEYS, bots=BOTS) as station:
        assert met(await station.ask(by("one")))[0] == 429
        others = (by("two"), by("one", b"/public"))
        assert [one.status for one in await asyncio.gather(*map(station.ask, others))] == [200, 200]
        assert len(upstream.received) == 3


async def test_a_ban_that_a_request_without_a_key_meets_is_of_the_address(
    upstream: Upstream, strict: str
) -> None:
    upstream.answers.append(say(shut_out(b"418 I'm a teapot")))
    async with running_station(upstream, TOKENS, venue=strict, keys=KEYS, bots=BOTS) as station:
        assert met(await station.ask(by("one", b"/public")))[0] == 429
        assert [(await station.ask(by(bot))).status for bot in ("one", "two")] == [429, 429]
        assert len(upstream.received) == 1


PAGE = reply(b"403 Forbidden", b"<!DOCTYPE html><html>Request blocked</html>")
WALLED = f"""{VENUE}
[[replies]]
status = [403]
body = "html"
means = "firewall"
kind = "firewall"
wait_s = 300
"""


def walled(tmp_path: Path, *, has_time: bool = True) -> str:
    venue = VENUE if has_time else VENUE.replace('[clock]\npath = "/v1/trade/time"\n', "")
    head, first, rest = venue.partition("[[replies]]")
    wall = WALLED.removeprefix(VENUE)
    (tmp_path / "walled.toml").write_text(head + wall + first + rest)
    return str(tmp_path / "walled.toml")


async def test_a_firewalls_page_pauses_that_bot_on_that_path_and_nobody_else(
    upstream: Upstream, tmp_path: Path
) -> None:
    upstream.answers.append(say(PAGE))
    bots = {**BOTS, "three": {"token": "env:THREE", "key": "main"}}
    tokens = {**TOKENS, "THREE": "token-three"}
    venue = walled(tmp_path)
    async with running_station(upstream, tokens, venue=venue, keys=KEYS, bots=bots) as station:
        refused = await station.ask(by("one"))
        assert met(refused) == (403, "refused", None, 1)
        again = await station.ask(by("one"))
        assert met(again)[:3] == (429, "not_sent", "rate_limited")
        assert (
            "A firewall in front of the exchange refused this bot's last request"
            in again.document()["detail"]
        )
        others = (by("three"), by("two"), by("one", b"/balance"))
        assert [met(await station.ask(one))[:2] for one in others] == [(200, "done")] * 3
        assert {key.pause_s for key in station.gateway.status().keys} == {0.0}


async def test_the_address_is_shut_out_once_the_gateway_itself_is_refused_as_well(
    upstream: Upstream, tmp_path: Path
) -> None:
    async with running_station(upstream, TOKENS, venue=walled(tmp_path), keys=KEYS, bots=BOTS) as station:
        upstream.time = upstream.otherwise = say(PAGE)
        assert (await station.ask(by("one"))).status == 403
        await station.until(lambda: all(key.pause_s > 290 for key in station.gateway.status().keys))
        assert [(await station.ask(by(bot))).status for bot in ("one", "two")] == [429, 429]
        assert len(upstream.received) == 1


async def test_without_a_path_of_the_time_two_bots_show_that_the_address_is_shut_out(
    upstream: Upstream, tmp_path: Path
) -> None:
    """The root of such an exchange may be refused at any time, so a page there says nothing."""
    venue = walled(tmp_path, has_time=False)
    dated = say(reply(b"403 Forbidden", b"<html>no</html>", b"Date: " + formatdate(usegmt=True).encode()))

    def script(received: Received) -> Act:
        return dated if received.target == b"/" else say(PAGE)

    upstream.script = script
    async with running_station(upstream, TOKENS, venue=venue, keys=KEYS, bots=BOTS) as station:
        assert (await station.ask(by("one"))).status == 403
        asked = upstream.receipts(b"/")
        await station.until(lambda: upstream.receipts(b"/") > asked)
        assert (await station.ask(by("two"))).status == 403
        assert all(key.pause_s > 290 for key in station.gateway.status().keys)
