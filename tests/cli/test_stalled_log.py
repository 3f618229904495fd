"""A gateway whose log nobody reads."""

import asyncio
import json
import os
import re
import sys
from pathlib import Path

from rig.bot import bot_at, request
from rig.upstream import running_upstream
from rig.wire import PATIENCE_S

REQUESTS = 800  # their lines are more than a pipe holds, several times
_PIPE_BYTES = 64 * 1024


def bots_address(lines: str) -> tuple[str, int] | None:
    """Return where the gateway listens, once it is ready, from its log so far."""
    events = [json.loads(line) for line in lines.split("\n")[:-1]]
    if "ready" not in {line["event"] for line in events}:
        return None
    (listening,) = (line for line in events if line["event"] == "listening")
    host, port = re.fullmatch(r"http://([^:]+):(\d+)", listening["bots"]).groups()  # type: ignore[union-attr]
    return host, int(port)


async def test_bots_are_served_while_the_log_stands_still(tmp_path: Path) -> None:
    read, write = os.pipe()
    async with running_upstream() as upstream:
        environ = {
            "PATH": os.environ["PATH"],
            "SEALGATE_BASE_URL": upstream.base_url,
            "SEALGATE_LISTEN__TCP": "127.0.0.1:0",
            "SEALGATE_ADMIN__TCP": "127.0.0.1:0",
            "SEALGATE_ADMIN__UNIX": "off",
            "SEALGATE_KEYS__MAIN__API_KEY": "ak",
            "SEALGATE_KEYS__MAIN__SECRET": "env:EXCHANGE_SECRET",
            "EXCHANGE_SECRET": "made-up",
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "sealgate", "serve", env=environ, cwd=tmp_path, stderr=write
        )
        os.close(write)
        try:
            lines = ""
            while (address := bots_address(lines)) is None:
                lines += (await asyncio.to_thread(os.read, read, _PIPE_BYTES)).decode()
            async with asyncio.timeout(PATIENCE_S), bot_at(*address) as bot:
                for _ in range(REQUESTS):
                    assert (await bot.ask(request())).status == 200
        finally:
            process.terminate()
            rest = await asyncio.to_thread(_to_the_end, read)
        assert await process.wait() == 0
    assert rest.count(b'"event": "request"') == REQUESTS
    assert len(rest) > 2 * _PIPE_BYTES


def _to_the_end(read: int) -> bytes:
    with os.fdopen(read, "rb") as stream:
        return stream.read()
