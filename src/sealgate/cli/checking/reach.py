"""Whether bots on other machines can and should come in at listen.tcp, where it is for them."""

from collections.abc import Iterator

from sealgate.config import Config
from sealgate.config.address import is_loopback
from sealgate.core.findings import Finding, warn
from sealgate.gateway.listeners.opening import OPEN_WIRE, OPEN_WIRE_FIX


def look_at_reach(config: Config) -> Iterator[Finding]:
    """Yield what an address for other machines lacks: encryption, and a name that they may use."""
    listen = config.listen
    if listen.tcp is None or listen.tcp.is_loopback:
        return
    if listen.tls_cert is None:
        yield warn("listen.tcp", OPEN_WIRE, OPEN_WIRE_FIX)
    if all(is_loopback(host) for host in listen.hosts):
        text = (
            "listen.tcp is open to other machines, but listen.hosts names only this one: bots there get 421"
        )
        yield warn("listen.hosts", text, "add the host name that those bots use")
