"""The name in a Host header, as it is compared with the accepted ones."""

import re
from functools import lru_cache

_PORT = re.compile(r":[0-9]{1,5}\Z")


@lru_cache(maxsize=64)
def host_name(value: str) -> str:
    """Return the name without port and, of an IPv6 address, without brackets, in lower case."""
    return _PORT.sub("", value).lower().removeprefix("[").removesuffix("]")
