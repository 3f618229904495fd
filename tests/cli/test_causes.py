import errno
import socket

import pytest

from sealgate.cli.frame import plain_cause

CAUSES = {
    "asyncio's sentence": (
        OSError(errno.EADDRNOTAVAIL, "error while attempting to bind on address ('192.0.2.1', 1): …"),
        "cannot assign requested address",
    ),
    "a port in use": (OSError(errno.EADDRINUSE, "Address already in use"), "another program listens there"),
    "no such host": (socket.gaierror(-2, "Name or service not known"), "name or service not known"),
    "a time-out": (TimeoutError("timed out"), "timed out"),
    "nothing said": (OSError(), "oserror"),
}


@pytest.mark.parametrize(("error", "cause"), CAUSES.values(), ids=CAUSES)
def test_plain_cause(error: OSError, cause: str) -> None:
    assert plain_cause(error) == cause
