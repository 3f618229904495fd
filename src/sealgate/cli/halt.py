"""`sealgate halt`: stops orders at once."""

from pathlib import Path

import click

from sealgate.cli.halting import change, scope_options


@click.command("halt")
@scope_options
def command(
    config_file: Path | None, socket_file: Path | None, *, as_json: bool, **command: str | None
) -> None:
    """Stop orders at once: all, or those of a bot, with a key, or both.

    Those that wait in the gateway are refused too; reads and cancels still pass, and so does what was sent
    already. It holds until `sealgate resume`; over a restart only with journal.file.
    """
    change("halt", command, (config_file, socket_file), as_json=as_json)
