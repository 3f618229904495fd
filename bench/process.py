"""A process of the benchmark: started, timed until it answers, looked at from outside, ended."""

import math
import re
import resource
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from bench.orders import order

_PATIENCE_S = 30.0
_POLL_S = 0.002
_RESIDENT = re.compile(r"^VmRSS:\s*(\d+) kB", re.MULTILINE)


@dataclass(frozen=True)
class Way:
    """Where the client connects, the process that listens there, and how long it took to answer an order."""

    port: int
    pid: int
    ready_s: float = math.nan


@dataclass(frozen=True)
class Program:
    """A command line, with what its process gets beside: variables, open files, where its output goes."""

    command: Sequence[str]
    environ: Mapping[str, str] | None = None
    pass_fds: Sequence[int] = ()
    stdout: int | IO[bytes] | None = None
    stderr: int | IO[bytes] | None = field(default=None)


@contextmanager
def running(program: Program) -> Iterator["subprocess.Popen[bytes]"]:
    """Run it as long as the block lasts."""
    process = subprocess.Popen(
        program.command,
        env=program.environ,
        pass_fds=program.pass_fds,
        stdout=program.stdout,
        stderr=program.stderr,
    )
    with process:
        try:
            yield process
        finally:
            process.terminate()


def first_line(process: "subprocess.Popen[bytes]") -> str:
    """Wait for the first line that it prints. Raises SystemExit if it ends without."""
    assert process.stdout is not None
    line = process.stdout.readline().decode()
    if not line:
        raise SystemExit(f"{process.args!r} ended before it said where it listens")
    return line


def wait_until_it_answers(port: int) -> None:
    """Send orders until one is answered with 200. Raises SystemExit after half a minute without."""
    until = time.monotonic() + _PATIENCE_S
    while not answer_at(port).startswith(b"HTTP/1.1 200 "):
        if time.monotonic() > until:
            raise SystemExit(f"port {port} answers with {answer_at(port)!r}")
        time.sleep(_POLL_S)


def answer_at(port: int, message: bytes | None = None) -> bytes:
    """Return the start of the answer to a request on a fresh connection, nothing where nobody listens."""
    try:
        with socket.create_connection(("127.0.0.1", port), _PATIENCE_S) as connection:
            connection.sendall(message or order())
            return connection.recv(65536)
    except OSError:
        return b""


def cpu_s(pid: int) -> float:
    """Return the processor time of a process so far, not a number where the system does not tell."""
    files = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(file.read_text().split()[0]) for file in files) / 1e9 or math.nan


def resident_mb(pid: int) -> float:
    """Return the memory that a process has in RAM, in 10**6 bytes; not a number as above."""
    try:
        found = _RESIDENT.search(Path(f"/proc/{pid}/status").read_text())
    except OSError:
        found = None
    return int(found[1]) * 1024 / 1e6 if found else math.nan


def allow_many_connections() -> None:
    """Let this process and those that it starts have as many open files as they may."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
