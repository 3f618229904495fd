"""Which doors the settings open, and that none stays open where one cannot be."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from gateway.clock.test_kept import HandHost
from rig.listeners import Certificates, unix_connection
from sealgate.config import Listen
from sealgate.gateway.doors.opening import Doors, open_doors
from sealgate.gateway.host.start import StartError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bots.sock"


async def opened(**settings: str) -> Doors:
    server: Any = asyncio.Protocol
    return await open_doors(server, Listen.model_validate(settings), HandHost())


async def test_the_address_is_the_one_that_it_really_is() -> None:
    doors = await opened(tcp="127.0.0.1:0")
    assert doors.tcp is not None
    assert doors.tcp.port > 0
    assert (doors.urls, doors.unix, doors.tls) == ((f"http://127.0.0.1:{doors.tcp.port}",), None, None)
    doors.close()


async def test_the_socket_alone(path: Path) -> None:
    doors = await opened(tcp="", unix=str(path))
    assert (doors.urls, doors.tcp) == ((f"unix:{path}",), None)
    unix_connection(path).close()
    doors.close()
    with pytest.raises(FileNotFoundError):
        unix_connection(path)


async def test_both_and_tls(path: Path, tmp_path: Path) -> None:
    doors = await opened(tcp="127.0.0.1:0", unix=str(path), **Certificates(tmp_path).settings)
    assert doors.urls == (f"https://{doors.tcp}", f"unix:{path}")
    doors.close()


async def test_none_at_all() -> None:
    doors = await opened(tcp="")
    assert doors.urls == ()
    doors.close()


async def test_a_certificate_that_cannot_be_loaded_leaves_no_door_open(path: Path, tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    certificates.cert_file.write_text("no certificate")
    with pytest.raises(StartError, match="are not a certificate and a key in PEM form"):
        await opened(tcp="127.0.0.1:0", unix=str(path), **certificates.settings)
    with pytest.raises(FileNotFoundError):
        unix_connection(path)
