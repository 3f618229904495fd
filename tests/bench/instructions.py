"""The instructions of a request outside the kernel, counted by valgrind's callgrind, and where they go.

A count is the same whatever else the machine does. It leaves out what the kernel does, waits, and what
instructions cost: it says whether there is less to do, not how fast it is done.

The parts are those of the compiled gateway, whose functions callgrind can tell apart. Each holds what its
function calls; what goes on while it waits for others does not count.
"""

import argparse
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.client import HTTPResponse
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.orders import order
from bench.pages import table, write_part
from bench.process import Program, Way, first_line, running, wait_until_it_answers
from bench.programs import BARE, COMPILED, GATEWAY, SERVE, WHEEL, gateway_environ, running_upstream, serving
from bench.rivals import MissingError

_CONNECTIONS = 16
_WARM_UP, _ROUNDS = 60, 100  # of one request on each connection
_TOTAL = re.compile(r"^totals: (\d+)", re.MULTILINE)
_FUNCTION = re.compile(r"^ *([\d,]+) .*:CPyDef_(\w+?)(?:_gen_____mypyc_generator_helper__)? \[", re.MULTILINE)
_BESIDE = Path(__file__).parent / "bare_proxy.py"

# What a function of the compiled gateway is for. None of them calls another one of these.
PARTS = {
    "bots___connection___BotConnection___data_received": "parsing the request",
    "pipeline___Pipeline____admit": "admission",
    "pipeline____wait_Pipeline": "pacing, clock",
    "pipeline___Pipeline____stamp": "timestamp",
    "pipeline___Pipeline____sealed": "signature, request's bytes",
    "upstream___connection___exchange_UpstreamConnection": "sending, sorting the reply",
    "upstream___connection___UpstreamConnection___data_received": "parsing the reply",
    "pipeline___Pipeline____learn": "learning, verdict",
    "handler____write_Handler": "writing the reply",
    "reporter___Reporter___flush": "log, metrics, live page",
}
REST = "tasks, event loop, the rest"


@contextmanager
def under_callgrind(name: str, upstream: str, folder: Path) -> Iterator[Way]:
    """Run a way, whose counts are in `folder` once it has ended."""
    into = f"--callgrind-out-file={folder / 'counts'}"
    counted = ("valgrind", "-q", "--tool=callgrind", "--instr-atstart=no", into)
    if name == BARE:
        program = Program((*counted, sys.executable, str(_BESIDE), upstream), stdout=subprocess.PIPE)
        with running(program) as process:
            yield Way(int(first_line(process)), process.pid)
        return
    environ = gateway_environ(upstream, **({"PYTHONPATH": str(WHEEL)} if name == COMPILED else {}))
    with serving(folder, environ, (*counted, *SERVE)) as way:
        yield way


def count(name: str, upstream: str, folder: Path) -> Path:
    """Send orders through a way; return the file with the counts."""
    with under_callgrind(name, upstream, folder) as way:
        wait_until_it_answers(way.port)
        _exchange(way.port, _WARM_UP)
        _switch(way, "on")
        _exchange(way.port, _ROUNDS)
        time.sleep(0.5)  # the record follows the reply
        _switch(way, "off")
    return folder / "counts"


def _switch(way: Way, state: str) -> None:
    subprocess.run(("callgrind_control", "-i", state, str(way.pid)), check=True, stdout=subprocess.DEVNULL)


def _exchange(port: int, rounds: int) -> None:
    with ExitStack() as stack:
        address = ("127.0.0.1", port)
        connections = [stack.enter_context(socket.create_connection(address)) for _ in range(_CONNECTIONS)]
        for _ in range(rounds):
            for connection in connections:
                connection.sendall(order())
            for connection in connections:
                _receive(connection)


def _receive(connection: socket.socket) -> None:
    with HTTPResponse(connection) as reply:
        reply.begin()
        body = reply.read()
        if reply.status != 200:
            raise SystemExit(f"answered with {reply.status}: {body!r}")


def thousands(counts: Path) -> float:
    """Return the thousands of instructions of a request."""
    found = _TOTAL.search(counts.read_text())
    if found is None:
        raise SystemExit(f"callgrind counted nothing in {counts}")
    return int(found[1]) / (_ROUNDS * _CONNECTIONS * 1000)


def parts(counts: Path) -> Mapping[str, float]:
    """Return the thousands of each part, the rest at last."""
    command = ("callgrind_annotate", "--inclusive=yes", "--threshold=100", str(counts))
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found: dict[str, float] = {}
    for number, function in _FUNCTION.findall(text):
        if function in PARTS:
            part = PARTS[function]
            found[part] = max(
                found.get(part, 0.0), int(number.replace(",", "")) / (_ROUNDS * _CONNECTIONS * 1000)
            )
    if missing := PARTS.values() - found.keys():
        raise SystemExit(f"no such function any more, mend PARTS: {', '.join(sorted(missing))}")
    return {part: found[part] for part in PARTS.values()} | {REST: thousands(counts) - sum(found.values())}


def report(totals: Mapping[str, float], shares: Mapping[str, float]) -> str:
    whole = table(
        ("way", "thousand instructions", "to bare aiohttp"),
        ((name, f"{total:.0f}", f"{total / totals[BARE]:.2f}") for name, total in totals.items()),
    )
    total = totals[COMPILED]
    pieces = table(
        ("part of the gateway, compiled", "thousand instructions", "share"),
        ((part, f"{one:.0f}", f"{100 * one / total:.0f} %") for part, one in shares.items()),
    )
    return f"{whole}\n\n{pieces}"


def measure() -> str:
    with TemporaryDirectory() as name, running_upstream() as direct:
        upstream = f"http://127.0.0.1:{direct.port}"
        files = {}
        for way in (BARE, GATEWAY, COMPILED):
            folder = Path(name) / way
            folder.mkdir()
            files[way] = count(way, upstream, folder)
        return report({way: thousands(file) for way, file in files.items()}, parts(files[COMPILED]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Instructions of a request, by way and by part. Two minutes."
    )
    parser.add_argument("--write", action="store_true", help="put them into docs/performance.md")
    options = parser.parse_args()
    if not WHEEL.is_dir():
        raise SystemExit(str(MissingError("without compiled modules: run scripts/compiled")))
    text = measure()
    print(text)
    if options.write:
        write_part("instructions", text)


if __name__ == "__main__":
    main()
