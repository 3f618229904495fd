"""Who halted orders, when and why: in the answer, in the log, in the status, in `top`, and over a restart."""

import json
import os
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rig.plain import Ended, Gateway, run, running_exchange, running_gateway

CONFIG = """\
base_url = "{base_url}"
listen.tcp = "127.0.0.1:0"
admin.tcp = "127.0.0.1:0"
admin.unix = "a.sock"
journal.file = "j.db"
[keys.main]
api_key = "ak-public-1"
secret = "env:EXCHANGE_SECRET"
"""
WHY = "the exchange's desk called"


def configure(folder: Path, base_url: str) -> None:
    (folder / "sealgate.toml").write_text(CONFIG.format(base_url=base_url))


def halted(folder: Path, *more: str) -> Ended:
    ended = run("halt", "--reason", WHY, *more, folder=folder)
    assert ended.code == 0, ended
    return ended


def admin(gateway: Gateway) -> str:
    return str(gateway.line("listening")["admin"])


def status(gateway: Gateway) -> dict[str, Any]:
    with urllib.request.urlopen(f"{admin(gateway)}/status.json") as answer:  # noqa: S310 - our own
        (halt,) = json.load(answer)["halts"]
    assert isinstance(halt, dict)
    return halt


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    with running_exchange() as base_url:
        configure(tmp_path, base_url)
        with running_gateway(folder=tmp_path) as running:
            yield running


def test_answer_log_status_and_top_say_who_when_and_why(tmp_path: Path, gateway: Gateway) -> None:
    ended = halted(tmp_path)
    who = f"by user {os.geteuid()}, process {ended.pid}"
    since = r"\(since \d{4}-\d\d-\d\d \d\d:\S+"
    assert re.search(rf"^halted: all bots {since} {re.escape(f'{who}: {WHY})')}$", ended.out, re.MULTILINE)
    line, halt = gateway.line("orders_halted"), status(gateway)
    assert [one["uid"] for one in (line, halt)] == [os.geteuid()] * 2
    assert [(one["pid"], one["reason"]) for one in (line, halt)] == [(ended.pid, WHY)] * 2
    assert halt["since_ms"] > 0
    address = admin(gateway).removeprefix("http://")
    shown = run("top", "--once", "--admin", address, folder=tmp_path, environ={"COLUMNS": "200"})
    told = " ".join(shown.out.split())
    assert re.search(rf"Orders are halted for all bots since .+ ago, {who}\. .*Reason: {WHY}", told), told
    ended = run("resume", "--reason", "all clear", folder=tmp_path)
    line = gateway.line("orders_resumed")
    assert (line["uid"], line["pid"], line["reason"]) == (os.geteuid(), ended.pid, "all clear")
    ended = run("reload", folder=tmp_path)
    assert f"process {ended.pid}" in gateway.line("reloaded")["asked_by"]


def test_a_restart_forgets_neither_who_nor_when_nor_why(tmp_path: Path) -> None:
    with running_exchange() as base_url:
        configure(tmp_path, base_url)
        with running_gateway(folder=tmp_path) as gateway:
            for reason in ("two\nlines", "\x1b[2J", "x" * 201):
                ended = run("halt", "--reason", reason, folder=tmp_path)
                assert (ended.code, "one line of at most 200 characters" in ended.err) == (1, True)
            assert run("resume", folder=tmp_path).out.endswith("no orders are halted\n")
            halted(tmp_path, "--bot", "local")
            before = status(gateway)
        with running_gateway(folder=tmp_path) as gateway:
            assert status(gateway) == before
            line = gateway.line("orders_halted")
            assert (line["pid"], line["reason"], line["since_ms"]) == (before["pid"], WHY, before["since_ms"])
