"""A terminal for a program, and the person at it: waits for a text, then types."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_LONGEST_S = 60.0


class Terminal:
    """A program that runs in a terminal of 80 columns. `output` is all that was shown."""

    def __init__(self, program: "subprocess.Popen[bytes]", leader: int) -> None:
        self.output = ""
        self._program, self._leader, self._seen = program, leader, 0

    def answer(self, question: str, text: str = "", end: str = "\n") -> None:
        """Wait for a question, behind the one before, and type a text."""
        self.until(question)
        os.write(self._leader, f"{text}{end}".encode())

    def until(self, text: str) -> None:
        """Wait until a text is shown, behind what was waited for before."""
        while text not in self.output[self._seen :]:
            assert self._read(), f"{text!r} is not in {self.output!r}"
        self._seen = self.output.index(text, self._seen) + len(text)

    def stop(self) -> None:
        """Ask the program to end."""
        self._program.terminate()

    def end(self) -> int:
        """Wait for the end of the program, and return its exit code."""
        while self._read():
            pass
        return self._program.wait(_LONGEST_S)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._leader], [], [], _LONGEST_S)
        try:
            part = os.read(self._leader, 4096) if ready else b""
        except OSError:  # the end of a terminal
            part = b""
        self.output += part.decode().replace("\r\n", "\n")
        return bool(part)


@contextmanager
def in_a_terminal(
    *arguments: str, folder: Path, environ: Mapping[str, str] | None = None
) -> Iterator[Terminal]:
    """Run `sealgate` in a terminal of its own."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    command = [sys.executable, "-c", _IN_FRONT, *arguments]
    places = {"PATH": os.environ["PATH"], "HOME": str(folder), **(environ or {})}
    with subprocess.Popen(
        command,
        stdin=follower,
        stdout=follower,
        stderr=follower,
        cwd=folder,
        env=places,
        start_new_session=True,
    ) as program:
        os.close(follower)
        try:
            yield Terminal(program, leader)
        finally:
            program.kill()
            os.close(leader)


# The program is in the foreground, so that Ctrl-C reaches it; a shell's background job would ignore it.
_IN_FRONT = (
    "import fcntl, runpy, signal, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "signal.signal(signal.SIGINT, signal.default_int_handler); sys.argv[0] = 'sealgate'; "
    "runpy.run_module('sealgate', run_name='__main__', alter_sys=False)"
)
