"""A gateway that answers all kinds of requests, and all that it says; for the search for secrets in it."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from rig.admin import Admin
from rig.bot import bot_at, request
from rig.program import Program, running_program
from rig.upstream import running_upstream, say
from rig.wire import reply

ORDER = request(b"POST", b"/v1/trade/order", b"Idempotency-Key: once", body=b'{"size":"1"}')
REQUESTS = (
    request(),
    ORDER,
    request(b"DELETE", b"/v1/trade/order/7"),
    request(b"POST", b"/v1/trade/api-keys", body=b"{}"),  # app_only
    request(b"GET", b"/v1/trade/%2e%2e/x"),
    request(b"GET", b"/outside"),
    b"no http at all\r\n\r\n",
)
DEBUG = {"PYTHONASYNCIODEBUG": "1"}  # the loop's own debug log, too
# The same program with one mistake: it keeps a copy of each secret that it reads.
FORGETFUL = """
import sealgate.keys.parts as build
kept, read = [], build.read_secret
def read_and_keep(*arguments):
    kept.append(bytes(read(*arguments)))
    return read(*arguments)
build.read_secret = read_and_keep
from sealgate.cli import main
main()
"""
PAGES = ("/metrics", "/status.json", "/-/ready", "/-/healthy", "/")


@dataclass
class Serving:
    """A running gateway that has answered all kinds of requests, and what it said."""

    program: Program
    said: bytes

    @property
    def process(self) -> int:
        """The number of its process."""
        return self.program.process.pid


def environ(base_url: str, **more: str) -> dict[str, str]:
    return {
        "SEALGATE_BASE_URL": base_url,
        "SEALGATE_LISTEN__TCP": "127.0.0.1:0",
        "SEALGATE_ADMIN__TCP": "127.0.0.1:0",
        "SEALGATE_ADMIN__UNIX": "admin.sock",
        "SEALGATE_LOG__LEVEL": "debug",
        "SEALGATE_JOURNAL__FILE": "journal.db",
        "SEALGATE_KEYS__MAIN__API_KEY": "ak-public-1",
        "SEALGATE_KEYS__MAIN__SECRET": "file:main.secret",
        **more,
    }


def elsewhere(venue: str, **more: str) -> dict[str, str]:
    """Return the settings of another exchange, whose time is read as this upstream states it."""
    return {
        "SEALGATE_VENUE": venue,
        "SEALGATE_UPSTREAM__PREFIX": "/v1/trade",
        "SEALGATE_CLOCK__PATH": "/v1/trade/time",
        "SEALGATE_CLOCK__FIELD": "",
        **more,
    }


def port(url: str) -> int:
    return int(url.rpartition(":")[2])


@asynccontextmanager
async def serving(
    folder: Path,
    start: tuple[str, ...] = ("-m", "sealgate"),
    settings: Mapping[str, str] = MappingProxyType({}),
) -> AsyncIterator[Serving]:
    async with (
        running_upstream() as upstream,
        running_program(
            "serve", environ=environ(upstream.base_url, **DEBUG, **settings), folder=folder, start=start
        ) as program,
    ):
        await program.line('"ready"')
        listening = json.loads(await program.line('"listening"'))
        upstream.answers.append(say(reply(b"401 Unauthorized", b'{"error":"Invalid signature"}')))
        said = b""
        for raw in REQUESTS:
            async with bot_at("127.0.0.1", port(listening["bots"])) as bot:
                said += (await bot.ask(raw)).raw
        for page in PAGES:
            said += (await Admin(port(listening["admin"])).ask(page)).raw
        assert b"200 OK" in said
        assert b"app_only" in said or "SEALGATE_VENUE" in settings
        yield Serving(program, said)


def contents(folder: Path) -> dict[str, bytes]:
    """Return what the gateway left behind, by file."""
    return {file.name: file.read_bytes() for file in folder.iterdir() if not file.name.startswith("main.")}
