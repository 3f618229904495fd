"""Standard streams that are closed, as some supervisors and `>&-` leave them, or that take no more output."""

import os
import sys

_NUMBERS = range(3)


def open_closed_streams() -> None:
    """Open a way to nowhere where a standard stream is closed.

    The next file or socket would get its number, and what is meant for people would go into it; libuv aborts.
    """
    for number in _NUMBERS:
        try:
            os.fstat(number)
        except OSError:
            # It gets the lowest free number, which is this one; programs that are started get it, too.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    # Python has None in their place.
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def drop_unwritable_output() -> None:
    """Forget output that cannot be written, which Python would try again on its way out and exit with 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)
