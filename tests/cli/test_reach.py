"""What `sealgate check` says of an address that bots on other machines can reach."""

from pathlib import Path

import pytest

from sealgate.cli.checking.local import look_at_reach
from sealgate.config import load_config
from sealgate.core.findings import warn
from sealgate.gateway.listeners.opening import OPEN_WIRE, OPEN_WIRE_FIX

UNENCRYPTED = warn("listen.tcp", OPEN_WIRE, OPEN_WIRE_FIX)
UNNAMED = warn(
    "listen.hosts",
    "listen.tcp is open to other machines, but listen.hosts names only this one: bots there get 421",
    "add the host name that those bots use",
)
EVERYWHERE = "0.0.0.0:8787"
CASES = {
    "this machine alone": ("127.0.0.1:8787", "localhost", False, []),
    "no address": ("", "localhost", False, []),
    "neither": (EVERYWHERE, "127.0.0.1, localhost, ::1", False, [UNENCRYPTED, UNNAMED]),
    "a name, but no TLS": (EVERYWHERE, "localhost, gate.example", False, [UNENCRYPTED]),
    "TLS, but no name": ("[::]:8787", "localhost", True, [UNNAMED]),
    "both": ("192.0.2.1:8787", "192.0.2.1", True, []),
}


@pytest.mark.parametrize(("address", "hosts", "has_tls", "told"), CASES.values(), ids=CASES)
def test_what_an_address_for_other_machines_lacks(
    address: str, hosts: str, has_tls: bool, told: list[object], tmp_path: Path
) -> None:
    pem = tmp_path / "any.pem"
    pem.touch()
    environ = {
        "SEALGATE_BASE_URL": "https://exchange.example",
        "SEALGATE_KEYS__MAIN__API_KEY": "ak-public-1",
        "SEALGATE_KEYS__MAIN__SECRET": "env:NOWHERE",
        "SEALGATE_BOTS__GRID__TOKEN": "env:NOWHERE",
        "SEALGATE_LISTEN__TCP": address,
        "SEALGATE_LISTEN__UNIX": str(tmp_path / "bots.sock"),
        "SEALGATE_LISTEN__HOSTS": hosts,
    }
    if has_tls:
        environ |= {"SEALGATE_LISTEN__TLS_CERT": str(pem), "SEALGATE_LISTEN__TLS_KEY": str(pem)}
    assert list(look_at_reach(load_config(None, environ=environ))) == told
