"""What a request costs the gateway with 1, 10, 100 and 1,000 bots, keys, routes or queued requests.

The gateways of one row run side by side and take turns. Bots, keys and routes come from a configuration file,
32 connections send for all of them in turn, and each has been used before it counts.

For queued requests there are as many connections as may wait, and a published limit lets fewer through than
they ask for: so each order stands in line behind all others, and as many enter as leave. What it costs holds
the way in, the wait and the way out. As the gateway idles between the windows, a request costs more than
without a limit even where the line is short.

`--count` counts instructions instead, by callgrind, which holds on a busy machine. It says whether there is
more to do, not what more memory costs the caches. Its limit is so low that all but one wait in line. There is
no admin address, as what looks on goes by the time.
"""

import argparse
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import cycle, repeat
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from bench.callgrind import costs
from bench.instructions import SERVE_SLOWLY, counting, receive, switch
from bench.orders import VARIED, order, orders, path, token
from bench.pages import INTERNALS, machine, spread, table, write_part
from bench.process import Way, allow_many_connections, wait_until_it_answers
from bench.programs import SERVE, gateway_environ, measure, running_upstream, serving, started
from bench.rivals import API_KEY
from bench.scaling_plot import plot

COUNTS = (1, 10, 100, 1000)
QUEUED = "queued requests"
LIMIT, _PER_S = "40/0.1s", 400  # short, so that each measurement holds many windows
_COUNTED_LIMIT = "2/0.1s"  # less than the gateway does under callgrind
_PATIENT = ("UPSTREAM__CONNECT_TIMEOUT", "UPSTREAM__TOTAL_TIMEOUT", "LIMITS__MAX_WAIT")
_COUNTED = 1500  # requests; of those that wait, a tenth
_TURNS = 1.5  # of each connection before it counts: then as many enter the line as leave it
_CONNECTIONS = 32

Rounds = list[list[float]]  # in each round, what a request costs at each of COUNTS


@dataclass(frozen=True)
class Effort:
    """How many rounds of how long."""

    rounds: int
    seconds: float


FULL, QUICK = Effort(8, 0.5), Effort(3, 0.4)


@dataclass(frozen=True)
class Point:
    """A gateway of its own: so many of that."""

    what: str
    count: int

    @property
    def load(self) -> tuple[int, tuple[str, ...]]:
        """The connections of the client, and its options."""
        if self.what == QUEUED:
            return self.count, ("--warm-up", str(0.5 + _TURNS * self.count / _PER_S))
        return _CONNECTIONS, ("--vary", f"{self.what}:{self.count}")

    def environ(self, base_url: str, folder: Path, limit: str = LIMIT) -> Mapping[str, str]:
        file = folder / "sealgate.toml"
        file.write_text("\n".join(self._rows()))
        more = {f"BENCH_TOKEN_{number}": token(number) for number in range(1, self.count)}
        if self.what == QUEUED:
            more |= {"SEALGATE_LIMITS__KNOWN": limit, "SEALGATE_LIMITS__QUEUE": str(2 * self.count)}
        if self.what == "keys":
            more["SEALGATE_BOTS__BENCH__KEY"] = "main"
        return gateway_environ(base_url, SEALGATE_CONFIG=str(file), **more)

    def _rows(self) -> Iterator[str]:
        """Write the configuration beside the first key and the first bot, which the environment has."""
        for number in range(1, self.count) if self.what in {"bots", "keys"} else ():
            yield f'[bots.bot{number}]\ntoken = "env:BENCH_TOKEN_{number}"'
            if self.what == "keys":
                yield f'key = "key{number}"'
                yield f'[keys.key{number}]\napi_key = "{API_KEY}-{number}"\nsecret = "env:BENCH_SECRET"'
        for number in range(self.count) if self.what == "routes" else ():
            yield f'[[routes]]\nmatch = "POST {path(number)}"\nlane = "order"'


@contextmanager
def running_points(what: str, folder: Path) -> Iterator[dict[Point, Way]]:
    with ExitStack() as stack:
        direct = stack.enter_context(running_upstream())
        ways = {}
        for point in (Point(what, number) for number in COUNTS):
            own = folder / str(point.count)
            own.mkdir()
            environ = point.environ(f"http://127.0.0.1:{direct.port}", own)
            ways[point] = stack.enter_context(started(serving(own, environ)))
        yield ways


def cost_us(point: Point, way: Way, seconds: float) -> float:
    connections, options = point.load
    return measure(way, connections, seconds, *options)["cpu_us"]


def measure_row(what: str, effort: Effort) -> Rounds:
    with TemporaryDirectory() as folder, running_points(what, Path(folder)) as ways:
        for point, way in ways.items():
            cost_us(point, way, 1.5)  # each bot, key and route is used before it counts
        return [
            [cost_us(point, way, effort.seconds) for point, way in ways.items()] for _ in range(effort.rounds)
        ]


def instructions(point: Point) -> float:
    """Count the instructions of a request, in thousands, after all that there is was used once."""
    is_queued = point.what == QUEUED
    messages = repeat(order()) if is_queued else cycle(orders(point.what, point.count))  # type: ignore[arg-type] # one of VARIED
    counted = _COUNTED // 10 if is_queued else _COUNTED
    with TemporaryDirectory() as name, running_upstream() as direct, ExitStack() as stack:
        folder = Path(name)
        environ = dict(point.environ(f"http://127.0.0.1:{direct.port}", folder, _COUNTED_LIMIT))
        del environ["SEALGATE_ADMIN__TCP"]  # the page's look at all keys, twice a second, is of no request
        for limit in _PATIENT:  # under callgrind all takes fifty times as long
            environ[f"SEALGATE_{limit}"] = "600"
        with serving(folder, environ, (*counting(folder, 0), *(SERVE if is_queued else SERVE_SLOWLY))) as way:
            wait_until_it_answers(way.port)
            address = ("127.0.0.1", way.port)
            many = point.count if is_queued else _CONNECTIONS
            connections = [stack.enter_context(socket.create_connection(address)) for _ in range(many)]
            with exchanging(connections, messages) as done:
                _wait_until(done, max(point.count, counted))
                switch(way, "on")
                first = done()
                _wait_until(done, first + counted)
                switch(way, "off")
                exchanged = done() - first
        return sum(costs(folder / "counts").values()) / (1000 * exchanged)


@contextmanager
def exchanging(
    connections: Sequence[socket.socket], messages: Iterator[bytes]
) -> Iterator[Callable[[], int]]:
    """Exchange on all connections, in turn, as long as the block lasts; yield what says how often that was.

    Another thread does it, so that nothing piles up while counting is switched on, which takes its time.
    """
    is_over = threading.Event()
    done = 0

    def exchange() -> None:
        nonlocal done
        for connection in cycle(connections):
            receive(connection)
            done += 1
            if is_over.is_set():
                return
            connection.sendall(next(messages))

    for connection in connections:
        connection.sendall(next(messages))
    thread = threading.Thread(target=exchange)
    thread.start()

    def exchanged() -> int:
        if not thread.is_alive():
            raise SystemExit("an order was not answered as it should be")
        return done

    try:
        yield exchanged
    finally:
        is_over.set()
        thread.join()


def _wait_until(done: Callable[[], int], enough: int) -> None:
    while done() < enough:
        time.sleep(0.01)


def counted_report(names: list[str]) -> str:
    counts = (COUNTS[0], COUNTS[1], COUNTS[-1])
    head = ("thousand instructions", *(f"{number:,}" for number in counts), "1,000 to 1", "1,000 to 10")

    def lines() -> Iterator[tuple[str, ...]]:
        for what in names:
            found = [instructions(Point(what, number)) for number in counts]
            ratios = (found[-1] / found[0], found[-1] / found[1])
            yield what, *(f"{one:.0f}" for one in found), *(f"{ratio:.2f}" for ratio in ratios)

    return table(head, lines())


def medians(rounds: Rounds) -> list[float]:
    return [median(costs) for costs in zip(*rounds, strict=True)]


def report(rows: Mapping[str, Rounds]) -> str:
    head = ("CPU µs/request", *(f"{number:,}" for number in COUNTS), "1,000 to 1 (least to most)")
    lines = (
        (what, *(f"{cost:.0f}" for cost in medians(rounds)), spread([one[-1] / one[0] for one in rounds]))
        for what, rounds in rows.items()
    )
    return f"{machine()}\n\n{table(head, lines)}"


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="CPU per request by number of bots, keys, routes and waiters."
    )
    parser.add_argument("--quick", action="store_true", help="two minutes instead of four; coarse figures")
    parser.add_argument("--only", choices=(*VARIED, "queued"), help="one row")
    parser.add_argument("--count", action="store_true", help="count instructions: it takes 20 minutes")
    parser.add_argument(
        "--write", action="store_true", help="put them into docs/internals/performance.md and its plot"
    )
    return parser.parse_args()


def main() -> None:
    options = parse()
    allow_many_connections()
    names = [what for what in (*VARIED, QUEUED) if what.startswith(options.only or "")]
    if options.count:
        print(counted_report(names))
        return
    rows = {what: measure_row(what, QUICK if options.quick else FULL) for what in names}
    text = report(rows)
    print(text)
    if options.write:
        write_part("scaling", f"{text}\n\n![CPU per request](performance-scaling.svg)")
        (INTERNALS / "performance-scaling.svg").write_text(
            plot(COUNTS, {what: medians(rounds) for what, rounds in rows.items()})
        )


if __name__ == "__main__":
    main()
