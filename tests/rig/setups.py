"""Set-ups for `sealgate check`: files, variables and an exchange, whole until a test breaks something."""

import contextlib
import json
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

from click.testing import Result

from rig.command import ended_command
from rig.upstream import Act, Received, Script, Upstream, running_upstream, say
from rig.wire import reply
from sealgate.sandbox.server import running_sandbox
from sealgate.sandbox.settings import SandboxSettings

SECRET = "correct-horse-battery-staple-0123456789"
SESSION = "session-token-of-somebody"
JSON = b"Content-Type: application/json"


@dataclass
class Setup:
    """One set-up. `environ` are the variables that the check is run with.

    `hidden` must not be printed, `kept` are sockets that are closed after the check.
    """

    folder: Path
    environ: dict[str, str] = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    upstream: Upstream | None = None
    kept: list[socket.socket] = field(default_factory=list)

    def write(self, name: str, text: str, mode: int = 0o600) -> Path:
        """Write a file of the set-up."""
        file = self.folder / name
        file.write_text(text)
        file.chmod(mode)
        return file

    def configure(self, text: str) -> None:
        """Use a configuration file, beside the variables."""
        self.environ["SEALGATE_CONFIG"] = str(self.write("sealgate.toml", text))

    def has(self, **settings: str) -> None:
        """Set variables, `LISTEN__TCP` say."""
        self.environ.update({f"SEALGATE_{name}": value for name, value in settings.items()})

    def has_key(self, alias: str, api_key: str, secret: str) -> None:
        """Add a key whose secret is in a file."""
        file = self.write(f"{alias}.secret", secret)
        self.has(
            **{f"KEYS__{alias.upper()}__API_KEY": api_key, f"KEYS__{alias.upper()}__SECRET": f"file:{file}"}
        )
        self.hidden.append(secret)

    def has_session(self, token: str = SESSION) -> None:
        """Give the key main a session token."""
        self.has(KEYS__MAIN__SESSION=f"file:{self.write('main.session', token)}")
        self.hidden.append(token)

    def answers(self, script: Script) -> None:
        """Let the raw exchange answer by a script."""
        assert self.upstream is not None
        self.upstream.script = script

    async def check(self, *arguments: str) -> Result:
        """Run the check."""
        result = await ended_command("check", *self.arguments, *arguments, environ=self.environ)
        for sock in self.kept:
            sock.close()
        for secret in self.hidden:
            assert secret not in result.output
        return result


def detail(text: str, status: bytes = b"401 Unauthorized", *fields: bytes) -> bytes:
    """Return an error reply of the exchange."""
    return reply(status, json.dumps({"detail": text}).encode(), JSON, *fields)


def to_signed(raw: bytes) -> Script:
    """Return a script that answers so what is signed, and 401 what is not."""
    missing = say(detail("Missing API key auth headers"))

    def act(request: Received) -> Act:
        return say(raw) if request.head.value(b"X-SERVICE-APIKEY") else missing

    return act


def a_setup(folder: Path, base_url: str) -> Setup:
    """Return a set-up with an exchange at a URL, and free ports."""
    setup = Setup(folder)
    setup.has(BASE_URL=base_url, LISTEN__TCP="127.0.0.1:0", ADMIN__TCP="")
    setup.has(ADMIN__UNIX=str(folder / "admin.sock"))  # at the default place may be anybody's
    setup.environ["SEALGATE_CONFIG"] = ""
    return setup


@contextlib.asynccontextmanager
async def sandbox_setup(folder: Path, settings: SandboxSettings | None = None) -> AsyncIterator[Setup]:
    """Yield a set-up that is whole, with the sandbox as exchange."""
    async with running_sandbox(settings or SandboxSettings(limit_kind="none")) as sandbox:
        setup = a_setup(folder, sandbox.base_url)
        setup.has_key("main", sandbox.api_key, sandbox.api_secret)
        setup.has_session(sandbox.session_token)
        yield setup


@contextlib.asynccontextmanager
async def raw_setup(folder: Path) -> AsyncIterator[Setup]:
    """Yield a set-up that is whole, with an exchange that answers from a script."""
    async with running_upstream() as upstream:
        setup = a_setup(folder, upstream.base_url)
        setup.upstream = upstream
        setup.has_key("main", "ak-public-1", SECRET)
        setup.answers(to_signed(reply(b"200 OK", b'{"symbols": []}', JSON)))
        yield setup


def lines_of(output: str, line: str) -> list[str]:
    """Return the lines of a report with that level and area, "fail  keys.main" say."""
    return [one for one in output.splitlines() if one.split()[:2] == line.split()]
