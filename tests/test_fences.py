"""Every fenced block of README and docs is run (tests/test_readme.py) or at least parsed, here."""

import json
import re
import shlex
import subprocess
from pathlib import Path

import click
import pytest

from rig.fences import ROOT, Fence, fences
from sealgate.cli import main
from sealgate.config import load_config

BLOCKS = list(fences())
SHELL = ("sh", "console")
PARSED = (*SHELL, "python", "js", "toml", "json")


def blocks(*languages: str) -> list[object]:
    """Return the blocks in these languages, but for a venue's file, which tests/venues reads."""
    return [
        pytest.param(block, id=block.name)
        for block in BLOCKS
        if block.language in languages and not block.label.startswith("venue")
    ]


def commands() -> list[object]:
    """Return each call of the program, wherever in a line it stands."""
    return [
        pytest.param(found[1], id=f"{block.name}-{found[1]}")
        for block in BLOCKS
        if block.language in SHELL
        for found in re.finditer(r"(?:^|; )(sealgate [^;|>)#\n]+)", block.text, re.MULTILINE)
    ]


def test_there_is_no_language_that_nobody_parses() -> None:
    # A picture has none; what commands print is compared in test_operator_docs and test_deploying.
    assert {block.language for block in BLOCKS} <= {*PARSED, "", "text", "http", "console"}
    assert len(commands()) > 15


@pytest.mark.parametrize("line", commands())
def test_a_command_line_parses(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in re.findall(r"[\w-]+\.(?:json|txt)\b", line):  # a file that must be there
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    parse(line)


def parse(line: str) -> None:
    """Parse a command line as the program does. Raises UsageError, ValueError or IndexError."""
    command: click.Command | None = main
    words = shlex.split(line, comments=True)[1:]
    while isinstance(command, click.Group):
        _, command, words = command.resolve_command(click.Context(command), words)
    assert command is not None
    command.make_context(line, words)


@pytest.mark.parametrize("block", blocks(*SHELL))
def test_a_shell_can_read_it(block: Fence) -> None:
    subprocess.run(["sh", "-n"], input=block.text, text=True, check=True)


@pytest.mark.parametrize("block", blocks("python"))
def test_python_can_read_it(block: Fence) -> None:
    compile(block.text, block.name, "exec")


@pytest.mark.needs("node")
@pytest.mark.parametrize("block", blocks("js"))
def test_node_can_read_it(block: Fence, tmp_path: Path) -> None:
    file = tmp_path / "recipe.mjs"
    file.write_text(block.text)
    subprocess.run(["node", "--check", file], check=True)


@pytest.mark.parametrize("block", blocks("json"))
def test_json_is_json(block: Fence) -> None:
    json.loads(block.text)


@pytest.mark.parametrize("block", blocks("toml"))
def test_toml_is_a_valid_configuration_beside_a_key(block: Fence, tmp_path: Path) -> None:
    file = tmp_path / "sealgate.toml"
    file.write_text(block.text)
    key = {"SEALGATE_KEYS__MAIN__API_KEY": "ak", "SEALGATE_KEYS__MAIN__SECRET": "env:S"}
    environ = {"SEALGATE_BASE_URL": "https://exchange.example", **key}
    if "[exchanges." in block.text:  # each of them has a key in it
        environ = {}
    elif ".policies.spot]" in block.text:
        spot = {"SEALGATE_EXCHANGES__SPOT__VENUE": "binance", "SEALGATE_KEYS__MAIN__EXCHANGE": "spot"}
        environ = {**key, **spot, "SEALGATE_BOTS__GRID__TOKEN": "env:T"}
    load_config(file, environ=environ)


def test_each_message_of_the_troubleshooting_page_is_one_of_the_programs() -> None:
    sources = "\n".join(file.read_text() for file in (ROOT / "src" / "sealgate").rglob("*.py"))
    rows = re.findall(r"^\| (`.+?) \|", (ROOT / "docs" / "troubleshooting.md").read_text(), re.MULTILINE)
    assert len(rows) > 35
    named = [message for row in rows for message in re.findall(r"`([^`]+)`", row)]
    assert [message for message in named if message not in sources] == []
