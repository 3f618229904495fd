"""What a short-lived script waits for its first request: directly over TLS, and through the gateway.

Each figure is of fresh processes of the same script. Directly, it opens a connection, shakes hands and asks;
through the gateway it asks on loopback, and the gateway uses a connection that is open. The upstream speaks
TLS and is a round trip away (distance.py). "Just started" is the first request that a gateway gets at all.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from bench.pages import machine, table, write_part
from bench.programs import certificates, gateway_environ, running_here, running_upstream, serving

ROUND_TRIPS_MS = (0, 10, 50)
HEAD = ("round trip ms", "direct over TLS ms", "through the gateway ms", "gateway just started ms")
_HERE = Path(__file__).parent
_SETTLE_S = 0.3  # after it says that it is ready; a script comes later than that, too


@dataclass(frozen=True)
class Exchange:
    """An upstream that speaks TLS, far away, and the certificate to trust."""

    port: int
    ca_file: Path

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"


@contextmanager
def running_exchange(folder: Path, round_trip_ms: float) -> Iterator[Exchange]:
    ca_file, own = certificates(folder)
    with (
        running_upstream(str(own), str(own)) as upstream,
        running_here("distance.py", str(upstream.port), str(round_trip_ms)) as way,
    ):
        yield Exchange(way.port, ca_file)


@contextmanager
def running_gateway(exchange: Exchange, folder: Path) -> Iterator[str]:
    """Yield its URL as soon as it is ready; no order has gone through it."""
    environ = gateway_environ(exchange.url, SEALGATE_UPSTREAM__CA_FILE=str(exchange.ca_file))
    with serving(folder, environ, until="ready") as way:
        yield f"http://127.0.0.1:{way.port}"


def first_request_ms(*arguments: str) -> float:
    """Run the script in a process of its own."""
    command = (sys.executable, str(_HERE / "first_request.py"), *arguments)
    return float(subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=30).stdout)


def just_started_ms(exchange: Exchange, folder: Path) -> float:
    with running_gateway(exchange, folder) as url:
        time.sleep(_SETTLE_S)
        return first_request_ms(url)


def measure(round_trip_ms: float, scripts: int, starts: int) -> Sequence[float]:
    """Return the medians of the three columns."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        exchange = stack.enter_context(running_exchange(folder, round_trip_ms))
        first = [just_started_ms(exchange, folder) for _ in range(starts)]
        url = stack.enter_context(running_gateway(exchange, folder))
        pairs = [
            (first_request_ms(exchange.url, str(exchange.ca_file)), first_request_ms(url))
            for _ in range(scripts)
        ]
    return *(median(column) for column in zip(*pairs, strict=True)), median(first)


def report(scripts: int, starts: int) -> str:
    rows = [(str(ms), *(f"{value:.1f}" for value in measure(ms, scripts, starts))) for ms in ROUND_TRIPS_MS]
    text = f"Medians of {scripts} scripts each, and of {starts} starts of the gateway."
    return f"{machine()} {text}\n\n{table(HEAD, rows)}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description="A script's first request, directly and through the gateway."
    )
    parser.add_argument("--quick", action="store_true", help="5 scripts instead of 30")
    parser.add_argument(
        "--write", action="store_true", help="put the figures into docs/internals/performance.md"
    )
    options = parser.parse_args()
    text = report(5, 2) if options.quick else report(30, 5)
    print(text)
    if options.write:
        write_part("warm", text)


if __name__ == "__main__":
    main()
