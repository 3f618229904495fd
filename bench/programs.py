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

import trustme

from bench.orders import token
from bench.process import Program, Way, first_line, running, wait_until_it_answers
from bench.rivals import (
    API_KEY,
    SECRET,
    MissingError,
    Setting,
    running_caddy,
    running_haproxy,
    running_mitmproxy,
)

DIRECT, HAPROXY, CADDY, BARE, LOW_LEVEL, MITMPROXY, GATEWAY, COMPILED = (
    "direct",
    "HAProxy",
    "Caddy, unsigned",
    "bare aiohttp",
    "aiohttp's server",
    "mitmproxy",
    "gateway",
    "gateway, compiled",
)
_HERE = Path(__file__).parent
# What scripts/compiled made, to be found before the sources.
WHEEL = Path(sysconfig.get_path("purelib", vars={"base": str(_HERE.parent / ".compiled")}))
_PATIENCE_S = 60.0
_EVENT = re.compile(r"\{.*\}\n")  # a whole line of the log; where the start fails, other lines are there too
SERVE = (sys.executable, "-m", "sealgate", "serve")

Measurement = dict[str, float]
Start = Callable[[Setting, Path], AbstractContextManager[Way]]


@contextmanager
def running_upstream(*arguments: str) -> Iterator[Way]:
    with running_here("upstream.py", *arguments) as way:
        yield way


@contextmanager
def running_bare(setting: Setting, folder: Path) -> Iterator[Way]:
    del folder
    with running_here("bare_proxy.py", *bare_arguments(setting)) as way:
        yield way


@contextmanager
def running_low_level(setting: Setting, folder: Path) -> Iterator[Way]:
    del folder
    with running_here("low_level_proxy.py", *bare_arguments(setting)) as way:
        yield way


def bare_arguments(setting: Setting) -> Sequence[str]:
    return setting.url, *([str(setting.ca_file)] if setting.ca_file else [])


@contextmanager
def running_here(*arguments: str) -> Iterator[Way]:
    """Run a program of this folder, which prints its port."""
    command = [sys.executable, str(_HERE / arguments[0]), *arguments[1:]]
    with running(Program(command, stdout=subprocess.PIPE)) as process:
        yield Way(int(first_line(process)), process.pid)


def certificates(folder: Path) -> tuple[Path, Path]:
    """Make the file of an authority, and one with a certificate for 127.0.0.1 and its key."""
    authority = trustme.CA()
    ca_file, own = folder / "ca.pem", folder / "server.pem"
    authority.cert_pem.write_to_path(ca_file)
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(own)
    return ca_file, own


@contextmanager
def running_gateway(setting: Setting, folder: Path) -> Iterator[Way]:
    with serving(folder, setting_environ(GATEWAY, setting, folder)) as way:
        yield way


@contextmanager
def running_compiled_gateway(setting: Setting, folder: Path) -> Iterator[Way]:
    with serving(folder, setting_environ(COMPILED, setting, folder)) as way:
        yield way


def setting_environ(name: str, setting: Setting, folder: Path) -> Mapping[str, str]:
    """Return a gateway's variables. Raises MissingError where nothing is compiled."""
    more = {}
    if name == COMPILED:
        if not WHEEL.is_dir():
            raise MissingError("scripts/compiled")
        more["PYTHONPATH"] = str(WHEEL)
    if setting.ca_file:
        more["SEALGATE_UPSTREAM__CA_FILE"] = str(setting.ca_file)
    if setting.has_journal:
        more["SEALGATE_JOURNAL__FILE"] = str(folder / "journal.db")
    return gateway_environ(setting.url, **more)


STARTS: Mapping[str, Start] = {
    HAPROXY: running_haproxy,
    CADDY: running_caddy,
    BARE: running_bare,
    LOW_LEVEL: running_low_level,
    MITMPROXY: running_mitmproxy,
    GATEWAY: running_gateway,
    COMPILED: running_compiled_gateway,
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
            return int(events["listening"]["bots"].rpartition(":")[2].partition("/")[0])
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
def running_ways(folder: Path, setting: Setting, names: Sequence[str]) -> Iterator[dict[str, Way]]:
    """Run the ways to an upstream; say of what is missing how to get it."""
    with ExitStack() as stack:
        ways = {}
        for name in names:
            own = folder / name
            own.mkdir()
            try:
                ways[name] = stack.enter_context(started(STARTS[name](setting, own)))
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
