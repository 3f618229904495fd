"""The name in a Host header, as it is compared with the accepted ones."""

import re
from functools import lru_cache

# RFC 9110 section 7.2: a name or an IPv4 address, or an IPv6 address in brackets; then perhaps a port.
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._~-]+))(?::[0-9]{1,5})?")


@lru_cache(maxsize=64)
def host_name(value: str) -> str:
    """Return the name in lower case, without port and an IPv6 address' brackets; "" for what is no host."""
    match = _HOST.fullmatch(value)
    return "" if match is None else (match[1] or match[2]).lower()
