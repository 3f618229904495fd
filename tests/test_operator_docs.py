"""The parts about what signs: each command in them is run, each table compared with the code."""

import re
import shlex
import subprocess
import tomllib
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from rig.command import ended_command, environ_of
from sealgate.cli import main
from sealgate.config import load_config
from sealgate.diagnose.schemes import ENDS, End
from sealgate.keys.key_audit import CHECKS, NOT_LISTED
from sealgate.sandbox.server import running_sandbox

DOCS = Path(__file__).parent.parent / "docs"
FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def part(page: str, heading: str) -> str:
    """Return a part of a document, from its heading to the next one."""
    return (DOCS / page).read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


PAGES = {
    "discover": part("sandbox.md", "Find out the scheme"),
    "sign": part("troubleshooting.md", "See what is signed"),
    "keys": part("sandbox.md", "Keys at the exchange"),
}


def blocks(page: str, language: str) -> list[str]:
    return [text for own, text in FENCE.findall(PAGES[page]) if own == language]


def lines(page: str) -> list[str]:
    return [line for text in blocks(page, "sh") for line in text.splitlines()]


OFFLINE = [line for line in lines("sign") if line.startswith("sealgate sign ")]
SANDBOX = [line for line in lines("discover") if line.startswith("sealgate sandbox")]
ONLINE = [
    line
    for page in PAGES
    for line in lines(page)
    if line not in (*OFFLINE, *SANDBOX) and not line.startswith("printf")
]


@pytest.mark.parametrize("line", ONLINE)
async def test_it_runs_against_the_sandbox(line: str) -> None:
    """An audit fails, for the ready-made key has no whitelist. Nobody can be asked here."""
    arguments = shlex.split(line)[1:]
    if arguments[0] == "discover":
        arguments += ["--yes", "--every", "0.1"]
    async with running_sandbox() as sandbox:
        result = await ended_command(*arguments, environ=environ_of(sandbox))
    assert result.exit_code == (1 if "audit" in arguments else 0), result.output
    assert result.stdout


@pytest.mark.parametrize("line", SANDBOX)
def test_the_rehearsal_parses(line: str) -> None:
    name, *arguments = shlex.split(line)[1:]
    command = main.get_command(click.Context(main), name)
    assert command is not None
    command.make_context(name, arguments)


def test_signing_prints_what_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (made,) = [line for line in lines("sign") if line.startswith("printf")]
    subprocess.run(["sh", "-e", "-c", made], check=True)
    environ = {
        "SEALGATE_VENUE": "bybit",
        "SEALGATE_KEYS__MAIN__API_KEY": "0123456789abcdef",
        "SEALGATE_KEYS__MAIN__SECRET": "env:EXCHANGE_SECRET",
        "EXCHANGE_SECRET": "correct-horse-battery-staple",
    }
    shown, command = [CliRunner().invoke(main, shlex.split(line)[1:], env=environ).stdout for line in OFFLINE]
    assert [shown] == blocks("sign", "text")
    assert command.startswith("curl ")


def test_toml_is_valid(tmp_path: Path) -> None:
    file = tmp_path / "sealgate.toml"
    texts = [text for page in PAGES for text in blocks(page, "toml")]
    file.write_text("\n".join(['base_url = "https://api.example.com"', *texts]))
    config = load_config(file, environ={})
    assert config.signing.encoding == "base64"
    assert config.keys["main"].session == f"file:{tmp_path}/main.session"
    assert all(tomllib.loads(text) for text in texts)


def test_every_finding_is_in_the_table() -> None:
    named = set(re.findall(r"^\| `(\w+)` \| (?:fail|warn)", PAGES["keys"], re.MULTILINE))
    assert named == {*CHECKS, NOT_LISTED}


def test_every_end_of_a_search_is_in_the_table() -> None:
    """Each row begins with words of what is printed."""
    rows = re.findall(r"^\| ([a-z][^|`]+) \| [A-Z]", PAGES["discover"], re.MULTILINE)
    told = [text.replace("{words}", "404") for text in ENDS.values()]
    for row in rows:
        assert any(row in text for text in told), row
    assert len(rows) == len(ENDS) - len({End.SESSION_WANTED, End.TROUBLE})
