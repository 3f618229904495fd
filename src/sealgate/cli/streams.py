"""Standard streams that whoever started the program has closed, as some supervisors and `>&-` do.

The next file or socket would get their number, and what is meant for people would go into it; libuv aborts.
"""

import os
import sys

_NUMBERS = range(3)


def open_closed_streams() -> None:
    """Let closed standard streams lead nowhere."""
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
