import socket
import ssl
import struct
import sys
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest

from sealgate.machine.process import caller_of, process_of
from sealgate.request.admission import Peer
from sealgate.request.bots import client_of, peer_of


class Transport:
    """A transport that knows its peer's address only."""

    def __init__(self, peername: object) -> None:
        self._peername = peername

    def get_extra_info(self, name: str) -> object:
        return self._peername if name == "peername" else None


CLIENTS = {
    "a user": (Peer(uid=1001), "", "user 1001"),
    "IPv4": (Peer(), ("192.0.2.7", 1), "192.0.2.7"),
    "IPv6 with a zone": (Peer(), ("fe80::1%eth0", 1, 0, 2), "fe80::1"),
    "gone": (Peer(), None, ""),
}


@pytest.mark.parametrize(("peer", "peername", "client"), CLIENTS.values(), ids=CLIENTS)
def test_where_a_connection_comes_from(peer: Peer, peername: object, client: str) -> None:
    assert client_of(cast("Any", Transport(peername)), peer) == client


def test_a_connection_that_is_no_more() -> None:
    assert client_of(None, Peer()) == ""


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
    """A TLS connection with a verified certificate of that subject."""

    context = SimpleNamespace(verify_mode=ssl.CERT_REQUIRED)

    def __init__(self, *subject: tuple[str, str]) -> None:
        self._subject = subject

    def get_extra_info(self, name: str) -> object:
        return self if name == "ssl_object" else None

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
    assert peer_of(cast("Any", Tls(*subject))) == Peer(name=name)
