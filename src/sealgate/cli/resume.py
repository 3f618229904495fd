"""`sealgate resume`: lets orders go again."""

from pathlib import Path

import click

from sealgate.cli.halting import change, scope_options


@click.command("resume")
@scope_options
def command(
    config_file: Path | None, socket_file: Path | None, *, as_json: bool, **command: str | None
) -> None:
    """Let orders go again: all, or what was halted of a bot, with a key, or of both.

    A wider halt still stands, and is printed. A key that the exchange refused is used again at once, and
    named.
    """
    change("resume", command, (config_file, socket_file), as_json=as_json)
