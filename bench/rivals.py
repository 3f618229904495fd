"""The rivals from elsewhere: HAProxy from Debian, mitmproxy in a virtual environment of its own.

mitmproxy's dependencies may clash with ours, so it has its own lock (deploy/requirements-bench.txt), and is
installed on demand, once for each state of that lock.
"""

import base64
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.process import Program, Way, first_line, running
from rig.ports import free_port

API_KEY, SECRET = "bench", "bench-secret"
_HERE = Path(__file__).parent
_LOCK = _HERE.parent / "deploy/requirements-bench.txt"
_VENV = _HERE.parent / ".venv/mitmproxy"


@dataclass(frozen=True)
class Setting:
    """The upstream as HOST:PORT, whom to trust where it speaks TLS, whether the gateway keeps a journal."""

    upstream: str
    ca_file: Path | None = None
    has_journal: bool = False

    @property
    def url(self) -> str:
        return f"{'https' if self.ca_file else 'http'}://{self.upstream}"


class MissingError(Exception):
    """A rival that cannot be had here; the text says what would bring it."""


@contextmanager
def running_haproxy(setting: Setting, folder: Path) -> Iterator[Way]:
    """Run it on a socket that it inherits, so that the port is known and nobody else's."""
    environ = {
        **os.environ,
        "API_KEY": API_KEY,
        "SECRET_BASE64": base64.b64encode(SECRET.encode()).decode(),
        "UPSTREAM": setting.upstream,
        **({"CA_FILE": str(setting.ca_file)} if setting.ca_file else {}),
    }
    command = (_installed("haproxy"), "-db", "-q", "-f", str(_HERE / "haproxy.cfg"))
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        number = listener.fileno()
        environ["LISTEN_FD"] = str(number)
        with (
            (folder / "haproxy.log").open("wb") as errors,
            running(Program(command, environ, (number,), stdout=errors, stderr=errors)) as process,
        ):
            yield Way(listener.getsockname()[1], process.pid)


@contextmanager
def running_caddy(setting: Setting, folder: Path) -> Iterator[Way]:
    """Run it on a port that was free: it can neither inherit a socket nor say which one it got."""
    tls = f"tls_trusted_ca_certs {setting.ca_file}" if setting.ca_file else ""
    port = free_port()
    environ = {
        **os.environ,
        "HOME": str(folder),
        "GOMAXPROCS": "1",
        "LISTEN_PORT": str(port),
        "UPSTREAM": setting.url,
        "TRANSPORT": tls,
    }
    config = ("--config", str(_HERE / "caddy.cfg"), "--adapter", "caddyfile")
    with (
        (folder / "caddy.log").open("wb") as errors,
        running(
            Program((_installed("caddy"), "run", *config), environ, stdout=errors, stderr=errors)
        ) as process,
    ):
        yield Way(port, process.pid)


def _installed(name: str) -> str:
    """Return the program of a Debian package of that name. Raises MissingError."""
    # Debian puts some where only root looks.
    found = shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin")))
    if found is None:
        raise MissingError(f"apt-get install --no-install-recommends {name}")
    return found


@contextmanager
def running_mitmproxy(setting: Setting, folder: Path) -> Iterator[Way]:
    options = ("-q", "--mode", f"reverse:{setting.url}", "--listen-host", "127.0.0.1", "-p", "0")
    trusted = ("--set", f"ssl_verify_upstream_trusted_ca={setting.ca_file}") if setting.ca_file else ()
    addon = (*trusted, "--set", f"confdir={folder}", "-s", str(_HERE / "mitmproxy_addon.py"))
    environ = {**os.environ, "API_KEY": API_KEY, "BENCH_SECRET": SECRET}
    program = Program((mitmdump(), *options, *addon), environ, stdout=subprocess.PIPE)
    with running(program) as process:
        yield Way(int(first_line(process)), process.pid)


def mitmdump() -> str:
    """Return the program, installed before if need be. Raises MissingError."""
    stamp = _VENV / ".stamp"
    if not stamp.exists() or stamp.read_text() != _LOCK.read_text():
        print("Installing mitmproxy (once)", file=sys.stderr)
        _install(stamp)
    return str(_VENV / "bin/mitmdump")


def _install(stamp: Path) -> None:
    venv.create(_VENV, clear=True, with_pip=True)
    pip = (str(_VENV / "bin/python"), "-m", "pip", "--quiet", "--disable-pip-version-check")
    try:
        subprocess.run((*pip, "install", "--require-hashes", "-r", str(_LOCK)), check=True)
    except subprocess.CalledProcessError:
        raise MissingError("pip could not install deploy/requirements-bench.txt") from None
    stamp.write_text(_LOCK.read_text())


def versions() -> Iterator[str]:
    """Yield the name and version of each rival that is here."""
    for name, argument, place in (("HAProxy", "-v", 2), ("Caddy", "version", 0)):
        with contextlib.suppress(MissingError):
            command = (_installed(name.lower()), argument)
            printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            yield f"{name} {printed.split()[place].partition('-')[0]}"
    if (_VENV / ".stamp").exists():
        [line] = (line for line in _LOCK.read_text().splitlines() if line.startswith("mitmproxy=="))
        yield line.rstrip(" \\").replace("==", " ")
