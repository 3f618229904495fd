"""What the demo runs on: an exchange behind the gateway, and another one for the bots on their own.

The gateway gets a configuration as a user would write it: a file, with secret and tokens in files of their
own that only their owner can read.
"""

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sealgate.cli.demo.children import Child, running
from sealgate.gateway.host import random_token

LIMIT_REQUESTS = 20
LIMIT_WINDOW_S = 1
# The exchange's clock is ahead of this machine's, as clocks are; within recv_window, so that bots on their
# own live with it.
SKEW_MS = 1500
_TOKEN_LENGTH = 16  # 96 bits, for as long as the demo runs; so that the curl line fits on a line
_EXCHANGE = (
    "sandbox",
    "--json",
    f"--limit-requests={LIMIT_REQUESTS}",
    f"--limit-window-s={LIMIT_WINDOW_S}",
    f"--skew-ms={SKEW_MS}",
)


@dataclass(frozen=True, slots=True)
class Ports:
    """Where to listen; 0 is any free port."""

    bots: int = 0
    admin: int = 0
    sandbox: int = 0


@dataclass(frozen=True, slots=True)
class Exchange:
    """A running sandbox and the key of its one user."""

    base_url: str
    api_key: str
    api_secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Stage:
    """Everything that runs, as URLs. `tokens` are the bots' at the gateway."""

    bots_url: str
    admin_url: str
    tokens: dict[str, str] = field(repr=False)
    exchange: Exchange
    other: Exchange
    children: tuple[Child, ...]


@asynccontextmanager
async def staged(ports: Ports, bots: tuple[str, ...]) -> AsyncIterator[Stage]:
    """Run both exchanges and the gateway until the block ends. Raises ChildError."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sealgate-demo-")))
        first = await stack.enter_async_context(_sandbox(ports.sandbox))
        second = await stack.enter_async_context(_sandbox(0))
        exchange, other = await asyncio.gather(_exchange(first), _exchange(second))
        tokens = {bot: random_token()[:_TOKEN_LENGTH] for bot in bots}
        config = _write_config(folder, exchange, ports, tokens)
        gateway = await stack.enter_async_context(running("the gateway", "serve", "--config", str(config)))
        listening = await gateway.says("bots")
        yield Stage(
            bots_url=listening["bots"],
            admin_url=listening["admin"],
            tokens=tokens,
            exchange=exchange,
            other=other,
            children=(first, second, gateway),
        )


def _sandbox(port: int) -> Any:
    return running("the sandbox", *_EXCHANGE, f"--listen=127.0.0.1:{port}")


async def _exchange(sandbox: Child) -> Exchange:
    line = await sandbox.says("base_url")
    return Exchange(line["base_url"], line["api_key"], line["api_secret"])


def _write_config(folder: Path, exchange: Exchange, ports: Ports, tokens: dict[str, str]) -> Path:
    secret = _write_private(folder / "secret", exchange.api_secret)
    lines = [
        f"base_url = {_quoted(exchange.base_url)}",
        f'listen.tcp = "127.0.0.1:{ports.bots}"',
        f'admin.tcp = "127.0.0.1:{ports.admin}"',
        'log.format = "json"',
        "[keys.main]",
        f"api_key = {_quoted(exchange.api_key)}",
        f"secret = {_quoted(f'file:{secret}')}",
    ]
    for bot, token in tokens.items():
        file = _write_private(folder / f"{bot}.token", token)
        lines += [f"[bots.{bot}]", f"token = {_quoted(f'file:{file}')}"]
    return _write_private(folder / "sealgate.toml", "\n".join(lines))


def _write_private(file: Path, text: str) -> Path:
    file.touch(mode=0o600)
    file.write_text(text)
    return file


def _quoted(text: str) -> str:
    """Write a TOML basic string; JSON's escapes are among TOML's."""
    return json.dumps(text)
