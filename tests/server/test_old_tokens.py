"""Replaced tokens, strangers' heads, large ones and orders' bodies are in nothing that the gateway has."""

import gc
from collections.abc import Mapping
from pathlib import Path

from rig.acts import Act, say, say_and_reset, say_and_stall
from rig.bot import request
from rig.site import running_site, write
from rig.station import running_station
from rig.upstream import Upstream
from rig.wire import OK
from sealgate.machine.system import random_token


def holders_of(turned: str) -> list[str]:
    """Return what has a token in this process."""
    text = turned[::-1]
    needle = text.encode()
    gc.collect()
    objects = gc.get_objects()
    seen: dict[int, object] = {id(one): one for one in objects if isinstance(one, str | bytes | bytearray)}
    while objects:
        below = {id(one): one for one in gc.get_referents(*objects)}
        # The collector lists the others itself.
        objects = [one for key, one in below.items() if not gc.is_tracked(one) and key not in seen]
        seen |= {id(one): one for one in objects}
    return [
        type(one).__name__
        for one in seen.values()
        if (isinstance(one, str) and one is not text and text in one)
        or (isinstance(one, bytes | bytearray) and one is not needle and needle in one)
    ]


async def test_after_a_reload_with_another_token(upstream: Upstream, tmp_path: Path) -> None:
    turned = random_token()[::-1]  # else the test itself would have it
    file = tmp_path / "token"
    write(file, turned[::-1])
    async with running_site(
        upstream, tmp_path, bots={"grid": {"token": f"file:{file}", "key": "main"}}
    ) as site:
        for method in (b"GET", b"POST"):
            told = b"Authorization: Bearer " + file.read_bytes()
            assert (
                await site.station.ask(request(method, b"/v1/trade/orders", told, b"X-Last: 1"))
            ).status == 200
        del told
        site.station.gateway.reporter.flush()
        await site.station.until_all_hung_up()
        assert holders_of(turned), "the search finds nothing at all"
        write(file, random_token())
        await site.reload()
        assert holders_of(turned) == []


async def test_after_a_head_of_a_stranger(upstream: Upstream, tmp_path: Path) -> None:
    """It would stay for ever: strangers can send as many as they like, of which no two are alike."""
    turned = random_token()[::-1]
    write(tmp_path / "token", random_token())
    bots = {"grid": {"token": f"file:{tmp_path / 'token'}", "key": "main"}}
    async with running_site(upstream, tmp_path, bots=bots) as site:
        for fields in ((b"Authorization: Bearer wrong",), ()):
            for mark in (b"X-Mark: " + turned[::-1].encode(), turned[::-1].encode() * 3 + b": x"):
                told = request(b"GET", b"/v1/trade/orders", *fields, mark)
                assert (await site.station.ask(told)).status == 401
        del told, mark
        await site.station.until_all_hung_up()
        assert holders_of(turned) == []


async def test_after_a_large_head_of_a_bot(upstream: Upstream, tmp_path: Path) -> None:
    turned = random_token()[::-1]
    async with running_site(upstream, tmp_path) as site:
        told = b"X-Mark: " + turned[::-1].encode() * 100
        assert (await site.station.ask(request(b"GET", b"/v1/trade/orders", told))).status == 200
        del told
        await site.station.until_all_hung_up()
        site.station.gateway.reporter.flush()
        upstream.received.clear()
        assert holders_of(turned) == []


ENDS: Mapping[str, tuple[Act, tuple[bytes, ...]]] = {
    "done": (say(OK), ()),
    "unknown": (say_and_reset(), ()),
    "unknown, and out of time": (say_and_stall(), (b"X-Gateway-Deadline-Ms: 100",)),
}


async def test_after_an_order_nothing_but_the_journals_file_has_its_body(
    upstream: Upstream, tmp_path: Path
) -> None:
    turned = random_token()[::-1]
    async with running_station(upstream, journal={"file": str(tmp_path / "journal.db")}) as station:
        for name, (act, fields) in ENDS.items():
            upstream.answers.append(act)
            told = request(b"POST", b"/v1/trade/order", *fields, body=turned[::-1].encode())
            assert (await station.ask(told)).outcome == name.partition(",")[0]
            del told
        upstream.received.clear()
        await station.until_all_hung_up()
        assert len(station.outcomes.all) == len(ENDS)
        await station.until(lambda: holders_of(turned) == [])
