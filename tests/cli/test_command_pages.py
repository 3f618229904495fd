"""The manual page: the one that `--help` makes, and man(1) can show it. tests/venues has docs/commands.md."""

import subprocess

import pytest

from cli.command_pages import MANUAL, commands, manual
from rig.programs import path_of
from sealgate.cli import COMMANDS


def test_the_manual_is_the_one_that_help_makes() -> None:
    """Where it is not: PYTHONPATH=tests python -m venues.pages."""
    assert MANUAL.read_text("utf-8") == manual()


def test_every_command_is_in_it() -> None:
    names = [page.name.split()[1] for page in commands()]
    assert set(names) == set(COMMANDS)
    assert all(page.paragraphs for page in commands())


@pytest.mark.needs("groff")
def test_man_shows_it_without_a_warning() -> None:
    done = subprocess.run(
        [path_of("groff"), "-man", "-ww", "-Kutf8", "-Tutf8", "-P-cbou", str(MANUAL)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    assert "EXIT STATUS" in done.stdout
    assert "--settle-all" in done.stdout
