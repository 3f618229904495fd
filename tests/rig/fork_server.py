"""`python -m sealgate` forked from a process that has imported it: a start costs a second of processor time.

In `forking()` subprocess and asyncio start programs so. To them and to the program it looks the same: a child
of this process with streams, folder and environment of its own. Tests of starting itself go through a shell.
"""

import atexit
import ctypes
import gc
import importlib
import json
import os
import pkgutil
import runpy
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import sealgate

_PROGRAM = [sys.executable, "-m", "sealgate"]
_MOST_BYTES = 1 << 17
_PR_SET_CHILD_SUBREAPER = 36
# By name, as `subprocess` gives them by position.
_GIVEN = (
    *("args", "executable", "preexec_fn", "close_fds", "pass_fds", "cwd", "env", "startupinfo"),
    *("creationflags", "shell", "stdin", "p2cwrite", "c2pread", "stdout", "errread", "stderr"),
    *("restore_signals", "gid", "gids", "uid", "umask", "start_new_session", "process_group"),
)


@contextmanager
def forking() -> Iterator[None]:
    """Fork each `python -m sealgate` that is started in the block, on Linux."""
    if sys.platform != "linux":
        yield
        return
    owner: Any = subprocess.Popen
    as_ever = owner._execute_child

    def execute(self: Any, *given: Any) -> None:
        asked = dict(zip(_GIVEN, given, strict=True))
        if not _can_be_forked(asked):
            as_ever(self, *given)
            return
        self.pid = _forked(asked)
        self._child_created = True
        pipes = ("stdin", "p2cwrite", "c2pread", "stdout", "errread", "stderr")
        self._close_pipe_fds(*(asked[name] for name in pipes))

    owner._execute_child = execute
    try:
        yield
    finally:
        owner._execute_child = as_ever


def _can_be_forked(asked: Mapping[str, Any]) -> bool:
    arguments = [str(word) for word in asked["args"]] if not asked["shell"] else []
    of_python = {name for name in asked["env"] or os.environ if name.startswith(("PYTHON", "LC_", "LANG"))}
    own = {name for name in of_python if (asked["env"] or os.environ)[name] != os.environ.get(name)}
    return arguments[:3] == _PROGRAM and not (own or asked["pass_fds"] or asked["preexec_fn"])


def _forked(asked: Mapping[str, Any]) -> int:
    """Return the id of a process that begins as the server is, and is a child of this one."""
    told = {
        "arguments": [str(word) for word in asked["args"][3:]],
        "environ": dict(asked["env"] or os.environ),
        "folder": str(asked["cwd"] or Path.cwd()),
        "is_leader": asked["start_new_session"],
    }
    streams = [
        asked[name] if asked[name] != -1 else number for number, name in enumerate(("stdin", "stdout"))
    ]
    streams.append(asked["stderr"] if asked["stderr"] != -1 else 2)
    server, lock = _server()
    with lock:
        adopts(is_so=True)
        try:
            socket.send_fds(server, [json.dumps(told).encode()], streams)
            return int(server.recv(_MOST_BYTES))
        finally:
            adopts(is_so=False)


def adopts(*, is_so: bool) -> None:
    """Make this process the parent of those whose own parent ends."""
    if ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, int(is_so), 0, 0, 0):
        raise OSError("no process can be adopted")


@cache
def _server() -> tuple[socket.socket, threading.Lock]:
    """Start the server, which ends with this process."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    there.set_inheritable(True)
    command = [sys.executable, __file__, str(there.fileno())]
    os.posix_spawn(sys.executable, command, os.environ)  # an object of `subprocess` would ask for its end
    there.close()
    return here, threading.Lock()


def serve(asking: socket.socket) -> None:
    """Fork for each message, and return in what was forked; end where nobody can ask any more."""
    while True:
        told, streams, _, _ = socket.recv_fds(asking, _MOST_BYTES, 3)
        if not told:
            sys.exit(0)
        gate, barrier = os.pipe()
        known, knows = os.pipe()
        between = os.fork()
        if not between:
            program = os.fork()
            if not program:
                asking.detach()
                os.close(barrier)
                os.read(gate, 1)  # it ends with the process between, when the parent is another one
                become(json.loads(told), streams)
                return
            os.write(knows, b"%d" % program)
            os._exit(0)
        os.close(barrier)
        os.waitpid(between, 0)
        asking.send(os.read(known, 16))
        for number in (gate, known, knows, *streams):
            os.close(number)


def become(told: Mapping[str, Any], streams: list[int]) -> None:
    """Take streams, folder, environment and arguments."""
    if told["is_leader"]:
        os.setsid()
    os.chdir(told["folder"])
    sys.path.insert(0, told["folder"])
    os.environ.clear()
    os.environ.update(told["environ"])
    sys.argv[1:] = told["arguments"]
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, 256)
    whole: Any = sys
    whole.stdin = whole.__stdin__ = open(0, closefd=False)  # noqa: SIM115 - for as long as it lives
    whole.stdout = whole.__stdout__ = open(1, "w", closefd=False)  # noqa: SIM115
    whole.stderr = whole.__stderr__ = open(2, "w", 1, errors="backslashreplace", closefd=False)  # noqa: SIM115


def load() -> None:
    """Import all modules of the program, and structlog without rich, as `serve` does."""
    del sys.path[0]  # where this file is
    whole: Any = sys.modules
    whole["rich"] = None
    importlib.import_module("structlog")
    del whole["rich"]
    for module in pkgutil.walk_packages(sealgate.__path__, "sealgate."):
        if not module.name.startswith(("sealgate.__main__", "sealgate.testing")):
            importlib.import_module(module.name)


def end(code: object) -> NoReturn:
    """End as Python does, but without taking every object apart: that would be most of a command's time."""
    if code is not None and not isinstance(code, int):
        sys.stderr.write(f"{code}\n")
        code = 1
    threading._shutdown()  # type: ignore[attr-defined] # waits for threads
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code or 0)


if __name__ == "__main__":
    load()
    gc.freeze()
    serve(socket.socket(fileno=int(sys.argv[1])))
    try:
        runpy.run_module("sealgate", run_name="__main__", alter_sys=True)
    except SystemExit as error:
        end(error.code)
