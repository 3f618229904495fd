import socket
import struct
import sys
from typing import Any, ClassVar, cast

import pytest

from sealgate.machine.process import caller_of, process_of
from sealgate.request.admission import Peer
from sealgate.request.bots import _common_name, client_of, peer_of
from sealgate.request.strangers import origin_of


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
    assert origin_of(client_of(transport, peer)) == origin


def test_a_connection_that_is_no_more() -> None:
    assert origin_of(client_of(None, Peer())) == ""


class MacSocket:
    """A Unix socket of macOS, with user 501 of group 20 and process 4711 at the other end."""

    family = socket.AF_UNIX
    options: ClassVar = {1: struct.pack("IIh2x16I", 0, 501, 1, 20, *[0] * 15), 2: struct.pack("i", 4711)}

    def getsockopt(self, level: int, option: int, size: int) -> bytes:
        assert level == 0
        assert len(self.options[option]) == size
        return self.options[option]

    def get_extra_info(self, name: str) -> object:
        return self if name == "socket" else None


@pytest.mark.parametrize(
    ("platform", "uid", "pid"), [("darwin", 501, 4711), ("another", None, None)], ids=["macOS", "another"]
)
def test_who_it_is_where_the_system_is_not_linux(
    platform: str, uid: int | None, pid: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(socket, "SO_PEERCRED")
    monkeypatch.setattr(sys, "platform", platform)
    sock = cast("Any", MacSocket())
    assert (peer_of(sock).uid, caller_of(sock), process_of(sock)) == (uid, (uid, pid), pid)


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
