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
from rig.ports import free_port
from rig.program import ended_program, running_program
from rig.served import Served, environ, running_served
from rig.upstream import Upstream, say
from rig.wire import PATIENCE_S, let_pass, reply
from sealgate.cli.tables import drawn
from sealgate.cli.top_screen import Inspector, screen


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


async def test_one_picture_for_people(served: Served, upstream: Upstream) -> None:
    code, program = await ended_program("top", "--once", "--admin", place(served))
    assert code == 0, program.output
    for text in (
        "Sealgate ready",
        upstream.base_url,
        "Key main",
        "no limit known yet",
        "No bot has met an error",
    ):
        assert text in program.output.replace("\n", " ")


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


async def test_nobody_there(tmp_path: Path) -> None:
    port = free_port()
    code, program = await ended_program("top", "--admin", f"127.0.0.1:{port}", folder=tmp_path)
    assert code == 1
    (line,) = program.err
    assert line.startswith(f"sealgate: no gateway answers at 127.0.0.1:{port}: connection refused; start it")


@pytest.mark.parametrize(
    ("setting", "words"),
    [("", "admin.tcp is off"), ("127.0.0.1:0", "give it a fixed one, or use --admin HOST:PORT")],
)
async def test_an_address_that_says_nothing(setting: str, words: str, tmp_path: Path) -> None:
    settings = environ("http://127.0.0.1:9", ADMIN__TCP=setting)
    code, program = await ended_program("top", "--once", environ=settings, folder=tmp_path)
    assert code == 2
    assert words in program.output


async def test_an_address_that_is_none() -> None:
    code, program = await ended_program("top", "--admin", "nonsense")
    assert code == 2
    assert "is not host:port" in program.output


WORDS = "20 to 21 per 1 s, from 2 refusals; last 48 s ago; refused at most one in 700"
NEXT = "next: 20.5 per 1 s, in 40 s, if requests wait"
LIMIT = {"used_ratio": 0.97, "words": WORDS, "is_foreign_use": True, "next_step": NEXT}
KEY: dict[str, Any] = {
    "alias": "main",
    "pause_s": 0.0,
    "sent_per_s": 12.5,
    "trouble": "the exchange refused its last 9 signatures",
    "disabled": "the exchange calls it invalid",
    "waiting": {"cancel": 0, "order": 2, "read": 7},
    "limits": [LIMIT],
    "next_429": {"in_s": None, "words": "held off: requests wait instead"},
    "bots": [{"name": "flood", "per_s": 12.5, "share": 0.75, "due": 0.25, "waiting": 9}],
}
PICTURE: dict[str, Any] = {
    "base_url": "https://api.example.com",
    "state": "not ready",
    "not_ready": ["clock not synced"],
    "requests_per_s": 18.2,
    "idle_bots": ["maker"],
    "latency": {"added_p99_ms": 0.31, "upstream_p99_ms": None},
    "clock": {"offset_s": 1.5, "error_s": 0.004, "trouble": "no sample came"},
    "journal": {"in_doubt": 2, "trouble": "disk full"},
    "halts": [
        {
            "words": "bot grid",
            "resume": "sealgate resume --bot grid",
            "since_ms": 5_000,
            "who": "user 1000, process 7",
            "reason": "a bad day",
        }
    ],
    "failing": {
        "kind": "unreachable",
        "since_ms": 3_000,
        "attempts": 9,
        "cause": "The exchange gave no answer: connection refused.",
        "advice": "Check the network.",
    },
    "keys": [KEY],
    "at_ms": 10_000,
    "errors": [
        {
            "kind": "key_invalid",
            "key": "main",
            "count": 3,
            "last_ms": 4_000,
            "evidence": "it was accepted before",
            "advice": "Compare.",
            "over_since_ms": None,
        },
        {
            "kind": "signature_invalid",
            "key": "alt",
            "count": 2,
            "last_ms": 3_000,
            "evidence": "the clock stepped",
            "advice": "",
            "over_since_ms": 5_000,
        },
    ],
    "policies": [
        {"bot": "grid", "by_rule": "grid's policy has refused: 2 by max_size, 1 by symbols"},
        {"bot": "watcher", "by_rule": ""},
    ],
    "refusals": [
        {
            "words": "watcher: 42 of 42 reads refused: deadline_exceeded",
            "advice": "Allow more time.",
            "last_ms": 8_000,
            "over_since_ms": None,
            "is_grave": True,
        },
        {
            "words": "grid: 1 of 9 orders refused: key_reused",
            "advice": "Use a new one.",
            "last_ms": 7_000,
            "over_since_ms": None,
            "is_grave": False,
        },
    ],
}


@pytest.mark.parametrize("width", [80, 120, 200])
def test_all_that_can_be_seen(width: int) -> None:
    """Nothing of it is torn where a line ends."""
    console = Console(width=width)
    with console.capture() as capture:
        console.print(screen(PICTURE))
    shown = capture.get()
    shown = "\n".join(line.rstrip() for line in shown.splitlines())
    for text in (
        "Sealgate not ready",
        "18.2 asked/s, 12.5 sent/s",
        "Idle for ten seconds: maker",
        "added p99 0.31 ms, upstream p99 -",
        "clock +1500 ms ± 4.0 ms",
        "2 orders in doubt",
        "not ready: clock not synced",
        "the exchange has failed for 7 s: 9 attempts, the last was unreachable.",
        "orders are halted for bot grid; release them with: sealgate resume --bot grid",
        "halted 5 s ago by user 1000, process 7: a bad day",
        "clock: no sample came",
        "the journal cannot be written: disk full",
        "disabled: the exchange calls it invalid",
        "the exchange refused its last 9 signatures",
        "2 order, 7 read",
        "97% of 20 to 21 per 1 s, from 2 refusals",
        "last 48 s ago; refused at most one in 700; someone else",
        NEXT,
        "key_invalid (key main): 3 times, last 6 s ago",
        "it was accepted before. Compare.",
        "signature_invalid (key alt): 2 times, last 7 s ago\n  the clock stepped; ended 5 s ago",
        "watcher: 42 of 42 reads refused: deadline_exceeded. Allow more time.",
        "watcher: 42 of 42 reads refused: deadline_exceeded, last 2 s ago\n  Allow more time.",
        "grid: 1 of 9 orders refused: key_reused, last 3 s ago\n  Use a new one.",
        "grid's policy has refused: 2 by max_size, 1 by symbols",
    ):
        assert text in shown, text


def test_what_is_refused_only_now_and_then_is_no_notice() -> None:
    assert drawn(screen(PICTURE)).count("key_reused") == 1


def test_a_long_wait_is_in_seconds_and_one_order_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    latency = {"added_p99_ms": 999.4, "upstream_p99_ms": 10_048.0}
    Console(width=200).print(
        screen({**PICTURE, "latency": latency, "journal": {**PICTURE["journal"], "in_doubt": 1}})
    )
    shown = capsys.readouterr().out
    assert "added p99 999 ms, upstream p99 10 s" in shown
    assert "1 order in doubt" in shown


def test_an_offset_of_nothing_has_no_minus() -> None:
    clock = {"offset_s": -0.0003, "error_s": 0.004, "trouble": None}
    assert "clock +0 ms" in drawn(screen(PICTURE | {"clock": clock}))


def test_without_a_clock() -> None:
    console = Console(width=200)
    with console.capture() as shown:
        console.print(screen(PICTURE | {"clock": {"offset_s": None, "error_s": None, "trouble": None}}))
    assert "clock not synced" in shown.get()


def test_a_clock_that_fails_is_what_went_wrong_and_its_cause_comes_once() -> None:
    trouble = "cannot connect to 127.0.0.1:9: Connection refused"
    clock = {"offset_s": None, "error_s": None, "trouble": trouble}
    shown = drawn(
        screen(
            PICTURE
            | {"clock": clock, "not_ready": [f"clock not synced: {trouble}"], "errors": [], "refusals": []}
        )
    )
    assert shown.count(trouble) == 1
    assert "not ready: clock not synced\n" in shown
    assert f"What went wrong\nclock: {trouble}" in shown
    assert "No bot has met an error" not in shown


def test_what_is_printed_has_no_blanks_at_the_ends_of_lines_and_ages_of_one_kind() -> None:
    error = PICTURE["errors"][0] | {"count": 1, "last_ms": 10_000 - 622_000}
    key = KEY | {"limits": [LIMIT | {"used_ratio": 0.0}], "bots": []}
    failing = PICTURE["failing"] | {"since_ms": 10_000 - 622_000}
    shown = drawn(screen(PICTURE | {"errors": [error], "keys": [key], "failing": failing}))
    lines = shown.splitlines()
    assert lines == [line.rstrip() for line in lines]
    assert "the exchange has failed for 10 min: 9 attempts" in shown
    assert "key_invalid (key main): once 10 min ago" in shown
    assert any(line.startswith("░") and "0% of 20 to 21" in line for line in lines)


async def test_the_latest_requests_once_by_bot_and_outcome(served: Served, upstream: Upstream) -> None:
    upstream.answers.append(say(reply(b"400 Bad Request", b"{}")))
    await served.ask(request(b"POST", b"/v1/trade/order", body=b"{}"))
    await served.ask(request(b"GET", b"/v1/trade/symbols/list"))
    await served.program.line('"/symbols/list"')
    once = ("top", "--once", "--admin", place(served))
    code, program = await ended_program(*once, "--requests")
    assert code == 0, program.output
    assert "2 of the latest 2 requests, bot: all, outcome: all" in program.out
    assert [" ".join(line.split()[1:]) for line in program.out if "/" in line][1:] == [
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

    def shown(keys: str) -> str:
        for key in keys:
            inspector.press(key)
        return drawn(screen(PICTURE, inspector, has_keys=True))

    def is_asked() -> bool:
        return inspector.wants_rows

    assert "r: latest requests" in shown("")
    assert not is_asked()
    assert "3 of the latest 3 requests, bot: all, outcome: all\n" in shown("r")
    assert is_asked()
    assert "1 of the latest 3 requests, bot: grid, outcome: all\n" in shown("b")
    assert "2 of the latest 3 requests, bot: maker, outcome: all\n" in shown("b")
    assert "1 of the latest 3 requests, bot: maker, outcome: unknown\n" in shown("oo")
    assert "bot: all, outcome: all, held\n" in shown("bo ")
    assert not is_asked()
    assert "held" not in shown(" ")
    assert "Key main" in shown("r")


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
