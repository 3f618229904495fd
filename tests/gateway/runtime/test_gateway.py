"""What a gateway is asked from outside, and where it does not even start."""

from types import SimpleNamespace
from typing import Any

import pytest

from sealgate.config import Address
from sealgate.gateway.runtime.gateway import Gateway


def gateway_at(tcp: Address | None) -> Gateway:
    doors: Any = SimpleNamespace(tcp=tcp)
    rest: Any = None
    return Gateway(doors, 0.0, rest, rest, rest, rest, rest)


def test_where_it_listens() -> None:
    assert gateway_at(Address("127.0.0.1", 5)).address == Address("127.0.0.1", 5)
    with pytest.raises(LookupError, match=r"listen\.tcp is turned off"):
        _ = gateway_at(None).address
