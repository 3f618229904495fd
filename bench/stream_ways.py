"""The ways of the streams' benchmarks to their exchange: directly, by the aiohttp proxy, by the gateway."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.process import Way
from bench.programs import (
    COMPILED,
    DIRECT,
    GATEWAY,
    Measurement,
    running_here,
    running_upstream,
    serving,
    setting_environ,
)
from bench.rivals import MissingError, Setting

PROXY = "aiohttp proxy"
HOST = "streams.example"
READ, UNREAD = "/read", "/unread"  # paths of streams whose messages are read, or passed on unread
_HERE = Path(__file__).parent
_PATIENCE_S = 60.0
_VENUE = f"""\
name = "streaming"
like = "service"
[[streams]]
host = "{HOST}"
paths = ["{READ}/**"]
[[streams.messages]]
when = {{ "/op" = "ping" }}
[[streams]]
host = "{HOST}"
"""


@contextmanager
def running_gateway(name: str, exchange: Way, folder: Path) -> Iterator[Way]:
    """Run a gateway, compiled or not, that has requests answered by upstream.py. Raises MissingError."""
    (folder / "streaming.toml").write_text(_VENUE)
    with running_upstream() as upstream:
        environ = {
            **setting_environ(name, Setting(f"127.0.0.1:{upstream.port}"), folder),
            "SEALGATE_VENUE": str(folder / "streaming.toml"),
            "SEALGATE_UPSTREAM__STREAMS": f"ws://127.0.0.1:{exchange.port}",
            "SEALGATE_LISTEN__MAX_STREAMS": "1000",
        }
        with serving(folder, environ) as way:
            yield way


@contextmanager
def running_way(name: str, exchange: Way, folder: Path) -> Iterator[Way]:
    """Run one way to the exchange. Raises MissingError."""
    if name == DIRECT:
        yield exchange
    elif name == PROXY:
        with running_here("stream_proxy.py", f"http://127.0.0.1:{exchange.port}") as way:
            yield way
    else:
        with running_gateway(name, exchange, folder) as way:
            yield way


@contextmanager
def running_ways(folder: Path, names: Sequence[str]) -> Iterator[Mapping[str, Way]]:
    """Run the exchange and the ways to it; say of what is missing how to get it."""
    with ExitStack() as stack:
        exchange = stack.enter_context(running_here("stream_exchange.py"))
        ways = {}
        for name in names:
            own = folder / name
            own.mkdir()
            try:
                ways[name] = stack.enter_context(running_way(name, exchange, own))
            except MissingError as error:
                print(f"Without {name}: {error}", file=sys.stderr)
        yield ways


def target_of(way: str, path: str) -> str:
    """Return a stream's target: at the gateway its host comes first."""
    return f"/{HOST}{path}" if way in (GATEWAY, COMPILED) else path


def measure(name: str, way: Way, path: str, streams: int, seconds: float) -> Measurement:
    """Let the client run, see stream_load.py."""
    numbers = (str(way.port), str(way.pid), target_of(name, path), str(streams), str(seconds))
    done = subprocess.run(
        [sys.executable, str(_HERE / "stream_load.py"), *numbers],
        stdout=subprocess.PIPE,
        check=True,
        timeout=seconds + _PATIENCE_S,
    )
    figures: Measurement = json.loads(done.stdout)
    return figures
