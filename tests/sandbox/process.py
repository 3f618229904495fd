"""The sandbox as a process of its own."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

PROGRAM = [sys.executable, "-m", "sealgate", "sandbox"]


@dataclass(frozen=True)
class Process:
    popen: subprocess.Popen[str]
    base_url: str
    api_key: str
    api_secret: str
    session_token: str
    user_address: str


@contextmanager
def sandbox_process(*options: str) -> Iterator[Process]:
    """Run `sealgate sandbox --json` on a free port until the block ends."""
    command = [*PROGRAM, "--json", "--listen", "127.0.0.1:0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as popen:
        try:
            assert popen.stdout is not None
            yield Process(popen, **json.loads(popen.stdout.readline()))
        finally:
            popen.terminate()
