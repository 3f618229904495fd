"""A program of the demo: `sealgate ARGUMENTS`, which the kernel ends when the demo ends in whatever way."""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def end_with(parent: int) -> None:
    """Have SIGTERM sent to this process at its parent's end; `parent` is its id. Linux only."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:  # it ended before that
        sys.exit(1)


if __name__ == "__main__":
    end_with(int(sys.argv.pop(1)))
    from sealgate.cli import main

    main()
