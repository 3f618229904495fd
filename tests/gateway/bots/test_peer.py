from typing import Any, cast

import pytest

from sealgate.core.admission import Peer
from sealgate.gateway.bots.peer import _common_name, origin_of


class Transport:
    """A transport that knows its peer's address only."""

    def __init__(self, peername: object) -> None:
        self._peername = peername

    def get_extra_info(self, name: str) -> object:
        return self._peername if name == "peername" else None


ORIGINS = {
    "a user": (Peer(uid=1001), "", "user 1001"),
    "IPv4": (Peer(), ("192.0.2.7", 1), "192.0.2.7"),
    "IPv6, by the customer's network": (Peer(), ("2001:db8:1:2:3::4", 1, 0, 0), "2001:db8:1:2::/64"),
    "IPv6 with a zone": (Peer(), ("fe80::1%eth0", 1, 0, 2), "fe80::/64"),
    "IPv6 loopback": (Peer(), ("::1", 1, 0, 0), "::1"),
    "gone": (Peer(), None, ""),
}


@pytest.mark.parametrize(("peer", "peername", "origin"), ORIGINS.values(), ids=ORIGINS)
def test_where_a_connection_comes_from(peer: Peer, peername: object, origin: str) -> None:
    transport = cast("Any", Transport(peername))
    assert origin_of(transport, peer) == origin


def test_a_connection_that_is_no_more() -> None:
    assert origin_of(None, Peer()) == ""


class Tls:
    """A TLS connection with a certificate of that subject."""

    def __init__(self, *subject: tuple[str, str]) -> None:
        self._subject = subject

    def getpeercert(self) -> dict[str, Any]:
        return {"subject": tuple((part,) for part in self._subject)}


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        ([("organizationName", "x"), ("commonName", "grid")], "grid"),
        ([("organizationName", "grid")], ""),
        ([("commonName", "grid"), ("commonName", "watch")], ""),
        ([], ""),
    ],
)
def test_the_one_common_name_counts(subject: list[tuple[str, str]], name: str) -> None:
    assert _common_name(cast("Any", Tls(*subject))) == name
