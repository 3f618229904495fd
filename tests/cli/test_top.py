"""`sealgate top`: the live page's figures, once or as they come, for people and for scripts."""

import asyncio
import json
import os
import pty
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from rig.bot import request
from rig.program import ended_program, running_program
from rig.served import Served, environ, running_served
from rig.upstream import Upstream, say
from rig.wire import PATIENCE_S, let_pass, reply
from sealgate.cli.admin import GoneError
from sealgate.cli.tables import drawn
from sealgate.cli.top import shown as shown_of
from sealgate.cli.top_screen import Inspector, screen
from sealgate.observe.sentences import words


@pytest.fixture
async def served(upstream: Upstream, tmp_path: Path) -> AsyncIterator[Served]:
    async with running_served(environ(upstream.base_url), tmp_path) as running:
        yield running


def place(served: Served) -> str:
    return served.admin.removeprefix("http://")


async def test_one_picture_as_json(served: Served, upstream: Upstream) -> None:
    upstream.answers.append(say(reply(b"401 Unauthorized", b'{"detail": "Invalid HMAC signature"}')))
    await served.ask(request())
    await served.program.line('"request"')  # a reply may be there before its record
    code, program = await ended_program("top", "--once", "--json", "--admin", place(served))
    assert (code, program.err) == (0, [])
    (line,) = program.out
    picture = json.loads(line)
    assert picture["requests"] == 1
    assert picture["errors"][0]["kind"] == "signature_invalid"


async def test_picture_after_picture(served: Served) -> None:
    async with running_program("top", "--json", "--admin", place(served)) as program:
        async with asyncio.timeout(PATIENCE_S):
            while len(program.out) < 3:
                await let_pass(0.05)
    moments = [json.loads(line)["at_ms"] for line in program.out]
    assert moments == sorted(moments)
    assert moments[0] < moments[-1]  # the first may come in the same ms as the second


async def test_it_ends_with_the_gateway(upstream: Upstream, tmp_path: Path) -> None:
    async with (
        running_served(environ(upstream.base_url), tmp_path) as served,
        running_program("top", "--json", "--admin", place(served)) as program,
    ):
        await program.line('"keys"')
        served.program.tell(15)
        assert await program.end() == 1
    assert program.err == ["sealgate: the gateway has ended"]


WORDS = "20 to 21 per 1 s, from 2 refusals; last 48 s ago; refused at most one in 700"
NEXT = "next: 20.5 per 1 s, in 40 s, if requests wait"
LIMIT = {
    "pool": "all",
    "of": "",
    "n": 20.0,
    "window_s": 1.0,
    "used_ratio": 0.97,
    "low": 19.6,
    "high": 20.4,
    "words": WORDS,
    "is_foreign_use": True,
    "next_step": NEXT,
}
KEY: dict[str, Any] = {
    "alias": "main",
    "exchange": "spot",
    "pause_s": 0.0,
    "spent_s": 0.0,
    "has_pools": False,
    "pools": [],
    "more_pools": 0,
    "closed": "",
    "used": 19.4,
    "sent_per_s": 12.5,
    "limited_today": 3,
    "at_a_time": None,
    "sharing": None,
    "expires_at": None,
    "trouble": None,
    "disabled": "the exchange calls it invalid",
    "waiting": {"cancel": 0, "order": 2, "read": 7},
    "limits": [LIMIT],
    "next_429": {"in_s": None, "words": "held off: requests wait instead", "short": "held off"},
    "bots": [{"name": "flood", "per_s": 12.5, "share": 0.75, "due": 0.25, "waiting": 9}],
}
SPOT: dict[str, Any] = {
    "name": "spot",
    "venue": "service",
    "base_url": "https://api.example.com",
    "urls": ["http://127.0.0.1:8787"],
    "state": "not ready",
    "not_ready": ["clock not synced"],
    "clock": {"offset_s": 1.5, "error_s": 0.004, "age_s": 3.0, "trouble": "no sample came"},
    "keys": ["main"],
    "used_ratio": 0.97,
    "pause_s": 0.0,
    "open_pools": [],
    "waiting": 9,
    "sent_per_s": 12.5,
    "requests": 1234,
    "requests_per_s": 18.2,
    "limited": 0,
    "limited_ms": None,
    "limited_today": 0,
    "shared_per_s": 5.7,
    "streams": 0,
    "in_doubt": 2,
    "latency": {"added_p99_ms": 0.31, "upstream_p99_ms": None},
    "failing": None,
}
FIGURES: dict[str, Any] = {
    "version": "1.0",
    "uptime_s": 60.0,
    "connections": 1,
    "bot_urls": {"grid": "http://127.0.0.1:8802"},
    "inflight": 11,
    "base_url": "https://api.example.com",
    "state": "not ready",
    "not_ready": ["clock not synced"],
    "is_draining": False,
    "exchanges": [SPOT],
    "requests": 1234,
    "requests_per_s": 18.2,
    "idle_bots": ["maker"],
    "latency": {"added_p99_ms": 0.31, "upstream_p99_ms": None},
    "clock": {"offset_s": 1.5, "error_s": 0.004, "age_s": 3.0, "trouble": "no sample came"},
    "journal": {
        "in_doubt": 2,
        "trouble": "disk full",
        "is_refusing": False,
        "lost": None,
        "doubts": [],
        "by_exchange": {},
    },
    "halts": [],
    "failing": None,
    "keys": [KEY],
    "at_ms": 10_000,
    "errors": [
        {
            "kind": "key_invalid",
            "key": "main",
            "exchange": "spot",
            "bot": "grid",
            "count": 3,
            "last_ms": 4_000,
            "evidence": "it was accepted before",
            "advice": "Compare.",
            "over_since_ms": None,
        },
    ],
    "policies": [{"by_rule": "grid's policy has refused: 2 by max_size, 1 by symbols"}],
    "refusals": [],
    "streams": [],
    "last_orders": [
        {
            "bot": "grid",
            "exchange": "spot",
            "at_ms": 4_000,
            "method": "POST",
            "route": "/order",
            "status": 400,
            "outcome": "refused",
            "reason": None,
        }
    ],
}


def shown(
    width: int = 200, inspector: Inspector | None = None, *, has_keys: bool = False, **changes: Any
) -> str:
    figures = FIGURES | changes
    console = Console(width=width)
    with console.capture() as capture:
        console.print(screen(figures | {"words": words(figures)}, inspector, has_keys=has_keys))
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


@pytest.mark.parametrize("width", [80, 120, 200])
def test_all_that_can_be_seen(width: int) -> None:
    """Nothing of it is torn where a line ends, but for sentences."""
    text = shown(width)
    for part in (
        "Sealgate not ready",
        "Requests: 18.2 /s (1,234 in 60 s)",
        "12.5 sent/s",
        "gateway p99 0.31 ms, upstream p99 –",  # noqa: RUF001 - a dash
        "Limit used: 97 % (of about 20/s)",
        "Clock: +1,500 ms (± 4 ms, 3 s old)",
        "In doubt: 2 (look them up)",
        "Not ready: clock not synced",
        "Key main is disabled: the exchange calls it invalid. ",
        "about 20/s · 3 refusals today",
        "waiting: 0 cancel, 2 order, 7 read",
        "97 % of about 20/s",
        "Bots ask for 18.2 requests a second, and the gateway sends 12.5",
        "POST /order  6 s ago  refused by the exchange (400)",
        "Idle for ten seconds: maker",
        "key_invalid (key main, last by grid): 3×, last 6 s ago\n  It was accepted before. Compare.",  # noqa: RUF001
        "grid's policy has refused: 2 by max_size, 1 by symbols",
    ):
        assert part in text, part
    bots = [line.split() for line in text.splitlines() if "flood" in line]
    assert ["flood", "12.5", "75%", "25%", "9"] in bots


STREAM: dict[str, Any] = {
    "bot": "grid",
    "exchange": "spot",
    "stream": "stream.example.com/v5/private/orders",
    "since_ms": 4_000,
    "is_logged_in": True,
    "messages_per_s": 1234.5,
}


@pytest.mark.parametrize("width", [80, 120])
def test_open_streams(width: int) -> None:
    text = shown(width, streams=[STREAM] * 11 + [STREAM | {"bot": "maker", "is_logged_in": False}] * 3)
    rows = [line.split() for line in text.splitlines() if "1,234.5/s" in line]
    assert [row[0] for row in rows] == ["grid"] * 11 + ["maker"]
    assert " ".join(rows[0][2:]) == "6 s 1,234.5/s logged in"
    assert " ".join(rows[-1][2:]) == "6 s 1,234.5/s not logged in"
    assert "\nand 2 more\n" in text
    assert "Streams" not in shown(width)


def test_streams_of_the_exchange_that_is_shown_in_full() -> None:
    streams = [STREAM, STREAM | {"bot": "maker", "exchange": "perp"}]
    assert "maker" in shown(streams=streams, **SEVERAL)
    text = shown(inspector=Inspector(exchange="spot"), streams=streams, **SEVERAL)
    assert " spot      stream.example.com/v5/private/orders " in text
    assert "maker  " not in text


def in_pools(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "pool": name,
        "of": "",
        "passes": name,
        "state": "open",
        "closed": "",
        "is_shared": False,
        "pause_s": 0.0,
        "at_a_time": None,
        "limits": [LIMIT | {"pool": name}],
    } | changes


CLOSED = in_pools("orders", state="closed", closed="closed for 7 s", pause_s=6.5)
PATH = in_pools("path", of="POST /v5/order/create-batch", passes="", limits=[])
IN_POOLS = KEY | {
    "has_pools": True,
    "pools": [in_pools("weight"), CLOSED, PATH],
    "closed": "orders: closed for 7 s; cancels and reads go on",
    "disabled": None,
}


@pytest.mark.parametrize("width", [80, 120])
def test_each_pool_has_its_line(width: int) -> None:
    text = shown(width, keys=[IN_POOLS], exchanges=[SPOT | {"open_pools": [in_pools("public")]}])
    for part in (
        "Key main  1 pool closed  all: about 20/s",
        "\n  orders: closed for 7 s; cancels and reads go on\n",
        "\nweight  ",
        " 97 % of about 20/s\n",
        "closed for 7 s\n",
        "path POST /v5/order/create-…  limit not known yet\n",
        "Requests without a key\npublic  ",
    ):
        assert part in text, part


def test_where_nothing_went_wrong_it_says_so() -> None:
    text = shown(errors=[], policies=[], idle_bots=[], keys=[KEY | {"limits": [], "bots": []}])
    assert "No bot has met an error" in text
    assert "What went wrong" not in text
    assert "Idle" not in text


def test_what_is_printed_has_no_blanks_at_the_ends_of_lines() -> None:
    figures = FIGURES | {"keys": [KEY | {"limits": [LIMIT | {"used_ratio": 0.0}]}]}
    lines = drawn(screen(figures | {"words": words(figures)})).splitlines()
    assert lines == [line.rstrip() for line in lines]
    assert any(line.startswith("░") and "0 % of about 20/s" in line for line in lines)


PERP = SPOT | {
    "name": "perp",
    "base_url": "https://perp.example.com",
    "state": "ready",
    "not_ready": [],
    "used_ratio": 0.5,
    "limited": 3,
    "limited_today": 3,
    "in_doubt": 0,
    "streams": 7,
    "limited_ms": 4_000,
    "waiting": 0,
}
WORKING = KEY | {"disabled": None}
SEVERAL: dict[str, Any] = {
    "exchanges": [SPOT, PERP],
    "keys": [WORKING, WORKING | {"alias": "swap", "exchange": "perp"}],
}


DOUBT: dict[str, Any] = {
    "id": "a1-1",
    "request_id": "mine",
    "bot": "grid",
    "exchange": "spot",
    "client_id": "c1",
    "call": "WS stream.example.com/v5/trade order.create",
    "terms": "buy 1 BTC at 5 as c1",
    "sent_ms": 4_000,
    "fence_ms": 9_000,
}


@pytest.mark.parametrize("width", [80, 120])
def test_orders_in_doubt_with_what_to_do(width: int) -> None:
    text = " ".join(shown(width, journal=FIGURES["journal"] | {"doubts": [DOUBT, DOUBT]}, **SEVERAL).split())
    assert "2 orders have no known result: sent, but the reply was lost." in text
    assert "grid, spot, WS stream.example.com/v5/trade order.create, buy 1 BTC at 5 as c1, 6 s ago" in text
    assert "Look it up by client order id c1, then run: `sealgate orders --settle a1-1`" in text
    inspector = Inspector(exchange="perp")
    at_perp = shown(journal=FIGURES["journal"] | {"doubts": [DOUBT]}, inspector=inspector, **SEVERAL)
    assert "order.create" not in at_perp


def test_several_exchanges_at_a_glance_with_the_keys_of_all() -> None:
    text = shown(**SEVERAL)
    rows = [line.split() for line in text.splitlines() if " ± 4 ms" in line and "Requests" not in line]
    assert rows[0][:5] == ["spot", "not", "ready", "97", "%"]
    assert " ".join(rows[1]).startswith(
        "perp ready 50 % of about 20/s 0 12.5 3, last 6 s ago +1,500 ms ± 4 ms 7 0"
    )
    assert "2 exchanges" in text
    assert "Exchanges: 1 (of 2 ready)" in text
    assert "Key main at spot" in text
    assert "Key swap at perp" in text


def test_a_key_of_the_keyboard_chooses_the_exchange_that_is_shown_in_full() -> None:
    inspector = Inspector()

    def after(key: str) -> str:
        inspector.press(key)
        return shown(inspector=inspector, has_keys=True, **SEVERAL)

    assert "e: next exchange   r: latest" in after("")
    assert "Key swap" not in after("e")
    text = after("e")
    assert "Key main" not in text
    assert "perp  ·  https://perp.example.com" in text
    assert "Key main" in after("e")
    assert "exchange: all" in after("r")


def test_an_exchange_that_is_not_there() -> None:
    picture = FIGURES | {"words": words(FIGURES)}
    assert shown_of(picture, "spot") == picture
    with pytest.raises(GoneError, match="the gateway has no exchange perp; known: spot"):
        shown_of(picture, "perp")


def test_a_gateway_that_is_older_than_the_command() -> None:
    with pytest.raises(GoneError, match="older than this command"):
        shown_of(FIGURES)


async def test_the_latest_requests_once_by_bot_and_outcome(served: Served, upstream: Upstream) -> None:
    upstream.answers.append(say(reply(b"400 Bad Request", b"{}")))
    await served.ask(request(b"POST", b"/v1/trade/order", body=b"{}"))
    await served.ask(request(b"GET", b"/v1/trade/symbols/list"))
    await served.program.line('"/symbols/list"')
    once = ("top", "--once", "--admin", place(served))
    code, program = await ended_program(*once, "--requests")
    assert code == 0, program.output
    assert "2 of the latest 2 requests, bot: all, outcome: all" in program.out
    assert [" ".join(line.split()[1:]) for line in program.out if "/" in line][-2:] == [
        "local 200 done GET /symbols/list 0 ms 1",
        "local 400 refused POST /order 0 ms 1",
    ]
    code, program = await ended_program(*once, "--json", "--bot", "local", "--outcome", "refused")
    [row] = json.loads(program.out[0])["latest_requests"]
    assert (row["route"], row["status"], row["attempts"]) == ("/order", 400, 1)


ROWS = [
    {
        "at_ms": 1_700_000_000_000 + number,
        "bot": bot,
        "exchange": "spot",
        "method": "GET",
        "route": "/symbols/list",
        "status": 200 if outcome == "done" else 504,
        "outcome": outcome,
        "wait_ms": 12.5,
        "attempts": 1,
        "reason": None if outcome == "done" else "upstream_timeout",
    }
    for number, (bot, outcome) in enumerate([("grid", "done"), ("maker", "unknown"), ("maker", "done")])
]


def test_keys_choose_bot_and_outcome_and_hold() -> None:
    inspector = Inspector(rows=ROWS)

    def after(keys: str) -> str:
        for key in keys:
            inspector.press(key)
        return shown(inspector=inspector, has_keys=True)

    def is_asked() -> bool:
        return inspector.wants_rows

    assert "r: latest requests" in after("")
    assert not is_asked()
    assert "3 of the latest 3 requests, bot: all, outcome: all\n" in after("r")
    assert is_asked()
    assert "1 of the latest 3 requests, bot: grid, outcome: all\n" in after("b")
    assert "2 of the latest 3 requests, bot: maker, outcome: all\n" in after("b")
    assert "1 of the latest 3 requests, bot: maker, outcome: unknown\n" in after("oo")
    assert "bot: all, outcome: all, frozen\n" in after("bo ")
    assert not is_asked()
    assert "frozen" not in after(" ")
    assert "Key main" in after("r")


async def test_in_a_terminal_a_key_opens_them_and_another_ends_it(served: Served) -> None:
    await served.ask(request(b"GET", b"/v1/trade/symbols/list"))
    leader, follower = pty.openpty()
    output, came, loop = bytearray(), asyncio.Event(), asyncio.get_running_loop()

    def read() -> None:  # on and on, as a terminal does: a program waits where nobody takes what it writes
        output.extend(os.read(leader, 4096))
        came.set()

    async def until(text: bytes) -> None:
        while text not in output:
            came.clear()
            await came.wait()

    loop.add_reader(leader, read)
    top = [sys.executable, "-m", "sealgate", "top", "--admin", place(served)]
    # A shell that begins a session and opens a terminal has it for its own, and then the program has.
    # What a script puts in the background inherits a SIGINT that is ignored.
    shell = ["sh", "-c", 'trap "" INT; exec "$@" <$TTY >$TTY 2>&1', "sh", *top]
    environ = {"TERM": "xterm", "COLUMNS": "100", "LINES": "30", "PATH": os.environ["PATH"]}
    environ["TTY"] = os.ttyname(follower)
    program = await asyncio.create_subprocess_exec(*shell, env=environ, start_new_session=True)
    for text, key in (
        (b"r: latest requests", b"r"),
        (b"GET /symbols/list", b"o"),
        (b"outcome: done", b"q"),
    ):
        await asyncio.wait_for(until(text), PATIENCE_S)
        os.write(leader, key)
    assert await asyncio.wait_for(program.wait(), PATIENCE_S) == 0
    loop.remove_reader(leader)
    os.close(follower)
    os.close(leader)
