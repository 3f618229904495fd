"""Which doors the settings open, and that none stays open where one cannot be."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gateway.clock.test_kept import HandHost
from rig.listeners import Certificates, unix_connection
from sealgate.config import Listen
from sealgate.gateway.listeners.opening import Listeners, open_listeners
from sealgate.gateway.platform.machine import StartError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bots.sock"


async def opened(**settings: str) -> Listeners:
    server: Any = asyncio.Protocol
    return await open_listeners(server, Listen.model_validate(settings), HandHost())


async def test_the_address_is_the_one_that_it_really_is() -> None:
    listeners = await opened(tcp="127.0.0.1:0")
    assert listeners.tcp is not None
    assert listeners.tcp.port > 0
    assert (listeners.urls, listeners.unix, listeners.tls) == (
        (f"http://127.0.0.1:{listeners.tcp.port}",),
        None,
        None,
    )
    listeners.close()


async def test_the_socket_alone(path: Path) -> None:
    listeners = await opened(tcp="", unix=str(path))
    assert (listeners.urls, listeners.tcp) == ((f"unix:{path}",), None)
    unix_connection(path).close()
    listeners.close()
    with pytest.raises(FileNotFoundError):
        unix_connection(path)


async def test_both_and_tls(path: Path, tmp_path: Path) -> None:
    listeners = await opened(tcp="127.0.0.1:0", unix=str(path), **Certificates(tmp_path).settings)
    assert listeners.urls == (f"https://{listeners.tcp}", f"unix:{path}")
    listeners.close()


async def test_none_at_all() -> None:
    listeners = await opened(tcp="")
    assert listeners.urls == ()
    listeners.close()


async def test_a_certificate_that_cannot_be_loaded_leaves_no_door_open(path: Path, tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    certificates.cert_file.write_text("no certificate")
    with pytest.raises(StartError, match="are not a certificate and a key in PEM form"):
        await opened(tcp="127.0.0.1:0", unix=str(path), **certificates.settings)
    with pytest.raises(FileNotFoundError):
        unix_connection(path)
