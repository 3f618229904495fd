"""The memory of the gateway and of others, and how long each takes until it answers an order.

RSS is looked at after the first order, with 1,000 connections of which each has a request under way, with
1,000 that each hold the head of a request that lacks one byte to 64 KB, and when those are gone. A way that
takes no such heads answers or closes instead. Each of these states has a process of its own.
"""

import argparse
import json
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from bench.orders import order
from bench.pages import machine, table, write_part
from bench.process import Way, allow_many_connections, resident_mb
from bench.programs import STARTS, measure, running_upstream, started
from bench.rivals import MissingError, Setting

_MANY = 1000  # connections: as many as `listen.max_connections` allows
_BUSY_S = 2.0
_HELD_S, _GONE_S = 3.0, 5.0  # until the heads are read; until their memory is given back
_POLL_S = 0.1
_HEAD = order(fields=b"".join(b"X-%d: %b\r\n" % (at, b"x" * 8000) for at in range(9)))[: 64 * 1024 - 1]

HEAD = ("way", "ready after s", "RSS at rest MB", "1,000 requests", "1,000 unfinished heads", "gone")
Figures = dict[str, float | None]  # None where a way takes no such heads


def figures(name: str, starts: int) -> Figures:
    """Return what a way's row has. Raises MissingError."""
    with running_upstream() as direct:
        setting = Setting(f"127.0.0.1:{direct.port}")
        ready_s = []

        @contextmanager
        def fresh() -> Iterator[Way]:
            with TemporaryDirectory() as folder, started(STARTS[name](setting, Path(folder))) as way:
                ready_s.append(way.ready_s)
                yield way

        found = look(fresh, _at_rest, _busy) | look(fresh, _held)
        while len(ready_s) < starts:
            look(fresh)
    return {"ready_s": median(ready_s), **found}


def look(fresh: Callable[[], AbstractContextManager[Way]], *looks: Callable[[Way], Figures]) -> Figures:
    with fresh() as way:
        found: Figures = {}
        for one in looks:
            found |= one(way)
        return found


def _at_rest(way: Way) -> Figures:
    time.sleep(_POLL_S)
    return {"rest": resident_mb(way.pid)}


def _busy(way: Way) -> Figures:
    return {"busy": measure(way, _MANY, _BUSY_S)["resident_mb"]}


def _held(way: Way) -> Figures:
    with ExitStack() as stack:
        address = ("127.0.0.1", way.port)
        connections = [stack.enter_context(socket.create_connection(address)) for _ in range(_MANY)]
        for connection in connections:
            with suppress(OSError):
                connection.sendall(_HEAD)
        until = time.monotonic() + _HELD_S
        most = 0.0
        while time.monotonic() < until:
            most = max(most, resident_mb(way.pid))
            time.sleep(_POLL_S)
        if not all(map(_is_waiting, connections)):
            return {"held": None, "gone": None}
    time.sleep(_GONE_S)
    return {"held": most, "gone": resident_mb(way.pid)}


def _is_waiting(connection: socket.socket) -> bool:
    """Return whether there is neither an answer nor an end."""
    connection.setblocking(False)
    try:
        connection.recv(1)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def report(found: dict[str, Figures]) -> str:
    def cell(value: float | None) -> str:
        return "refused" if value is None else f"{value:.0f}"

    rows: list[Sequence[str]] = [
        (name, f"{one['ready_s']:.2f}", *(cell(one[state]) for state in ("rest", "busy", "held", "gone")))
        for name, one in found.items()
    ]
    return f"{machine()}\n\n{table(HEAD, rows)}"


def main() -> None:
    parser = argparse.ArgumentParser(description="RSS at rest, busy and under unfinished heads; readiness.")
    parser.add_argument("--only", action="append", choices=tuple(STARTS), help="this way; may be repeated")
    parser.add_argument("--starts", type=int, default=5, help="of each way, timed (5)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument(
        "--write", action="store_true", help="put the table into docs/internals/performance.md"
    )
    options = parser.parse_args()
    allow_many_connections()
    found = {}
    for name in options.only or STARTS:
        try:
            found[name] = figures(name, options.starts)
        except MissingError as error:
            print(f"Without {name}: {error}", file=sys.stderr)
    print(json.dumps(found, indent=1) if options.json else report(found))
    if options.write:
        write_part("memory", report(found))


if __name__ == "__main__":
    main()
