"""The package redis is an extra: `gateway.sharing` may be imported only where it is installed."""

from importlib.util import find_spec

MISSING = "the package redis is missing"
FIX = 'install "sealgate[redis]"'


def is_installed() -> bool:
    """Ask whether limits can be shared."""
    return find_spec("redis") is not None
