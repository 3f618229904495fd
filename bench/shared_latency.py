"""What sharing adds to a request: gateways without Redis, alone at it, leading another, and led by another.

All stand before the same plain upstream and take turns; nothing limits them. A request needs no answer from
Redis there, so what is added is the work for its report.
"""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from bench.pages import table
from bench.process import Program, Way, running
from bench.programs import gateway_environ, running_upstream, serving, started
from bench.programs import measure as load
from rig.ports import free_port
from rig.redis import command

WITHOUT, ALONE, LEADS, IS_LED = WAYS = ("without Redis", "alone at Redis", "leads", "is led")
_CONNECTIONS = (1, 8)
_ROUNDS, _SECONDS = 10, 0.8
_DATABASES = {ALONE: 1, LEADS: 2, IS_LED: 2}


@contextmanager
def running_ways(folder: Path) -> Iterator[dict[str, Way]]:
    port = free_port()
    with ExitStack() as stack:
        stack.enter_context(running(Program(command(port), stdout=subprocess.DEVNULL)))
        upstream = stack.enter_context(running_upstream())
        ways = {}
        for name in WAYS:
            own = folder / name
            own.mkdir()
            url = f"redis://127.0.0.1:{port}/{_DATABASES[name]}" if name in _DATABASES else ""
            environ = gateway_environ(f"http://127.0.0.1:{upstream.port}", SEALGATE_LIMITS__REDIS=url)
            until = "limit_shared" if url else "listening"
            ways[name] = stack.enter_context(started(serving(own, environ, until=until)))
        yield ways


def measure(*, is_quick: bool) -> str:
    rounds = 3 if is_quick else _ROUNDS
    with TemporaryDirectory() as folder, running_ways(Path(folder)) as ways:
        rows = [row for connections in _CONNECTIONS for row in lines(ways, connections, rounds)]
    head = ("gateway", "connections", "p50 µs", "added p50 µs", "p99 µs", "CPU µs/request")
    return table(head, rows)


def lines(ways: dict[str, Way], connections: int, rounds: int) -> Iterator[tuple[str, ...]]:
    found = [{name: load(way, connections, _SECONDS) for name, way in ways.items()} for _ in range(rounds)]
    for name in ways:
        p50, p99, cpu = (median(one[name][key] for one in found) for key in ("p50_us", "p99_us", "cpu_us"))
        added = median(one[name]["p50_us"] - one[WITHOUT]["p50_us"] for one in found)
        yield name, str(connections), f"{p50:.0f}", f"{added:+.0f}", f"{p99:.0f}", f"{cpu:.0f}"
