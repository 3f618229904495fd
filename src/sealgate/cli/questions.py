"""Questions on a terminal, asked again while the answer cannot be right. Secrets are not shown."""

import contextlib
import os
import select
import sys
import termios
from collections.abc import Callable, Iterator

import click

_MOST_BYTES = 64 * 1024
_LONGEST_WAIT_S = 0.5
_BEGIN, _END = b"-----BEGIN ", b"-----END "

# What is wrong with an answer and what to do, None if nothing is.
Fault = Callable[[str], str | None]


def can_ask() -> bool:
    """Whether there is a person to ask."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def name_of(option: str) -> str:
    """Return the name by which a command gets an option: `api_key` for `--api-key`."""
    return option.removeprefix("--").replace("-", "_")


def ask(question: str, fault: Fault, default: str = "") -> str:
    """Return the answer without blanks around it. Raises EOFError."""
    shown = f"{question} [{default}]: " if default else f"{question}: "
    while True:
        click.echo(shown, nl=False)
        answer = _line().decode("utf-8", "replace").strip() or default
        if (wrong := fault(answer)) is None:
            return answer
        click.echo(f"  {wrong}")


def ask_unseen(question: str) -> bytes:
    """Return an answer that is not shown; a private key in PEM or JSON with all lines. Raises EOFError."""
    with _without_echo():  # before the question: who answers at once is not seen either
        click.echo(f"{question}: ", nl=False)
        try:
            answer = _line().strip()
            while _goes_on(answer):
                answer += b"\n" + _line().strip()
        finally:
            click.echo()
    return answer


def _goes_on(answer: bytes) -> bool:
    """Whether lines are still to come of what was pasted."""
    is_open = (answer.startswith(_BEGIN) and _END not in answer) or (
        answer.startswith(b"{") and not answer.endswith(b"}")
    )
    return is_open and len(answer) < _MOST_BYTES


def _line() -> bytes:
    """Read a line. Not by way of sys.stdin, which reads ahead of what is asked."""
    line, terminal = b"", sys.stdin.fileno()
    while not line.endswith(b"\n"):
        # A Ctrl-C that comes right before a call that waits is seen only after it.
        while not select.select([terminal], [], [], _LONGEST_WAIT_S)[0]:
            pass
        part = os.read(terminal, _MOST_BYTES)
        if not part:
            raise EOFError
        line += part
    return line


@contextlib.contextmanager
def _without_echo() -> Iterator[None]:
    """Show nothing of what is typed. What was typed before, and what is left over at the end, is dropped."""
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    unseen = [*before]
    unseen[3] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSAFLUSH, unseen)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSAFLUSH, before)
