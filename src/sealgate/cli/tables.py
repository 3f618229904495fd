"""What commands print for people: tables, and on a terminal what takes its time."""

import contextlib
import sys
import threading
from collections.abc import Iterator

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table

_SOON_S = 0.5  # what is over by then needs no word
_CLEAR = "\r\x1b[K"


def plain_table(*titles: str) -> Table:
    """Return an empty table with a line below its titles."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    for title in titles:
        table.add_column(title)
    return table


def drawn(content: RenderableType) -> str:
    """Return it as it fits the terminal (80 columns, or $COLUMNS, where there is none)."""
    console = Console()
    with console.capture() as captured:
        console.print(content)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


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
