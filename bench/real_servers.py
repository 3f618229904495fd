"""Real servers as the exchanges of one gateway: each must read the path that the gateway let through.

    scripts/bench real_servers --python ~/servers/bin/python --node ~/servers/node_modules

Each server is an exchange, and answers with its own name and the path by which it chooses what to do. Odd
targets are sent to all of them. Whatever passes must reach the server that the first segment names, and be
read there as the gateway read it: the path that was sent, whichever escapes are undone. What is not installed
is left out: those in Python need a Python that has their packages, those in Node.js a folder of modules.

Exits with 1 where a server reads something else.
"""

import argparse
import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from urllib.parse import unquote_to_bytes

from bench.pages import table
from bench.process import answer_at
from rig.bot import Reply, bot_at, request
from rig.ports import free_port
from rig.station import ENVIRON, KEY
from rig.wire import let_pass
from sealgate.config import Config
from sealgate.server.gateway import running_gateway

_HERE = Path(__file__).parent / "servers"
_PREFIX = "/v1/trade/"
_START_S = 30.0
_IN_PYTHON = (
    *("standard", "wsgiref", "aiohttp", "tornado", "twisted", "sanic", "werkzeug", "gevent", "eventlet"),
    *("cheroot", "waitress", "flask", "falcon", "starlette"),
)
_IN_NODE = ("http", "express", "fastify", "koa", "hapi", "restify", "polka", "hono")
_ODD = (
    *(
        "/",
        "//",
        ".",
        "..",
        "/./",
        "/../",
        ";",
        "..;/",
        "%2e",
        "%2E%2e",
        "%2f",
        "%5c",
        "\\",
        "%00",
        "%0a",
        "%20",
    ),
    *(
        "%25",
        "%252e",
        "%c0%ae",
        "%C3%A9",
        "%3a",
        "%3B",
        "%23",
        "%3F",
        "%7e",
        "?",
        "#",
        "?a=/../",
        "&b=%2F..",
        "%zz",
    ),
    *(
        "%",
        "\xe9",
        "[",
        "]",
        "{",
        "...",
        "..a",
        ".a",
        "a.",
        "+",
        "=",
        ",",
        "@",
        ":",
        "~",
        "*",
        "'",
        "(",
        "!",
        "$",
    ),
)
_USUAL = (
    "a",
    "order",
    "7",
    "/x",
    "/order",
    "%20",
    "%C3%A9",
    "%3a",
    "...",
    "~",
    "*",
    "'",
    "(",
    ",",
    "=",
    "+",
    "?a=",
    "@",
)


@dataclass(frozen=True)
class Server:
    """A real server: the command that runs it, in a folder with the files `files`."""

    command: Sequence[str]
    files: Mapping[str, str] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)


def installed(options: argparse.Namespace) -> dict[str, Server]:
    """Return the servers that this machine has, by a name for the exchange."""
    found: dict[str, Server] = {}
    # 1. In Python, by themselves or by a program that serves an application.
    if python := options.python:
        apps = str(_HERE / "apps.py")
        found |= {f"py-{name}": Server((python, apps, name)) for name in _IN_PYTHON}
        module = ("--app-dir", str(_HERE), "apps:asgi")
        bind = "127.0.0.1:@PORT@"
        quiet = ("--log-level", "critical")
        for parser in ("h11", "httptools"):
            command = (python, "-m", "uvicorn", *module, "--http", parser, "--port", "@PORT@", *quiet)
            found[f"py-uvicorn-{parser}"] = Server(command)
        path = {"PYTHONPATH": str(_HERE)}
        found["py-hypercorn"] = Server((python, "-m", "hypercorn", "-b", bind, "apps:asgi"), environ=path)
        found["py-daphne"] = Server((python, "-m", "daphne", "-p", "@PORT@", "apps:asgi"), environ=path)
        found["py-gunicorn"] = Server(
            (python, "-m", "gunicorn", "--threads", "4", "-b", bind, "apps:wsgi"), environ=path
        )
        granian = ("--interface", "asgi", "--port", "@PORT@", "apps:asgi")
        found["py-granian"] = Server((python, "-m", "granian", *granian), environ=path)
    # 2. In Node.js.
    if (node := shutil.which("node")) and options.node:
        where = {"NODE_PATH": options.node}
        found |= {
            f"js-{name}": Server((node, str(_HERE / "node.cjs"), name), environ=where) for name in _IN_NODE
        }
    # 3. Others.
    if shutil.which("go"):
        found["go"] = Server(("go", "run", str(_HERE / "server.go")))
    if shutil.which("java"):
        found["java"] = Server(("java", str(_HERE / "Server.java")))
    for name, file, *arguments in (
        ("nginx", "nginx.conf", "-p", ".", "-e", "error.log", "-c", "nginx.conf"),
        ("haproxy", "haproxy.cfg", "-db", "-q", "-f", "haproxy.cfg"),
        ("caddy", "Caddyfile", "run", "--config", "Caddyfile", "--adapter", "caddyfile"),
    ):
        if program := shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin"))):
            found[name] = Server((program, *arguments), {file: (_HERE / file).read_text()})
    return found


@contextlib.contextmanager
def started(name: str, server: Server, folder: Path, port: int) -> Iterator[None]:
    """Run a server as long as the block lasts."""

    def filled(text: str) -> str:
        return text.replace("@PORT@", str(port)).replace("@NAME@", name)

    folder.mkdir()
    for file, text in server.files.items():
        (folder / file).write_text(filled(text))
    environ = {**os.environ, "HOME": str(folder), "NAME": name, "PORT": str(port), **server.environ}
    environ |= {"GOCACHE": str(folder / "go"), "GOFLAGS": "-mod=mod"}
    with (folder / "log").open("wb") as log:
        command = [filled(word) for word in server.command]
        with subprocess.Popen(
            command, env=environ, cwd=folder, stdout=log, stderr=log, start_new_session=True
        ) as process:
            try:
                yield
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, 15)


async def answering(ports: Mapping[str, int]) -> set[str]:
    """Return those that answer within half a minute."""
    until = time.monotonic() + _START_S
    here: set[str] = set()
    while len(here) < len(ports) and time.monotonic() < until:
        for name in ports.keys() - here:
            if answer_at(ports[name], request(b"GET", b"/v1/trade/x")):
                here.add(name)
        await let_pass(0.2)
    return here


def targets(chance: Random, count: int) -> list[str]:
    """Return targets below the prefix or around it."""
    made = []
    for _ in range(count):
        pieces = chance.choice((_ODD, _USUAL, _USUAL))
        start = chance.choice((_PREFIX, _PREFIX, _PREFIX, "/v1/trade", "/v1/", "/", ""))
        made.append(start + "".join(chance.choices(pieces, k=chance.randint(1, 6))))
    return list(dict.fromkeys(made))


@dataclass
class Read:
    """What became of the targets at one server: passed and read alike, read otherwise, and refused by it."""

    alike: int = 0
    refused: Counter[int] = field(default_factory=Counter)
    otherwise: list[str] = field(default_factory=list)

    def note(self, name: str, target: str, reply: Reply) -> None:
        """Take in an answer of the server."""
        path = target.partition("?")[0].encode("latin-1")
        decoded = unquote_to_bytes(path)
        accepted = {decoded, decoded.decode("utf-8", "replace").encode()}
        server, _, read = reply.body.partition(b"\n")
        if reply.status != 200:
            self.refused[reply.status] += 1
        elif server == name.encode() and unquote_to_bytes(read) in accepted:
            self.alike += 1
        else:
            self.otherwise.append(f"{target!r} was read by {server.decode()} as {read!r}")


async def read_by_all(ports: Mapping[str, int], sent: Sequence[str]) -> dict[str, Read]:
    """Send the targets to each server through one gateway."""
    tree = {
        "listen": {"tcp": "127.0.0.1:0"},
        "admin": {"tcp": "127.0.0.1:0"},
        "clock": {"required": False, "grace": 0},
        "upstream": {"warm": False, "total_timeout": 3},  # some serve one connection at a time
        "exchanges": {name: {"base_url": f"http://127.0.0.1:{port}"} for name, port in ports.items()},
        "keys": {"main": {**KEY, "exchanges": list(ports)}},
    }
    found = {name: Read() for name in ports}
    async with running_gateway(Config.model_validate(tree), environ=ENVIRON) as gateway:
        gateway.services.untried.clear()
        await gateway.wait_until_ready(_START_S)
        for name, read in found.items():
            pending = list(sent)
            while pending:
                async with bot_at(gateway.address.host, gateway.address.port) as bot:
                    while pending:
                        target = pending.pop()
                        reply = await bot.ask(request(b"GET", f"/{name}{target}".encode("latin-1")))
                        if reply.reason is None:
                            read.note(name, target, reply)
                        elif reply.outcome != "not_sent":
                            read.refused[reply.status] += 1
                        if reply.closes:
                            break
    return found


@contextlib.asynccontextmanager
async def all_running(servers: Mapping[str, Server]) -> AsyncIterator[dict[str, int]]:
    with TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        ports = {name: free_port() for name in servers}
        for name, server in servers.items():
            stack.enter_context(started(name, server, Path(folder) / name, ports[name]))
        here = await answering(ports)
        for name in servers.keys() - here:
            print(f"Without {name}: {(Path(folder) / name / 'log').read_text()[-300:]}", file=sys.stderr)
        yield {name: port for name, port in ports.items() if name in here}


async def run(options: argparse.Namespace) -> dict[str, Read]:
    async with all_running(installed(options)) as ports:
        return await read_by_all(ports, targets(Random(options.seed), options.count))


def main() -> None:
    parser = argparse.ArgumentParser(description="How real servers read what a gateway lets through.")
    parser.add_argument("--python", help="a Python with uvicorn, gunicorn, tornado and so on")
    parser.add_argument("--node", metavar="FOLDER", help="node_modules with express, fastify and so on")
    parser.add_argument("--count", type=int, default=1000, help="targets (1000)")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**6)
    options = parser.parse_args()
    print(f"seed {options.seed}", file=sys.stderr)
    found = asyncio.run(run(options))
    rows = (
        (
            name,
            str(read.alike),
            str(len(read.otherwise)),
            " ".join(f"{n} with {s}" for s, n in read.refused.items()),
        )
        for name, read in sorted(found.items())
    )
    print(table(("server", "read alike", "otherwise", "refused by the server"), rows))
    print(f"{len(found)} servers")
    wrong = [f"{name}: {words}" for name, read in found.items() for words in read.otherwise[:5]]
    sys.exit("\n".join(wrong) or None)


if __name__ == "__main__":
    main()
