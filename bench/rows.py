"""What requests and replies are like in one row of the benchmarks of a request's cost.

In all of them a client sends its next request after the whole reply to the last one: nothing is pipelined.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.process import Way
from bench.programs import certificates, running_upstream
from bench.rivals import Setting


@dataclass(frozen=True)
class Row:
    """What sets it apart from the plain one: `reply` is for upstream.py, `load` for load.py."""

    name: str
    meaning: str
    reply: Sequence[str] = ()
    load: Sequence[str] = ()
    has_tls: bool = False
    has_journal: bool = False

    @contextmanager
    def running(self, folder: Path) -> Iterator[tuple[Way, Setting]]:
        """Run its upstream; yield that, and what the ways to it have to know."""
        ca_file, own = certificates(folder) if self.has_tls else (None, None)
        with running_upstream(*self.reply, *([str(own), str(own)] if own else [])) as direct:
            yield direct, Setting(f"127.0.0.1:{direct.port}", ca_file, self.has_journal)


_DATED, _CHUNKED, _UNIQUE = ("--dated",), ("--chunked",), ("--unique",)
PLAIN = Row("plain", "the same head each time, the shortest reply")
ROWS = {
    row.name: row
    for row in (
        PLAIN,
        Row("dated", "each reply has a `Date` and a ray id of its own", reply=_DATED),
        Row("chunked", "each reply is chunked", reply=_CHUNKED),
        Row("unique", "each request has a new `X-Request-Id` and `Idempotency-Key`", load=_UNIQUE),
        Row("all three", "all of these", reply=(*_DATED, *_CHUNKED), load=_UNIQUE),
        Row("journal", "the plain one, and the gateway keeps a journal", has_journal=True),
        Row("TLS", "the plain one over TLS to the upstream", has_tls=True),
    )
}
