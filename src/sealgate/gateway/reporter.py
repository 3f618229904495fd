"""Hands the outcomes to their readers, a batch at a time and off the way of requests.

A log line and a dozen counters cost a fifth of a small request. They are written a moment later, together, so
that no bot waits for them.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence

import structlog

from sealgate.core.outcome import Outcome

Reader = Callable[[Sequence[Outcome]], None]

_DELAY_S = 0.01
_MOST = 256  # at once, so that a batch never holds the loop for long

log = structlog.get_logger("sealgate.reporter")


class Reporter:
    """Collects outcomes; each of `readers` gets all of them, in order."""

    def __init__(self, readers: Sequence[Reader]) -> None:
        self._readers = list(readers)
        self._batch: list[Outcome] = []

    def add(self, reader: Reader) -> None:
        """Let one more read from now on."""
        self._readers.append(reader)

    def report(self, outcome: Outcome) -> None:
        """Take an outcome; the readers get it within hundredths of a second."""
        self._batch.append(outcome)
        if len(self._batch) == 1:
            asyncio.get_running_loop().call_later(_DELAY_S, self.flush)
        elif len(self._batch) == _MOST:
            self.flush()

    def flush(self) -> None:
        """Give the readers what is there."""
        batch, self._batch = self._batch, []
        for reader in self._readers if batch else ():
            try:
                reader(batch)
            except Exception:  # a full disk under the log must not stop the metrics, nor the gateway
                with contextlib.suppress(OSError):
                    log.exception("reader_failed")
