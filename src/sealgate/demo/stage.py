"""What the demo runs on: an exchange behind the gateway, and another one for the bots on their own.

The gateway gets a configuration as a user would write it: a file, with secret and tokens in files of their
own that only their owner can read.
"""

import asyncio
import json
import socket
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sealgate.demo.children import Child, running
from sealgate.machine.system import random_token
from sealgate.machine.terminal import plain_cause

LIMIT_REQUESTS = 20
LIMIT_WINDOW_S = 1
# The exchange's clock is ahead of this machine's, as clocks are; within recv_window, so that bots on their
# own live with it.
SKEW_MS = 1500
_HOST = "127.0.0.1"
_TOKEN_LENGTH = 16  # 96 bits, for as long as the demo runs; so that the curl line fits on a line
_EXCHANGE = (
    "sandbox",
    "--json",
    f"--limit-requests={LIMIT_REQUESTS}",
    f"--limit-window-s={LIMIT_WINDOW_S}",
    f"--skew-ms={SKEW_MS}",
)


class PortError(Exception):
    """A port that was asked for cannot be had. `str()` is one line: cause and fix."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Where to listen; 0 is any free port."""

    bots: int = 0
    admin: int = 0
    sandbox: int = 0

    def check(self) -> None:
        """Try to listen at all of them, and let go. Raises PortError, which names the demo's own option."""
        options = {"--port": self.bots, "--admin-port": self.admin, "--sandbox-port": self.sandbox}
        with ExitStack() as held:
            for option, port in options.items():
                try:
                    held.enter_context(socket.create_server((_HOST, port)))
                except OSError as error:
                    raise PortError(
                        f"cannot listen on {_HOST}:{port}: {plain_cause(error)}; choose another {option}"
                    ) from None


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
async def staged(ports: Ports, weights: Mapping[str, int]) -> AsyncIterator[Stage]:
    """Run both exchanges and the gateway, with bots of these weights, until the block ends.

    Raises PortError for a port that cannot be had, ChildError for all else that does not start.
    """
    ports.check()
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sealgate-demo-")))
        first = await stack.enter_async_context(_sandbox(ports.sandbox))
        second = await stack.enter_async_context(_sandbox(0))
        exchange, other = await asyncio.gather(_exchange(first), _exchange(second))
        tokens = {bot: random_token()[:_TOKEN_LENGTH] for bot in weights}
        entries = _bot_entries(folder, tokens, weights)
        config = _write_config(folder, exchange, ports, entries)
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
    return running("the sandbox", *_EXCHANGE, f"--listen={_HOST}:{port}")


async def _exchange(sandbox: Child) -> Exchange:
    line = await sandbox.says("base_url")
    return Exchange(line["base_url"], line["api_key"], line["api_secret"])


def _write_config(folder: Path, exchange: Exchange, ports: Ports, bots: list[str]) -> Path:
    secret = _write_private(folder / "secret", exchange.api_secret)
    lines = [
        f"base_url = {_quoted(exchange.base_url)}",
        f'listen.tcp = "{_HOST}:{ports.bots}"',
        f'admin.tcp = "{_HOST}:{ports.admin}"',
        'admin.unix = "off"',  # the default place is the real gateway's
        'log.format = "json"',
        "[keys.main]",
        f"api_key = {_quoted(exchange.api_key)}",
        f"secret = {_quoted(f'file:{secret}')}",
        *bots,
    ]
    return _write_private(folder / "sealgate.toml", "\n".join(lines))


def _bot_entries(folder: Path, tokens: Mapping[str, str], weights: Mapping[str, int]) -> list[str]:
    lines = []
    for bot, weight in weights.items():
        file = _write_private(folder / f"{bot}.token", tokens[bot])
        lines += [f"[bots.{bot}]", f"token = {_quoted(f'file:{file}')}", f"weight = {weight}"]
    return lines


def _write_private(file: Path, text: str) -> Path:
    file.touch(mode=0o600)
    file.write_text(text)
    return file


def _quoted(text: str) -> str:
    """Write a TOML basic string; JSON's escapes are among TOML's."""
    return json.dumps(text)
