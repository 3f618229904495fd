"""A Redis or Valkey server of a test's own, on a free port, that can be killed and started again."""

import asyncio
import contextlib
import signal
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from rig.ports import free_port
from rig.programs import path_of
from rig.wire import PATIENCE_S, let_pass


@dataclass
class RedisServer:
    """Where it listens; nothing is kept on disk."""

    port: int
    _process: Process | None = field(default=None)

    @property
    def url(self) -> str:
        """What `limits.redis` takes."""
        return f"redis://127.0.0.1:{self.port}/0"

    async def start(self) -> None:
        """Start it, and wait until it answers. Raises MissingProgramError."""
        self._process = await asyncio.create_subprocess_exec(*command(self.port), stdout=DEVNULL)
        async with asyncio.timeout(PATIENCE_S):
            while not await _answers(self.port):
                await let_pass(0.005)

    async def kill(self) -> None:
        """Kill it at once; all that it held is lost."""
        assert self._process is not None
        self._process.kill()
        await self._process.wait()

    def freeze(self) -> None:
        """Let it hang: connections stay open, and nothing is answered."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)


def command(port: int) -> tuple[str, ...]:
    """Return what starts one. Raises MissingProgramError."""
    return (
        path_of("redis-server"),
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--appendonly",
        "no",
    )


async def _answers(port: int) -> bool:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    try:
        writer.write(b"PING\r\n")
        return await reader.readline() == b"+PONG\r\n"
    finally:
        writer.close()


@contextlib.asynccontextmanager
async def running_redis() -> AsyncIterator[RedisServer]:
    """Run one as long as the block lasts."""
    server = RedisServer(free_port())
    await server.start()
    try:
        yield server
    finally:
        with contextlib.suppress(ProcessLookupError):
            await server.kill()
