"""`sealgate halt`: stops orders at once."""

from typing import Any

import click

from sealgate.cli.halting import change, scope_options


@click.command("halt")
@scope_options
def command(bot: str | None, key: str | None, **options: Any) -> None:
    """Stop orders at once: all, or those of a bot, with a key, or both.

    Those that wait in the gateway are refused too; reads and cancels still pass, and so does what was sent
    already. It holds until `sealgate resume`; over a restart only with journal.file.
    """
    change("halt", {"bot": bot, "key": key}, **options)
