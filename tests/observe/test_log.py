"""The log: one line for each request, for machines or for people, and nothing secret in it."""

import base64
import errno
import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import structlog
import structlog.testing

from rig.outcome import ANSWERED, changed
from rig.wire import PATIENCE_S
from sealgate.observe import log_stream
from sealgate.observe.log import Repeats, RequestLog, configure_log
from sealgate.observe.log_stream import LogStream
from sealgate.venues.routes import Lane

WALL_S = 1_800_000_000.25  # epoch seconds
WALL = "2027-01-15T08:00:00.250000Z"

DONE = changed(
    ANSWERED,
    method="POST",
    route="/order",
    lane=Lane.ORDER,
    attempts=2,
    resends=("rate_limited",),
    queue_s=0.25,
    upstream_s=0.0125,
    total_s=0.2635,
)


@pytest.fixture(autouse=True)
def defaults() -> Iterator[None]:
    yield
    structlog.reset_defaults()


def log_as(level: str, style: str) -> RequestLog:
    """Set the log up within the test, where stderr is the captured one."""
    configure_log(level, style, lambda: WALL_S)
    return RequestLog()


FAILED = changed(DONE, reason="upstream_broken", detail="The exchange gave no answer.", status=502)
STRANGERS = {"bot": None, "client": "192.0.2.7", "user_agent": "curl/8.5.0", "key": None, "lane": None}
REFUSED = changed(DONE, reason="outside_prefix", detail="Outside.", status=404, **STRANGERS)


@pytest.mark.parametrize("style", ["json", "console"])
def test_systemds_journal_is_given_the_level_of_each_line(
    style: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "stderr").open("w") as stderr:
        found = os.fstat(stderr.fileno())
        monkeypatch.setattr(sys, "stderr", stderr)
        monkeypatch.setenv("JOURNAL_STREAM", f"{found.st_dev}:{found.st_ino}")
        log_as("info", style)([DONE, FAILED])
        try:
            int("made up")
        except ValueError:
            structlog.get_logger().exception("failed")
    lines = (tmp_path / "stderr").read_text().splitlines()
    assert [line[:3] for line in lines[:3]] == ["<6>", "<4>", "<3>"]
    assert {line[:3] for line in lines[3:]} <= {"<3>"}  # on the console, the traceback has lines of its own
    assert any("made up" in line for line in lines[2:])


@pytest.mark.parametrize("stream", ["", "1:2", "nonsense"])
def test_another_stderr_is_given_none(
    stream: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JOURNAL_STREAM", stream)
    log_as("info", "json")([DONE])
    assert capfd.readouterr().err.startswith('{"timestamp"')


@pytest.mark.parametrize("style", ["json", "auto"])
def test_one_line_of_json_for_each_request(style: str, capsys: pytest.CaptureFixture[str]) -> None:
    log_as("info", style)([DONE, REFUSED])
    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert (first["timestamp"], first["id"], first["level"]) == (WALL, "r-1", "info")
    assert second["reason"] == "outside_prefix"


def test_every_line_has_the_time_of_the_clock_that_is_handed_in(capsys: pytest.CaptureFixture[str]) -> None:
    log_as("info", "json")
    structlog.get_logger().info("ready")
    assert json.loads(capsys.readouterr().err)["timestamp"] == WALL


def test_one_line_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    log_as("info", "console")([DONE])
    (line,) = capsys.readouterr().err.splitlines()
    for part in ("request", "id=r-1", "bot=grid", "route=/order", "status=200", "outcome=done", "attempts=2"):
        assert part in line
    assert "\x1b" not in line


@pytest.mark.parametrize(("level", "reasons"), [("warning", ["upstream_broken"]), ("error", [])])
def test_requests_below_the_level_are_left_out(
    level: str, reasons: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    log_as(level, "json")([DONE, REFUSED, FAILED])
    assert [json.loads(line)["reason"] for line in capsys.readouterr().err.splitlines()] == reasons


# A whole gateway, in a process of its own, with everything that could give a secret away.

SECRET = "c4n4ry+secret/0123456789=abcdef"
SESSION = "c4n4ry-session-0123456789abcdef"
TOKEN = "c4n4ry-token-0123456789abcdef"

PROGRAM = """
import asyncio, json, sys
from rig.bot import request
from rig.station import KEY, make_config
from rig.upstream import running_upstream, say, say_and_close
from rig.bot import bot_at
from rig.wire import OK, reply
from rig.outcome import ANSWERED, changed
from sealgate.observe.log import RequestLog, configure_log
from sealgate.observe.metrics import Metrics
from sealgate.machine.system import System
from sealgate.server.gateway import running_gateway
from dataclasses import asdict

configure_log("debug", sys.argv[1], System().wall)
TOKEN = sys.argv[2].encode()
FIELD = b"Authorization: Bearer " + TOKEN
REQUESTS = [
    request(b"GET", b"/v1/trade/x?" + TOKEN, FIELD),
    request(b"POST", b"/v1/trade/order", FIELD, body=TOKEN),
    request(b"GET", b"/v1/trade/api-keys", FIELD),
    request(b"GET", b"/v1/trade/" + TOKEN),
    request(b"GET", b"/v1/wallet", FIELD),
    b"GET /v1/trade/x HTTP/1.1\\r\\nHost: localhost\\r\\n" + TOKEN + b" x: 1\\r\\n\\r\\n",
    b"GET /v1/trade/x HTTP/1.1\\r\\nHost: " + TOKEN + b"\\r\\n\\r\\n",
    request(b"GET", b"/v1/trade/lost", FIELD),
    request(b"GET", b"/v1/trade/garbage", FIELD),
]
ACTS = {b"/v1/trade/lost": say_and_close(), b"/v1/trade/garbage": say(b"garbage " + TOKEN + b"\\r\\n\\r\\n")}

async def main():
    async with running_upstream() as upstream:
        upstream.script = lambda received: ACTS.get(received.target, say(OK))
        config = make_config(
            upstream.base_url,
            keys={"main": {**KEY, "session": "env:SESSION"}},
            bots={"grid": {"token": "env:TOKEN", "may": ["read", "trade", "keys"]}},
        )
        seen = []
        async with running_gateway(config, (RequestLog(), seen.extend)) as gateway:
            while gateway.status().clock.offset_s is None:
                await asyncio.wait((asyncio.ensure_future(asyncio.Event().wait()),), timeout=0.01)
            for raw in REQUESTS:
                async with bot_at(gateway.address.host, gateway.address.port) as bot:
                    print((await bot.ask(raw)).raw)
            metrics = Metrics(gateway.status)
            gateway.reporter.flush()
            metrics(seen)
            print(metrics.snapshot()().decode(), json.dumps(asdict(gateway.status())), gateway)
        sealed = sum(b"X-SERVICE-SIGNATURE" in received.raw for received in upstream.received)
        print("requests", len(seen), "sealed", sealed)
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()

asyncio.run(main())
"""


def spellings(secret: str) -> set[str]:
    raw = secret.encode()
    return {
        secret,
        secret[:16],
        quote(secret, safe=""),
        raw.hex(),
        raw.hex().upper(),
        base64.b64encode(raw).decode(),
        base64.urlsafe_b64encode(raw).decode(),
        json.dumps(secret),
        repr(raw),
    }


@pytest.mark.parametrize("style", ["json", "console"])
def test_nothing_secret_is_told_anywhere(style: str) -> None:
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, style, TOKEN],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={
            "PYTHONPATH": f"{root / 'tests'}:{root / 'src'}",
            "EXCHANGE_SECRET": SECRET,
            "SESSION": SESSION,
            "TOKEN": TOKEN,
        },
    )
    assert done.returncode == 0, done.stderr
    # The reads that got no reply were sent three times each; the session route goes unsigned.
    assert done.stdout.splitlines()[-1] == "requests 9 sealed 8"
    lines = [line for line in done.stderr.splitlines() if "attempts" in line]
    assert len(lines) == 9
    told = done.stdout + done.stderr
    for secret in (SECRET, SESSION, TOKEN):
        for spelling in spellings(secret):
            assert spelling not in told


def test_a_traceback_on_a_terminal_shows_no_values(capsys: pytest.CaptureFixture[str]) -> None:
    """The rich kind prints locals, and a local may be a token."""
    configure_log("info", "console", lambda: WALL_S)
    token = "token-canary"

    def fail(_: str) -> None:
        raise ValueError("made up")

    try:
        fail(token)
    except ValueError:
        structlog.get_logger().exception("failed")
    printed = capsys.readouterr().err
    assert "ValueError" in printed
    assert token not in printed


START = datetime(2026, 1, 31, 12, tzinfo=UTC)


def line(after_s: float, event: str = "down", level: str = "warning", **values: Any) -> dict[str, Any]:
    stamp = (START + timedelta(seconds=after_s)).isoformat()
    return {"event": event, "level": level, "timestamp": stamp, **values}


def passed(*lines: dict[str, Any]) -> list[dict[str, Any]]:
    repeats, found = Repeats(), []
    for one in lines:
        try:
            found.append(dict(repeats(None, "", one)))
        except structlog.DropEvent:
            continue
    return found


def test_the_same_warning_is_counted() -> None:
    first, last = passed(*(line(second) for second in range(60)))
    assert "repeated" not in first
    assert last["repeated"] == 58


def test_others_pass() -> None:
    assert len(passed(line(0), line(1, "up"), line(2, cause="disk"), line(3, cause="net"))) == 4
    assert len(passed(line(0, level="info"), line(0, level="info"))) == 2
    assert len(passed(line(0, request_id="a"), line(0, request_id="b"))) == 1


ENDS = {
    "journal_recovered": "journal_failed",
    "clock_synced": "clock_trouble",
    "key_enabled": "key_disabled",
}


@pytest.mark.parametrize("end", ENDS)
def test_a_trouble_that_was_over_is_news_when_it_comes_back(end: str) -> None:
    trouble = ENDS[end]
    lines = line(0, trouble), line(1, trouble), line(2, end, level="info"), line(3, trouble), line(4, trouble)
    assert [one["event"] for one in passed(line(0), *lines, line(5))] == ["down", trouble, end, trouble]


def test_each_reload_that_fails_is_answered() -> None:
    assert len(passed(line(0, "reload_failed"), line(1, "reload_failed"))) == 2


def test_a_clock_that_was_set_back_silences_nothing() -> None:
    assert len(passed(line(0), line(-3600))) == 2


def test_what_is_remembered_is_bounded() -> None:
    repeats = Repeats()
    for number in range(1000):
        repeats(None, "", line(0, number=number))
    assert len(repeats._said) == 256


class Stalling(io.StringIO):
    """A stream whose writes wait until they may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = threading.Event()
        self.go_on = threading.Event()

    def write(self, text: str) -> int:
        self.begun.set()
        self.go_on.wait(PATIENCE_S)
        return super().write(text)


def lost(count: int) -> str:
    return f"lost {count}"


def test_what_is_written_comes_out_in_order() -> None:
    target = io.StringIO()
    stream = LogStream(target, lost)
    for number in range(1000):
        stream.write(f"{number}\n")
    stream.flush()
    stream.close()
    assert target.getvalue().splitlines() == [str(number) for number in range(1000)]
    assert not stream.isatty()


def test_nobody_waits_for_a_reader_that_stalls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines wait up to the bound, what goes beyond is counted, and the log says so when it moves on."""
    monkeypatch.setattr(log_stream, "_MOST_CHARACTERS", 100)
    target = Stalling()
    stream = LogStream(target, lost)
    stream.write("first\n")
    assert target.begun.wait(PATIENCE_S)
    for _ in range(50):
        stream.write("123456789\n")
    target.go_on.set()
    stream._queue.put("")
    while stream._queue.qsize():
        pass
    stream.write("last\n")
    stream.close()
    written = target.getvalue().splitlines()
    assert written == ["first", *["123456789"] * 9, "lost 41", "last"]


@pytest.mark.parametrize("failing", ["a closed pipe", "a closed stream"])
def test_a_reader_that_is_gone_stops_nothing(failing: str) -> None:
    read, write = os.pipe()
    target = os.fdopen(write, "w")
    os.close(read)
    if failing == "a closed stream":
        target.close()
    stream = LogStream(target, lost)
    stream.write("nobody reads this\n")
    stream.write("nor this\n")
    stream.close()
    assert not stream._thread.is_alive()
    if failing == "a closed pipe":
        with pytest.raises(BrokenPipeError):
            target.close()


class Full(io.StringIO):
    """A file on a disk that is full until the line `last` was refused."""

    def __init__(self, last: str) -> None:
        super().__init__()
        self.last = last
        self.has_room = threading.Event()

    def write(self, text: str) -> int:
        if self.has_room.is_set():
            return super().write(text)
        if text.endswith(self.last):
            self.has_room.set()
        raise OSError(errno.ENOSPC, "No space left on device")


def test_lines_that_a_full_disk_refused_are_counted_in_the_log() -> None:
    target = Full(last="49\n")
    stream = LogStream(target, lost)
    for number in range(50):
        stream.write(f"{number}\n")
    assert target.has_room.wait(PATIENCE_S)
    stream.write("first\n")
    stream.write("second\n")
    stream.close()
    assert target.getvalue().splitlines() == ["lost 50", "first", "second"]


def test_what_waits_goes_out_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the thread rests: it may not fall behind."""
    monkeypatch.setattr(log_stream, "_REST_S", PATIENCE_S)
    target = Stalling()
    stream = LogStream(target, lost)
    stream.write("first\n")
    assert target.begun.wait(PATIENCE_S)
    for number in range(100):
        stream.write(f"{number}\n")
    target.go_on.set()
    stream.close()
    assert target.getvalue().splitlines() == ["first", *map(str, range(100))]
