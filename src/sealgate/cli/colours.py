"""The same few colours in all commands. click drops them where the output is no terminal.

`NO_COLOR` (no-color.org) and a terminal that has none turn them off, too.
"""

import os

import click

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


def coloured(text: str, level: str) -> str:
    """Return a text in the colour of "ok", "warn" or "fail"."""
    return click.style(text, fg=_COLOURS[level], bold=level == "fail" or None) if _are_wanted() else text


def faint(text: str) -> str:
    """Return a text that says what is of less weight."""
    return click.style(text, dim=True) if _are_wanted() else text


def _are_wanted() -> bool:
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
