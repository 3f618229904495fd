"""Completion as a shell asks for it: by the program itself, with variables that the script sets."""

import subprocess
import sys
from pathlib import Path

import pytest

from rig.programs import path_of
from sealgate.cli import COMMANDS

PROGRAM = Path(sys.executable).parent / "sealgate"


def completed(line: str) -> list[str]:
    """Return what bash is offered for the last word of a line."""
    words = line.split(" ")
    environ = {
        "_SEALGATE_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    done = subprocess.run([PROGRAM], env=environ, capture_output=True, text=True, check=True)
    return [one.partition(",")[2] for one in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("sealgate ", list(COMMANDS)),
        ("sealgate he", ["healthcheck"]),
        ("sealgate --ver", ["--version"]),
        ("sealgate config s", ["show", "schema"]),
        ("sealgate check --off", ["--offline"]),
        ("sealgate completion z", ["zsh"]),
        ("sealgate config init --venue krak", ["kraken", "krakenfutures"]),
    ],
)
def test_what_a_shell_is_offered(line: str, offered: list[str]) -> None:
    assert completed(line) == offered


def test_completing_a_command_imports_none() -> None:
    code = (
        "import sys; from sealgate.cli import main; import click\n"
        "found = main.shell_complete(click.Context(main), 's')\n"
        "print(*(item.value for item in found))\n"
        "print(*(name for name in sys.modules if name.startswith('sealgate.cli.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found, imported = done.stdout.splitlines()
    assert found.split() == [name for name in COMMANDS if name.startswith("s")]
    assert not {f"sealgate.cli.{name}" for name in COMMANDS} & {*imported.split()}


@pytest.mark.parametrize(
    "shell", [pytest.param(shell, marks=pytest.mark.needs(shell)) for shell in ("bash", "zsh", "fish")]
)
def test_the_script_is_one_of_its_shell(shell: str) -> None:
    done = subprocess.run([PROGRAM, "completion", shell], capture_output=True, text=True, check=True)
    assert "_SEALGATE_COMPLETE=" in done.stdout
    subprocess.run([path_of(shell), "-n", "-c", done.stdout], check=True)
