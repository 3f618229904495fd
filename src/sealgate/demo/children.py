"""Child processes that never outlive the demo.

They stay in its process group, so that whatever ends the group ends them too. Only Ctrl-C must not: the
terminal sends it to the whole group, and the exchanges are still to be asked for their journals. So SIGINT is
blocked in the children, which inherit the signal mask they are started with. The demo ends each by its own
id. If it has no time to, at a second Ctrl-C or a SIGKILL, say, each sees its standard input end.
"""

import asyncio
import json
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from threading import Thread
from typing import Any

_START_S = 20.0
_END_S = 5.0
_SPEAKER = re.compile(r"^(sealgate[a-z ]*: )?(error: )?")


class ChildError(Exception):
    """A program of the demo did not start, or ended by itself. `str()` is one line."""


class Child:
    """A running `sealgate` program, whose output is read as long as it runs."""

    def __init__(self, name: str, process: Process) -> None:
        self._name = name
        self._process = process
        self._words = ""
        self._said: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._is_awaited = True
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        """Read each line, or the pipe fills up and the program stops."""
        assert self._process.stdout is not None  # noqa: S101 - it was started with PIPE
        async for line in self._process.stdout:
            text = line.decode(errors="replace").strip()
            if not text.startswith("{"):
                self._words = text or self._words
            elif self._is_awaited:
                self._said.put_nowait(json.loads(text))
        self._said.put_nowait(None)

    async def says(self, field: str) -> dict[str, Any]:
        """Return the first JSON line with this field. Raises ChildError where none comes."""
        try:
            async with asyncio.timeout(_START_S):
                while (line := await self._said.get()) is not None:
                    if field in line:
                        self._is_awaited = False
                        return line
        except TimeoutError:
            raise ChildError(f"{self._name} did not start within {_START_S:g} s") from None
        raise ChildError(f"{self._name} did not start{self._last_words()}")

    async def ends(self) -> None:
        """Wait for its end, which is never meant to come before the demo's. Raises ChildError."""
        code = await self._process.wait()
        await self._reading
        raise ChildError(f"{self._name} ended by itself (exit code {code}){self._last_words()}")

    def _last_words(self) -> str:
        """Return what it printed last for people: an error, as a rule."""
        return _SPEAKER.sub(": ", self._words, count=1) if self._words else ""

    async def end(self) -> None:
        """End it: ask first, insist after a while."""
        for ask in (self._process.terminate, self._process.kill):
            with suppress(ProcessLookupError):
                ask()
            with suppress(TimeoutError):
                async with asyncio.timeout(_END_S):
                    await self._process.wait()
                    break
        self._reading.cancel()


@asynccontextmanager
async def running(name: str, *arguments: str) -> AsyncIterator[Child]:
    """Run `sealgate ARGUMENTS` until the block ends; `name` is what errors call it."""
    with _sigint_blocked():
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "sealgate.demo.children",
            *arguments,
            stdin=PIPE,  # nothing is written to it
            stdout=PIPE,
            stderr=STDOUT,
            env=_env(),
        )
    child = Child(name, process)
    try:
        yield child
    finally:
        await child.end()


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _env() -> dict[str, str]:
    """Return the environment without the user's own settings of Sealgate, which the demo must not touch."""
    return {name: value for name, value in os.environ.items() if not name.upper().startswith("SEALGATE_")}


def end_with_stdin() -> None:
    """Send SIGTERM to this process at the end of its standard input, which nothing else may read."""
    Thread(target=_wait, daemon=True).start()


def _wait() -> None:
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    end_with_stdin()
    from sealgate.cli import main

    sys.exit(main())
