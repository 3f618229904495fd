"""Hands the outcomes to their readers, a few at a time and off the way of requests.

A log line and a dozen counters cost a tenth of a small request. They are made a moment later, so that no bot
waits for them, and few at a time, so that none waits behind many.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence

import structlog

from sealgate.core.outcome import Batch, Outcome

Reader = Callable[[Batch], None]

_DELAY_S = 0.005
_MOST = 16  # at once

log = structlog.get_logger("sealgate.reporter")


class Reporter:
    """Collects what has ended; each of `readers` gets all the outcomes, in order."""

    def __init__(self, readers: Sequence[Reader]) -> None:
        self._readers = list(readers)
        self._ended: list[Outcome] = []

    def add(self, reader: Reader) -> None:
        """Let one more read from now on."""
        self._readers.append(reader)

    def report(self, outcome: Outcome) -> None:
        """Take the record of a request that ended; the readers get it within milliseconds."""
        self._ended.append(outcome)
        if len(self._ended) == 1:
            asyncio.get_running_loop().call_later(_DELAY_S, self.flush)
        elif len(self._ended) == _MOST:
            asyncio.get_running_loop().call_soon(self.flush)

    def flush(self) -> None:
        """Give the readers what is there."""
        if not self._ended:
            return
        batch, self._ended = Batch(self._ended), []
        for reader in self._readers:
            try:
                reader(batch)
            except Exception:  # a full disk under the log must not stop the metrics, nor the gateway
                with contextlib.suppress(OSError):
                    log.exception("reader_failed")
