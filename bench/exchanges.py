"""What several exchanges in one gateway cost: memory, start, and a request, with ten keys at each.

    scripts/bench exchanges --write

One bot uses all keys in turn. Each exchange has an upstream of its own, which answers at once. "Ready" is the
time from the start of the process until an order to each exchange was answered. Instructions are counted by
callgrind. The first row is a configuration without [exchanges], with ten keys as well.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import cycle
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from bench.instructions import SERVE_SLOWLY, compiled_function, counting, exchange_counted, shares
from bench.orders import KEYS, orders
from bench.pages import machine, table, write_part
from bench.process import Way, answer_at, resident_mb
from bench.programs import SERVE, gateway_environ, measure, running_upstream, serving
from bench.rivals import API_KEY

COUNTS = (0, 1, 10)  # exchanges; 0 is without [exchanges]
_CONNECTIONS, _BUSY_S = 32, 2.0
_PATIENCE_S, _POLL_S = 60.0, 0.002
_ENVIRON_OF_ONE = ("SEALGATE_BASE_URL", "SEALGATE_KEYS__MAIN__API_KEY", "SEALGATE_KEYS__MAIN__SECRET")


@contextmanager
def environment(many: int, folder: Path) -> Iterator[Mapping[str, str]]:
    """Run the upstreams; yield the variables of a gateway before them."""
    with ExitStack() as stack:
        ports = [stack.enter_context(running_upstream()).port for _ in range(max(1, many))]
        urls = [f"http://127.0.0.1:{port}" for port in ports]
        rows = [f'base_url = "{urls[0]}"'] if not many else []
        names = [f"key{number}-{key}" for number in range(len(urls)) for key in range(KEYS)]
        rows.append(f"[bots.bench]\nkeys = {names}")
        for number, url in enumerate(urls):
            rows += [f'[exchanges.exchange{number}]\nbase_url = "{url}"'] if many else []
            for key in range(KEYS):
                rows.append(f"[keys.key{number}-{key}]")
                rows.append(f'api_key = "{API_KEY}-{number}-{key}"\nsecret = "env:BENCH_SECRET"')
                rows += [f'exchange = "exchange{number}"'] if many else []
        file = folder / "sealgate.toml"
        file.write_text("\n".join(rows))
        environ = gateway_environ("", SEALGATE_CONFIG=str(file))
        yield {name: value for name, value in environ.items() if name not in _ENVIRON_OF_ONE}


@contextmanager
def running(many: int, command: Sequence[str] = SERVE) -> Iterator[tuple[Way, Path]]:
    """Run a gateway until the block ends; begin once each exchange has answered an order."""
    with TemporaryDirectory() as name, environment(many, folder := Path(name)) as environ:
        since = time.perf_counter()
        with serving(folder, environ, command) as way:
            for message in orders("exchanges", many)[::KEYS]:
                while not answer_at(way.port, message).startswith(b"HTTP/1.1 200 "):
                    if time.perf_counter() - since > _PATIENCE_S:
                        raise SystemExit(f"it answers with {answer_at(way.port, message)!r}")
                    time.sleep(_POLL_S)
            yield replace(way, ready_s=time.perf_counter() - since), folder


def instructions(many: int) -> float:
    """Return the thousand instructions of a request."""
    with TemporaryDirectory() as name:
        counts = Path(name)
        with running(many, (*counting(counts, 1), *SERVE_SLOWLY)) as (way, _):
            exchange_counted(way, cycle(orders("exchanges", many)))
        return sum(shares(counts / "counts", compiled_function).values())


def row(many: int, starts: int) -> Sequence[float]:
    """Return ready, RSS after each key was used, RSS under load, CPU and instructions of a request."""
    ready_s = []
    for _ in range(starts):
        with running(many) as (way, _):
            ready_s.append(way.ready_s)
            for message in orders("exchanges", many):
                answer_at(way.port, message)
            rest_mb = resident_mb(way.pid)
            busy = measure(way, _CONNECTIONS, _BUSY_S, "--vary", f"exchanges:{many}")
    return median(ready_s), rest_mb, busy["resident_mb"], busy["cpu_us"], instructions(many)


def report(starts: int) -> str:
    def rows() -> Iterator[Sequence[str]]:
        first: Sequence[float] = ()
        for many in COUNTS:
            found = row(many, starts)
            first = first or found
            ready_s, rest_mb, busy_mb, cpu_us, thousand = found
            ratios = (f"{cpu_us / first[3]:.2f}", f"{thousand / first[4]:.3f}")
            name = str(many) if many else "no [exchanges]"
            figures = (
                f"{ready_s:.2f}",
                f"{rest_mb:.0f}",
                f"{busy_mb:.0f}",
                f"{cpu_us:.0f}",
                f"{thousand:.1f}",
            )
            yield name, str(KEYS * max(1, many)), *figures, *ratios
            print(name, *figures, file=sys.stderr)

    head = ("exchanges", "keys", "ready after s", "RSS at rest MB", "under load", "CPU µs/request")
    last = ("thousand instructions", "CPU to the first", "instructions to the first")
    return f"{machine()}\n\n{table((*head, *last), rows())}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Memory, start and requests with 0, 1 and 10 exchanges.")
    parser.add_argument("--starts", type=int, default=3, help="of each gateway, timed (3)")
    parser.add_argument("--write", action="store_true", help="put it into docs/internals/performance.md")
    options = parser.parse_args()
    text = report(options.starts)
    print(text)
    if options.write:
        write_part("exchanges", text)


if __name__ == "__main__":
    main()
