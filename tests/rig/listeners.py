"""Bots that come in by other doors than plain TCP: the Unix socket, also as another user, and TLS."""

import asyncio
import contextlib
import os
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from rig.bot import Bot
from rig.wire import PATIENCE_S

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@contextlib.contextmanager
def open_folder() -> Iterator[Path]:
    """Make a folder that every user can pass through, as pytest's own cannot be."""
    with tempfile.TemporaryDirectory(prefix="sealgate-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def unix_connection(path: Path, user: int | None = None, group: int | None = None) -> socket.socket:
    """Connect, as another user where one is given."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with as_user(user, group):
            sock.connect(str(path))
    except OSError:
        sock.close()
        raise
    return sock


@contextlib.contextmanager
def as_user(user: int | None, group: int | None = None) -> Iterator[None]:
    """Be another user, of one group alone, for as long as the block lasts."""
    if user is None:
        yield
        return
    groups, own = os.getgroups(), os.getegid()
    os.setgroups([])
    os.setegid(user if group is None else group)
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(own)
        os.setgroups(groups)


@contextlib.asynccontextmanager
async def bot_on(sock: socket.socket | None = None, **where: Any) -> AsyncIterator[Bot]:
    """Be a bot on a connection of any kind; `where` is what asyncio.open_connection takes."""
    async with asyncio.timeout(PATIENCE_S):
        if sock is not None and sock.family == socket.AF_UNIX:
            reader, writer = await asyncio.open_unix_connection(sock=sock, limit=1 << 20)
        else:
            reader, writer = await asyncio.open_connection(sock=sock, limit=1 << 20, **where)
    try:
        yield Bot(reader, writer)
    finally:
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


class Certificates:
    """An authority of the tests' own, and what it signed, as files for the settings."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.authority = trustme.CA()
        self.ca_file = folder / "ca.pem"
        self.authority.cert_pem.write_to_path(self.ca_file)
        self.cert_file, self.key_file = self.write("server", self.authority.issue_cert("127.0.0.1"))

    @property
    def settings(self) -> dict[str, str]:
        """The settings of a listener with TLS."""
        return {"tls_cert": str(self.cert_file), "tls_key": str(self.key_file)}

    def write(self, name: str, pair: trustme.LeafCert) -> tuple[Path, Path]:
        """Write a certificate and its key."""
        cert_file, key_file = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        pair.cert_chain_pems[0].write_to_path(cert_file)
        key_file.touch(mode=0o600)
        pair.private_key_pem.write_to_path(key_file)
        return cert_file, key_file

    def client(self, common_name: str | None = None) -> ssl.SSLContext:
        """Return the context of a client, with a certificate of that name if one is given."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.authority.configure_trust(context)
        if common_name is not None:
            pair = self.authority.issue_cert("bot@example.com", common_name=common_name)
            pair.configure_cert(context)
        return context
