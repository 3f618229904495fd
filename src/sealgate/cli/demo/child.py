"""A program of the demo: `sealgate ARGUMENTS`, which ends when the demo ends in whatever way.

Its standard input is a pipe whose other end only the demo holds: once that is closed, the demo is gone.
"""

import os
import signal
import sys
from threading import Thread


def end_with_stdin() -> None:
    """Send SIGTERM to this process at the end of its standard input, which nothing else may read."""
    Thread(target=_wait, daemon=True).start()


def _wait() -> None:
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    end_with_stdin()
    from sealgate.cli import main

    sys.exit(main())
