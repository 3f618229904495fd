"""Says on a terminal what takes its time, and takes it back when it is over. Elsewhere it says nothing."""

import contextlib
import sys
import threading
from collections.abc import Iterator

_SOON_S = 0.5  # what is over by then needs no word
_CLEAR = "\r\x1b[K"


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
