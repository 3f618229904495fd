"""The log's way out of the process: a thread writes, so that nobody waits for a terminal, a pipe or a disk.

What reads stderr may stall (a full pipe, a paused terminal, journald under load), and a write then blocks for
as long. Lines wait here meanwhile, up to a bound; beyond it they are lost, and so are those that a full disk
refuses. The log says how many.
"""

import contextlib
import queue
import threading
from collections.abc import Callable
from typing import TextIO

_MOST_CHARACTERS = 4 * 1024**2  # that wait
_REST_S = 0.02  # between two writes: to wake the thread up for each one would cost more than the line
_END_S = 2.0


class LogStream:
    """What structlog prints to. `say_lost` turns a number of lost writes into a line of the log."""

    def __init__(self, stream: TextIO, say_lost: Callable[[int], str]) -> None:
        self._stream = stream
        self._say_lost = say_lost
        self._queue: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._waiting = 0  # characters; each thread writes its own one of the two counters
        self._written = 0
        self._lost = 0
        self._is_closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sealgate-log", daemon=True)
        self._thread.start()

    def write(self, text: str) -> None:
        """Take text, or lose it if too much is waiting."""
        if self._waiting - self._written + len(text) > _MOST_CHARACTERS:
            self._lost += 1
            return
        if self._lost:
            text = self._say_lost(self._lost) + "\n" + text
            self._lost = 0
        self._waiting += len(text)
        self._queue.put(text)

    def flush(self) -> None:
        """Do nothing: the thread flushes what it writes."""

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        return self._stream.isatty()

    def close(self) -> None:
        """Write the text that is waiting; give up after two seconds."""
        self._is_closing.set()
        self._queue.put("")  # wakes the thread that waits for text
        self._thread.join(_END_S)

    def _run(self) -> None:
        is_last = False
        refused = 0  # lines that could not be written
        while not is_last:
            is_last = self._is_closing.is_set()  # asked first, so that all that came before it is written
            text = self._take(waits=not is_last)
            # A full disk or a reader that is gone must stop neither the log for good nor the gateway.
            try:
                self._stream.write(f"{self._say_lost(refused)}\n{text}" if refused and text else text)
                self._stream.flush()
            except (OSError, ValueError):
                refused += text.count("\n")  # the stream may keep the first of them for later
            else:
                refused = 0 if text else refused
            self._written += len(text)
            self._is_closing.wait(_REST_S)

    def _take(self, *, waits: bool) -> str:
        """Return all text that is waiting; with `waits`, wait for the first."""
        texts: list[str] = []
        with contextlib.suppress(queue.Empty):
            texts.append(self._queue.get(block=waits))
            while True:
                texts.append(self._queue.get_nowait())
        return "".join(texts)
