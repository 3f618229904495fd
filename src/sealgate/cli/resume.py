"""`sealgate resume`: lets orders go again."""

from typing import Any

import click

from sealgate.cli.halting import change, scope_options


@click.command("resume")
@scope_options
def command(bot: str | None, key: str | None, **options: Any) -> None:
    """Let orders go again: all, or what was halted of a bot, with a key, or of both.

    A wider halt still stands, and is printed. A key that the exchange refused is used again at once, and
    named.
    """
    change("resume", {"bot": bot, "key": key}, **options)
