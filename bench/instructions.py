"""The instructions of a request outside the kernel, counted by valgrind's callgrind, and where they go.

A count is the same whatever else the machine does. It leaves out what the kernel does, waits, and what
instructions cost: it says whether there is less to do, not how fast it is done. Rows are those of rows.py.

Where they go is told by callers: what a function of CPython, libc and so on does counts for the compiled
module or the library that is the nearest one up the chain of calls. Python code that is not compiled is all
the interpreter's, with what it calls there: so of the pure gateway only the libraries are told apart.
"""

import argparse
import json
import re
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from http.client import HTTPResponse
from itertools import repeat, takewhile
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.callgrind import costs
from bench.orders import order, unique_orders
from bench.pages import table, write_part
from bench.process import Program, Way, first_line, running, wait_until_it_answers
from bench.programs import (
    BARE,
    COMPILED,
    GATEWAY,
    WHEEL,
    bare_arguments,
    serving,
    setting_environ,
)
from bench.rivals import Setting
from bench.rows import ROWS, Row

_CONNECTIONS = 16
_WARM_UP, _ROUNDS = 60, 100  # of one request on each connection
_REQUESTS = _CONNECTIONS * _ROUNDS
_CALLERS = 12  # that a function's cost is told apart by
_LEAST = 1.0  # thousand: what takes less in every row is not listed by itself
_HERE = Path(__file__).parent
_BESIDE = _HERE / "bare_proxy.py"
# Timers go off as much later as all else takes longer: else what a timer does once for many requests, such as
# writing the log, would be done for each, and what goes by the time alone for far too few.
SERVE_SLOWLY = (sys.executable, str(_HERE / "slow_timers.py"), "serve")
_COMPILED_FUNCTION = re.compile(r"(?:CPyDef|CPyPy|CPyGen|CPyPartial)_(\w+)")
_RESUMED = "_gen_____mypyc_generator_helper__"
_EXTENSION = re.compile(r"(?:.*-packages/|.*/)(.+?)\.(?:cpython-|abi3)[\w.-]*so$")
_EVALUATION, _TASKS = "_PyEval_EvalFrameDefault", "_asyncio"
INTERPRETER, OTHERS = "interpreter, what is not compiled", "others"

Counts = Mapping[str, float]  # of a request, in thousands, by owner
Owner = Callable[[str], str | None]


def counting(folder: Path, callers: int) -> Sequence[str]:
    """Return the command that counts what another does, from `switch` "on" to "off", into `folder`/counts."""
    into = f"--callgrind-out-file={folder / 'counts'}"
    return "valgrind", "-q", "--tool=callgrind", "--instr-atstart=no", f"--separate-callers={callers}", into


@contextmanager
def under_callgrind(name: str, setting: Setting, folder: Path) -> Iterator[Way]:
    """Run a way, whose counts are in `folder` once it has ended."""
    counted = counting(folder, _CALLERS)
    if name == BARE:
        command = (*counted, sys.executable, str(_BESIDE), *bare_arguments(setting))
        with running(Program(command, stdout=subprocess.PIPE)) as process:
            yield Way(int(first_line(process)), process.pid)
        return
    with serving(folder, setting_environ(name, setting, folder), (*counted, *SERVE_SLOWLY)) as way:
        yield way


def count(name: str, row: Row, by: Owner) -> Counts:
    """Send orders through a way; return what one of them takes."""
    with TemporaryDirectory() as name_of_folder, row.running(folder := Path(name_of_folder)) as (_, setting):
        with under_callgrind(name, setting, folder) as way:
            wait_until_it_answers(way.port)
            exchange_counted(way, unique_orders() if row.load else repeat(order()))
        return shares(folder / "counts", by)


def exchange_counted(way: Way, messages: Iterator[bytes]) -> None:
    """Send orders through a way; count while as many are answered as `shares` divides by."""
    _exchange(way.port, _WARM_UP, messages)
    switch(way, "on")
    _exchange(way.port, _ROUNDS, messages)
    time.sleep(0.5)  # the record follows the reply
    switch(way, "off")


def switch(way: Way, state: str) -> None:
    """Count from now on, or no more; callgrind_control does the same, seconds later on a busy machine."""
    command = ("vgdb", f"--pid={way.pid}", "instrumentation", state)
    subprocess.run(command, check=True, capture_output=True)


def _exchange(port: int, rounds: int, messages: Iterator[bytes]) -> None:
    with ExitStack() as stack:
        address = ("127.0.0.1", port)
        connections = [stack.enter_context(socket.create_connection(address)) for _ in range(_CONNECTIONS)]
        for _ in range(rounds):
            for connection in connections:
                connection.sendall(next(messages))
            for connection in connections:
                receive(connection)


def receive(connection: socket.socket) -> None:
    with HTTPResponse(connection) as reply:
        reply.begin()
        body = reply.read()
        if reply.status != 200:
            raise SystemExit(f"answered with {reply.status}: {body!r}")


def shares(file: Path, by: Owner) -> Counts:
    """Add up what each place cost a request, by its owner."""
    places = costs(file)
    extensions = {
        chain[0]: found[1]
        for chain, library in places
        if (found := _EXTENSION.match(library)) and not found[1].endswith("__mypyc")
    }
    added: Counter[str] = Counter()  # of all requests
    for (chain, _), cost in places.items():
        added[_owner(chain, by, extensions)] += cost
    if not added:
        raise SystemExit(f"callgrind counted nothing in {file}")
    return {owner: cost / (_REQUESTS * 1000) for owner, cost in added.items()}


def _owner(chain: Sequence[str], by: Owner, extensions: Mapping[str, str]) -> str:
    """Go up the chain; what the standard library has in C works for the compiled module that called it."""
    standard = None
    for name in takewhile(_EVALUATION.__ne__, chain):
        if owner := by(name):
            return owner
        extension = extensions.get(name, "")
        if "/" in extension or extension == _TASKS:
            return extension
        standard = standard or extension
    return standard or INTERPRETER


def compiled_function(name: str) -> str | None:
    """Name the compiled function, as mypyc writes it."""
    found = _COMPILED_FUNCTION.match(name)
    return found[1].removesuffix(_RESUMED) if found else None


def compiled_module() -> Owner:
    """Return what names a function's compiled module, whose path mypyc shortens as far as it is clear."""
    files = (
        file.relative_to(WHEEL / "sealgate") for file in WHEEL.rglob("*.so") if "__mypyc" not in file.name
    )
    paths = [(*file.parent.parts, file.name.partition(".")[0]) for file in files]
    known = {"___".join(path[at:]): "/".join(path) for path in paths for at in range(len(path))}

    def module(name: str) -> str | None:
        function = compiled_function(name)
        if function is None:
            return None
        parts = function.split("___")
        starts = ("___".join(parts[:at]) for at in range(len(parts), 0, -1))
        return next((known[start] for start in starts if start in known), None)

    return module


def totals_table(found: Mapping[str, Mapping[str, Counts]]) -> str:
    def rows() -> Iterator[Sequence[str]]:
        for row, ways in found.items():
            totals = {way: sum(counts.values()) for way, counts in ways.items()}
            for way, total in totals.items():
                yield row, way, f"{total:.0f}", f"{total / totals[BARE]:.2f}"

    return table(("row", "way", "thousand instructions", "to bare aiohttp"), rows(), words=2)


def shares_table(found: Mapping[str, Mapping[str, Counts]], way: str) -> str:
    """Write a line for each owner, the dearest first, and a column for each row."""
    columns = [counts[way] for counts in found.values()]
    names = sorted(set().union(*columns), key=lambda name: -columns[0].get(name, 0))
    large = [name for name in names if max(one.get(name, 0) for one in columns) >= _LEAST]
    lines = [(name, *(f"{one.get(name, 0):.1f}" for one in columns)) for name in large]
    small = (sum(cost for name, cost in one.items() if name not in large) for one in columns)
    lines.append((OTHERS, *(f"{cost:.1f}" for cost in small)))
    return table((f"{way}: thousand instructions of", *found), lines)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Instructions of a request, by row, way and module. Half a minute for each row and way."
    )
    usual = [name for name, row in ROWS.items() if not row.has_tls and not row.has_journal]
    parser.add_argument("--only", action="append", choices=tuple(ROWS), help="this row; may be repeated")
    parser.add_argument("--functions", action="store_true", help="by compiled function, not by module")
    parser.add_argument(
        "--json", action="store_true", help="print JSON: the thousands of a request, by owner"
    )
    parser.add_argument("--write", action="store_true", help="put them into docs/internals/performance.md")
    options = parser.parse_args()
    if options.write and (options.only or options.functions):
        parser.error("--write needs every row, by module")
    options.only = options.only or usual
    return options


def main() -> None:
    options = parse()
    ways = [BARE, GATEWAY, *([COMPILED] if WHEEL.is_dir() else [])]
    if COMPILED not in ways:
        print(f"Without {COMPILED}: scripts/compiled", file=sys.stderr)
    by = compiled_function if options.functions else compiled_module()
    found: dict[str, dict[str, Counts]] = {}
    for row in options.only:
        for way in ways:
            found.setdefault(row, {})[way] = counts = count(way, ROWS[row], by)
            print(f"{row}, {way}: {sum(counts.values()):.0f}", file=sys.stderr)  # as it takes minutes
    if options.json:
        print(json.dumps(found, indent=1))
        return
    text = "\n\n".join((totals_table(found), *(shares_table(found, way) for way in reversed(ways[1:]))))
    print(text)
    if options.write:
        write_part("instructions", text)


if __name__ == "__main__":
    main()
