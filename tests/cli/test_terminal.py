"""What a terminal changes: colours, width, and a word about what takes its time."""

import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from rig.terminal import in_a_terminal as terminal_of
from sealgate.cli.report import finding_lines
from sealgate.machine import terminal as terminal_module
from sealgate.machine.findings import Cause, Finding, Level, Weight
from sealgate.machine.terminal import coloured

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
ENVIRON = {
    "SEALGATE_BASE_URL": "https://exchange.example",
    "SEALGATE_KEYS__MAIN__API_KEY": "ak-public-1",
    "SEALGATE_KEYS__MAIN__SECRET": "file:/nowhere/main.secret",
    "SEALGATE_LISTEN__TCP": "127.0.0.1:0",
    "SEALGATE_ADMIN__TCP": "127.0.0.1:0",
    "SEALGATE_ADMIN__UNIX": "off",
}


def in_a_terminal(*arguments: str, until: str = "", **environ: str) -> str:
    """Run the program in a terminal, and return all of its output.

    `until` is a text behind which a program that goes on is ended.
    """
    with terminal_of(*arguments, folder=Path("/"), environ=ENVIRON | environ) as terminal:
        if until:
            terminal.until(until)
            terminal.stop()
        terminal.end()
    return terminal.output


@pytest.mark.parametrize("columns", [80, 120])
def test_no_line_is_wider_than_the_terminal(columns: int) -> None:
    output = in_a_terminal("check", "--offline", "--explain", COLUMNS=str(columns))
    lines = ESCAPE.sub("", output).splitlines()
    report = [*lines[: lines.index("")], lines[-1]]  # without the settings, which are a table
    assert len(report) > 5
    assert max(map(len, report)) <= columns


@pytest.mark.parametrize(
    ("settings", "title"),
    [
        ({"VENUE": "bybit"}, "Bybit v5"),
        (
            {"VENUE": "okx", "ENVIRONMENT": "demo", "KEYS__MAIN__PASSPHRASE": "env:PASSPHRASE"},
            "OKX v5 (demo)",
        ),
    ],
)
def test_a_gateway_says_in_a_terminal_where_bots_connect(
    tmp_path: Path, settings: dict[str, str], title: str
) -> None:
    (tmp_path / "main.secret").write_text("correct-horse-battery-staple")
    (tmp_path / "main.secret").chmod(0o600)
    secret = {"SEALGATE_KEYS__MAIN__SECRET": f"file:{tmp_path / 'main.secret'}", "PASSPHRASE": "any"}
    output = in_a_terminal(
        "serve", until="stop with", **secret, **{f"SEALGATE_{one}": text for one, text in settings.items()}
    )
    [block] = re.findall(r"^Sealgate (.*?)\n\n", output, re.MULTILINE | re.DOTALL)
    head, *lines = block.split("\n")
    assert head.endswith(f" for {title}, https://exchange.example")
    named = dict(re.split(r"  +", line.strip()) for line in lines)
    assert named.keys() == {"bots", "live page", "stop with"}
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", named["bots"])
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", named["live page"])
    assert "listening" not in output


def test_a_gateway_says_in_a_terminal_which_bots_have_an_address_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "main.secret").write_text("correct-horse-battery-staple")
    (tmp_path / "main.secret").chmod(0o600)
    settings = {
        "SEALGATE_KEYS__MAIN__SECRET": f"file:{tmp_path / 'main.secret'}",
        "SEALGATE_BOTS__GRID__LISTEN": "127.0.0.1:0",
    }
    output = in_a_terminal("serve", until="stop with", **settings)
    assert re.search(r"^  bot grid +http://127\.0\.0\.1:\d+  \(without a token\)$", output, re.MULTILINE)


def test_colours_in_a_terminal() -> None:
    output = in_a_terminal("check", "--offline", COLUMNS="100")
    assert "\x1b[31m\x1b[1mfail\x1b[0m" in output
    assert "\x1b[32mok  \x1b[0m" in output


def test_a_level_has_one_colour_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert coloured("x", "warn") == "\x1b[33mx\x1b[0m"


FINDING = Finding(
    "keys.main",
    Level.FAIL,
    "a signed read was refused",
    "do this",
    (Cause(Weight.LIKELY, "a cause", "do this", "seen"), Cause(Weight.POSSIBLE, "another", "do that")),
)


def test_a_line_of_a_terminal_is_wrapped_and_says_what_to_do_below(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert list(finding_lines(FINDING, 45)) == [
        "fail  keys.main          a signed read was",
        "                         refused",
        "                         -> do this",
    ]


def test_elsewhere_a_finding_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert list(finding_lines(FINDING, None)) == [
        "fail  keys.main          a signed read was refused; do this"
    ]


def test_a_finding_about_an_exchange_begins_with_its_name_and_the_others_keep_its_column(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    of_perp = replace(FINDING, exchange="perp")
    lines = [line for one in (FINDING, of_perp) for line in finding_lines(one, None, name_length=4)]
    assert lines == [
        "fail  keys.main                a signed read was refused; do this",
        "fail  perp: keys.main          a signed read was refused; do this",
    ]


def test_causes_are_numbered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert list(finding_lines(FINDING, None, explains=True))[1:] == [
        "        1. likely: a cause (seen); do this",
        "        2. possible: another; do that",
    ]


class Terminal:
    """Something that passes for a terminal, and can be waited for."""

    def __init__(self, *, is_terminal: bool) -> None:
        self._is_terminal = is_terminal
        self.written = ""
        self.has_written = threading.Event()

    def isatty(self) -> bool:
        return self._is_terminal

    def write(self, text: str) -> None:
        self.written += text
        self.has_written.set()

    def flush(self) -> None:
        pass


@contextmanager
def stderr(monkeypatch: pytest.MonkeyPatch, *, is_terminal: bool) -> Iterator[Terminal]:
    terminal = Terminal(is_terminal=is_terminal)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", terminal)
        yield terminal


def test_what_takes_its_time_is_told_and_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal_module, "_SOON_S", 0.0)
    with stderr(monkeypatch, is_terminal=True) as terminal, terminal_module.waiting_for("asking"):
        assert terminal.has_written.wait(20)
    assert terminal.written == "asking…\r\x1b[K"


def test_what_is_over_soon_needs_no_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal_module, "_SOON_S", 3600.0)
    with stderr(monkeypatch, is_terminal=True) as terminal, terminal_module.waiting_for("asking"):
        pass
    assert terminal.written == ""


def test_a_file_hears_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal_module, "_SOON_S", 0.0)
    with stderr(monkeypatch, is_terminal=False) as terminal, terminal_module.waiting_for("asking"):
        pass
    assert terminal.written == ""
