"""The cause of a failed system call in plain words."""

import errno
import os

_KNOWN = {errno.EADDRINUSE: "another program listens there"}


def plain_cause(error: OSError) -> str:
    """Return the cause, without number and address.

    asyncio writes a sentence of its own into `strerror`. Errors of name resolution have negative numbers and
    their own words.
    """
    number = error.errno or 0
    if number <= 0:
        return (error.strerror or str(error) or type(error).__name__).lower()
    return _KNOWN.get(number) or os.strerror(number).lower()
