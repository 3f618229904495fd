"""Where a command on this machine asks the gateway: its admin address, which may be every address."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from sealgate.cli.frame import leave_with_error

if TYPE_CHECKING:
    from sealgate.config import Address

_OWN = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared with, not bound to


def own_address(host: str) -> str:
    """Return the host to connect to."""
    return _OWN.get(host, host)


def admin_address(config_file: Path | None, other_way: str = "") -> tuple["Address", str]:
    """Return `admin.tcp` of the configuration, and a Host name that is taken there.

    Without any configuration it is the default, as the gateway's may stand in another terminal alone. Leaves
    with exit code 2 where nobody can be asked there; `other_way` is what may be done instead of fixing a free
    port.
    """
    from sealgate.config.load import load_admin

    admin = load_admin(config_file, os.environ)
    if admin.tcp is None:
        leave_with_error("admin.tcp is off, so there is nothing to ask; give it an address")
    if admin.tcp.port == 0:
        leave_with_error(
            f"admin.tcp has port 0, which means a new port at each start; give it a fixed one{other_way}"
        )
    return admin.tcp, admin.hosts[0]
