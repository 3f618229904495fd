"""The package redis is an extra: `gateway.sharing` may be imported only where it is installed."""

import sys
from importlib.util import find_spec

MISSING = "the package redis is missing"
FIX = f"install redis, 5.2 or later, into {sys.prefix}"


def is_installed() -> bool:
    """Ask whether limits can be shared."""
    return find_spec("redis") is not None
