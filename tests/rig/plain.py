"""The program as a person has it, with the standard library alone: an exchange, a gateway, commands."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PATIENCE_S = 30.0
SECRET = "correct-horse-battery-staple"
ENVIRON = {
    **{name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ},
    "SSL_CERT_FILE": os.devnull,
    "SSL_CERT_DIR": os.devnull,
    "EXCHANGE_SECRET": SECRET,
}


@dataclass(frozen=True)
class Ended:
    """How a command ended. `said` is all that it printed, `pid` its process."""

    code: int
    out: str
    err: str
    pid: int

    @property
    def said(self) -> str:
        """All that it printed."""
        return self.out + self.err


def run(*arguments: str, folder: Path, environ: Mapping[str, str] | None = None) -> Ended:
    """Run `sealgate ARGUMENTS` to its end; nobody can be asked."""
    process = subprocess.Popen(
        [sys.executable, "-m", "sealgate", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env={**ENVIRON, **(environ or {})},
        text=True,
    )
    try:
        out, err = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()  # one that should have ended, but serves, must not outlive its test
    return Ended(process.returncode, out, err, process.pid)


class _Exchange(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        # The exchange's own clock, which is all that the gateway asks of it.
        body = json.dumps({"serverTime": _now_ms()} if self.path.endswith("/time") else {}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_DELETE = _answer  # noqa: N815 - the names that http.server calls

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def _now_ms() -> int:
    import time  # noqa: PLC0415, TID251 - the exchange has a clock of its own

    return time.time_ns() // 1_000_000


@contextlib.contextmanager
def running_exchange() -> Iterator[str]:
    """Run an exchange that takes whatever comes; yield its base URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Exchange)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class Gateway:
    """A gateway that runs. `lines` are those of its log so far."""

    process: "subprocess.Popen[str]"
    lines: list[dict[str, Any]] = field(default_factory=list)

    def line(self, event: str) -> dict[str, Any]:
        """Return the first line of an event, which may be yet to come."""
        for seen in self.lines:
            if seen.get("event") == event:
                return seen
        stdout = self.process.stdout
        assert stdout is not None
        overdue = threading.Timer(2 * PATIENCE_S, self.process.kill)  # nothing waits for ever
        overdue.start()
        try:
            for text in stdout:
                self.lines.append(json.loads(text))
                if self.lines[-1].get("event") == event:
                    return self.lines[-1]
        finally:
            overdue.cancel()
        raise AssertionError(f"it ended without {event}: {self.lines}")


@contextlib.contextmanager
def running_gateway(
    *arguments: str, folder: Path, environ: Mapping[str, str] | None = None
) -> Iterator[Gateway]:
    """Run `sealgate serve ARGUMENTS` in a folder as long as the block lasts, and wait until it is ready."""
    process = subprocess.Popen(
        [sys.executable, "-m", "sealgate", "serve", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env={**ENVIRON, **(environ or {})},
        text=True,
    )
    try:
        gateway = Gateway(process)
        gateway.line("ready")
        yield gateway
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, (process.returncode, said)
    finally:
        process.kill()
        process.communicate()
