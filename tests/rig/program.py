"""`sealgate` as a program of its own, whose lines a test waits for."""

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rig.wire import PATIENCE_S

_START = ("-m", "sealgate")
WITHOUT_UVLOOP = ("-c", "import sys; sys.modules['uvloop'] = None; from sealgate.cli import main; main()")


@dataclass
class Program:
    """A running program. `out` and `err` are its lines so far."""

    process: Process
    out: list[str] = field(default_factory=list)
    err: list[str] = field(default_factory=list)
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def read(self) -> None:
        """Read all that it prints, until it ends."""
        await asyncio.gather(
            self._read(self.process.stdout, self.out), self._read(self.process.stderr, self.err)
        )

    async def _read(self, stream: asyncio.StreamReader | None, lines: list[str]) -> None:
        assert stream is not None
        async for line in stream:
            lines.append(line.decode().rstrip("\n"))
            async with self._news:
                self._news.notify_all()

    async def line(self, text: str) -> str:
        """Wait for the first line that holds a text, on either stream."""
        async with asyncio.timeout(PATIENCE_S), self._news:
            await self._news.wait_for(lambda: any(text in line for line in (*self.out, *self.err)))
        return next(line for line in (*self.out, *self.err) if text in line)

    def tell(self, number: int) -> None:
        """Send a signal to it alone."""
        self.process.send_signal(number)

    async def end(self) -> int:
        """Wait for its end and return the exit code."""
        async with asyncio.timeout(PATIENCE_S):
            return await self.process.wait()

    @property
    def output(self) -> str:
        """All that it printed so far."""
        return "\n".join((*self.out, *self.err))


# Reading all authorities of the system is a fifth of what a start costs, and no test trusts one of them.
_NO_AUTHORITIES = {"SSL_CERT_FILE": os.devnull, "SSL_CERT_DIR": os.devnull}


def _inherited() -> dict[str, str]:
    passed_on = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return {**passed_on, **_NO_AUTHORITIES}


@contextlib.asynccontextmanager
async def running_program(
    *arguments: str,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
    start: Sequence[str] = _START,
    program: str = sys.executable,
) -> AsyncIterator[Program]:
    """Run `sealgate ARGUMENTS` as long as the block lasts, in a process group of its own.

    `program` and `start` are what stands before the arguments.
    """
    process = await asyncio.create_subprocess_exec(
        program,
        *(*start, *arguments),
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        env={**_inherited(), **(environ or {})},
        cwd=folder,
        start_new_session=True,
    )
    running = Program(process)
    reading = asyncio.create_task(running.read())
    try:
        yield running
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        await reading


async def ended_program(
    *arguments: str, environ: Mapping[str, str] | None = None, folder: Path | None = None
) -> tuple[int, Program]:
    """Run `sealgate ARGUMENTS` to its end; return the exit code and what it printed."""
    async with running_program(*arguments, environ=environ, folder=folder) as program:
        code = await program.end()
    return code, program


# A configuration with one key, on free ports; nobody is at its exchange's address.
BASE = {
    "SEALGATE_BASE_URL": "http://127.0.0.1:9",
    "SEALGATE_LISTEN__TCP": "127.0.0.1:0",
    "SEALGATE_ADMIN__TCP": "127.0.0.1:0",
    "SEALGATE_ADMIN__UNIX": "off",
    "SEALGATE_KEYS__MAIN__API_KEY": "ak-public-1",
    "SEALGATE_KEYS__MAIN__SECRET": "env:EXCHANGE_SECRET",
    "EXCHANGE_SECRET": "correct-horse-battery-staple",
}
