"""What commands print for people: colours, causes, errors, and on a terminal what takes its time."""

import contextlib
import errno
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import NoReturn, TextIO

import click

# By the name of the method that logs.
JOURNAL_LEVELS = {"debug": "<7>", "info": "<6>", "warning": "<4>", "error": "<3>", "critical": "<2>"}


_SOON_S = 0.5  # what is over by then needs no word
_CLEAR = "\r\x1b[K"


# click drops them where the output is no terminal; NO_COLOR (no-color.org) turns them off, too.
_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}
_CAUSES = {errno.EADDRINUSE: "another program listens there"}


def coloured(text: str, level: str) -> str:
    """Return a text in the colour of "ok", "warn" or "fail"."""
    return click.style(text, fg=_COLOURS[level], bold=level == "fail" or None) if _are_wanted() else text


def faint(text: str) -> str:
    """Return a text that says what is of less weight."""
    return click.style(text, dim=True) if _are_wanted() else text


def _are_wanted() -> bool:
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def plain_cause(error: OSError) -> str:
    """Return the cause, without number and address.

    asyncio writes a sentence of its own into `strerror`. Errors of name resolution have negative numbers and
    their own words.
    """
    number = error.errno or 0
    if number <= 0:
        return (error.strerror or str(error) or type(error).__name__).lower()
    return _CAUSES.get(number) or os.strerror(number).lower()


def leave_with_error(text: str, code: int = 2) -> NoReturn:
    """Print each line of an error to stderr and leave with an exit code."""
    level = _journal_level()
    for line in text.splitlines():
        click.echo(f"{level}sealgate: {coloured('error:', 'fail')} {line}", err=True)
    raise click.exceptions.Exit(code)


def _journal_level() -> str:
    """Return what marks a line as an error where stderr is systemd's journal."""
    if "JOURNAL_STREAM" not in os.environ:
        return ""

    return JOURNAL_LEVELS["error"] if is_journal(sys.stderr, os.environ) else ""


def leave(text: str) -> NoReturn:
    """Print to stderr why what was asked for did not come about, and leave with exit code 1."""
    click.echo(f"sealgate: {text}", err=True)
    raise click.exceptions.Exit(1)


def shortened(api_key: str) -> str:
    """Return an API key's id as people tell it apart: its two ends."""
    return api_key if len(api_key) <= 12 else f"{api_key[:4]}…{api_key[-4:]}"  # noqa: PLR2004 - no gain below


@contextlib.contextmanager
def waiting_for(text: str) -> Iterator[None]:
    """Show `text…` on stderr once the block has taken a while."""
    if not sys.stderr.isatty():
        yield
        return
    shown = threading.Event()
    timer = threading.Timer(_SOON_S, _show, (text, shown))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        if shown.is_set():
            _write(_CLEAR)


def _show(text: str, shown: threading.Event) -> None:
    shown.set()
    _write(f"{text}…")


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def is_journal(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether a stream leads to systemd's journal itself, as JOURNAL_STREAM says (systemd.exec(5))."""
    try:
        found = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return environ.get("JOURNAL_STREAM") == f"{found.st_dev}:{found.st_ino}"
