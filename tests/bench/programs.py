"""The benchmark's programs: upstream, the ways to it, and the client, each a process of its own."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from bench.orders import token
from bench.process import Program, Way, first_line, running, wait_until_it_answers
from bench.rivals import API_KEY, SECRET, MissingError, running_haproxy, running_mitmproxy

DIRECT, HAPROXY, BARE, MITMPROXY, GATEWAY, COMPILED, ON_ASYNCIO = WAYS = (
    "direct",
    "HAProxy",
    "bare aiohttp",
    "mitmproxy",
    "gateway",
    "gateway, compiled",
    "gateway, asyncio",
)
_HERE = Path(__file__).parent
# What scripts/compiled made, to be found before the sources.
WHEEL = Path(sysconfig.get_path("purelib", vars={"base": str(_HERE.parents[1] / ".compiled")}))
_PATIENCE_S = 60.0
_EVENT = re.compile(r"\{.*\}\n")  # a whole line of the log; where the start fails, other lines are there too
SERVE = (sys.executable, "-m", "sealgate", "serve")
_SERVE_ON_ASYNCIO = (
    sys.executable,
    "-c",
    "import sys; sys.modules['uvloop'] = None; from sealgate.cli import main; main(['serve'])",
)

Measurement = dict[str, float]
Start = Callable[[str, Path], AbstractContextManager[Way]]


@contextmanager
def running_upstream(*arguments: str) -> Iterator[Way]:
    with running_here("upstream.py", *arguments) as way:
        yield way


@contextmanager
def running_bare(upstream: str, folder: Path) -> Iterator[Way]:
    del folder
    with running_here("bare_proxy.py", f"http://{upstream}") as way:
        yield way


@contextmanager
def running_here(*arguments: str) -> Iterator[Way]:
    """Run a program of this folder, which prints its port."""
    command = [sys.executable, str(_HERE / arguments[0]), *arguments[1:]]
    with running(Program(command, stdout=subprocess.PIPE)) as process:
        yield Way(int(first_line(process)), process.pid)


@contextmanager
def running_gateway(upstream: str, folder: Path) -> Iterator[Way]:
    with serving(folder, gateway_environ(f"http://{upstream}")) as way:
        yield way


@contextmanager
def running_compiled_gateway(upstream: str, folder: Path) -> Iterator[Way]:
    if not WHEEL.is_dir():
        raise MissingError("scripts/compiled")
    environ = gateway_environ(f"http://{upstream}", PYTHONPATH=str(WHEEL))
    with serving(folder, environ) as way:
        yield way


@contextmanager
def running_gateway_on_asyncio(upstream: str, folder: Path) -> Iterator[Way]:
    with serving(folder, gateway_environ(f"http://{upstream}"), _SERVE_ON_ASYNCIO) as way:
        yield way


STARTS: Mapping[str, Start] = {
    HAPROXY: running_haproxy,
    BARE: running_bare,
    MITMPROXY: running_mitmproxy,
    GATEWAY: running_gateway,
    COMPILED: running_compiled_gateway,
    ON_ASYNCIO: running_gateway_on_asyncio,
}


@contextmanager
def serving(
    folder: Path, environ: Mapping[str, str], command: Sequence[str] = SERVE, until: str = "listening"
) -> Iterator[Way]:
    """Run the gateway with everything on, its log in a file; begin when that has the event `until`."""
    log = folder / "gateway.log"
    with log.open("wb") as stderr, running(Program(command, environ, stderr=stderr)) as process:
        yield Way(_gateway_port(process, log, until), process.pid)


def gateway_environ(base_url: str, **more: str) -> Mapping[str, str]:
    return {
        **os.environ,
        "SEALGATE_BASE_URL": base_url,
        "SEALGATE_LISTEN__TCP": "127.0.0.1:0",
        "SEALGATE_ADMIN__TCP": "127.0.0.1:0",
        "SEALGATE_ADMIN__UNIX": "off",
        "SEALGATE_LOG__FORMAT": "json",
        "SEALGATE_KEYS__MAIN__API_KEY": API_KEY,
        "SEALGATE_KEYS__MAIN__SECRET": "env:BENCH_SECRET",
        "SEALGATE_BOTS__BENCH__TOKEN": "env:BENCH_TOKEN",
        "BENCH_SECRET": SECRET,
        "BENCH_TOKEN": token(0),
        **more,
    }


def _gateway_port(process: "subprocess.Popen[bytes]", log: Path, until: str) -> int:
    while process.poll() is None:
        lines = filter(_EVENT.fullmatch, log.read_text().splitlines(keepends=True))
        events = {line["event"]: line for line in map(json.loads, lines)}
        if {"listening", until} <= events.keys():
            return int(events["listening"]["bots"].rpartition(":")[2])
        time.sleep(0.002)
    raise SystemExit(log.read_text())


@contextmanager
def started(start: AbstractContextManager[Way]) -> Iterator[Way]:
    """Enter it, and note how long it took until an order came back from the upstream."""
    since = time.perf_counter()
    with start as way:
        wait_until_it_answers(way.port)
        yield replace(way, ready_s=time.perf_counter() - since)


@contextmanager
def running_ways(folder: Path, names: Sequence[str]) -> Iterator[dict[str, Way]]:
    """Run all but the client; say of what is missing how to get it."""
    with ExitStack() as stack:
        direct = stack.enter_context(running_upstream())
        ways = {DIRECT: direct}
        for name in names:
            own = folder / name
            own.mkdir()
            try:
                start = STARTS[name](f"127.0.0.1:{direct.port}", own)
                ways[name] = stack.enter_context(started(start))
            except MissingError as error:
                print(f"Without {name}: {error}", file=sys.stderr)
        yield ways


def measure(way: Way, connections: int, seconds: float, *options: str) -> Measurement:
    """Let the client run, see load.py."""
    numbers = (str(way.port), str(way.pid), str(connections), str(seconds))
    done = subprocess.run(
        [sys.executable, str(_HERE / "load.py"), *numbers, *options],
        stdout=subprocess.PIPE,
        check=True,
        timeout=seconds + _PATIENCE_S,
    )
    figures: Measurement = json.loads(done.stdout)
    return figures
