"""A proxy on this machine: HTTP CONNECT or SOCKS5, with all that may go wrong before a tunnel stands."""

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

from rig.wire import let_pass, until

USER, PASSWORD = "grid", "correct-horse"
OPEN = b"HTTP/1.1 200 Connection established\r\nProxy-Agent: rig\r\n\r\n"
SOCKS_OPEN = b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"


@dataclass(repr=False)
class Proxy:
    """A running proxy. `names` are the ports of this machine to which names lead.

    `asked` are the tunnels that were asked for, `heads` what came with CONNECT. In place of an answer it
    says `says` and closes, drips with `drips`, and without `answers` it hangs. `cuts` closes each tunnel as
    soon as it stands.
    """

    scheme: str
    names: Mapping[str, int]
    port: int = 0
    needs_login: bool = False
    says: bytes | None = None
    drips: bool = False
    answers: bool = True
    cuts: bool = False
    asked: list[tuple[str, int]] = field(default_factory=list)
    heads: list[bytes] = field(default_factory=list)
    through: int = 0
    """Bytes that went to the exchange."""
    _open: set[asyncio.StreamWriter] = field(default_factory=set)

    @property
    def url(self) -> str:
        """What `upstream.proxy` says."""
        user = f"{USER}@" if self.needs_login else ""
        return f"{self.scheme}://{user}127.0.0.1:{self.port}"

    async def until_asked(self, count: int) -> None:
        """Wait until so many tunnels were asked for."""
        await until(lambda: len(self.asked) >= count)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        self._open.add(writer)
        try:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                await (self._http if self.scheme == "http" else self._socks)(reader, writer)
        finally:
            writer.close()
            self._open.discard(writer)

    def cut_all(self) -> None:
        """Break every connection."""
        for writer in list(self._open):
            writer.transport.abort()

    async def _http(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        method, authority, _ = head.split(b"\r\n")[0].decode().split(" ")
        assert method == "CONNECT"
        host, _, port = authority.rpartition(":")
        login = base64.b64encode(f"{USER}:{PASSWORD}".encode())
        if self.needs_login and b"Proxy-Authorization: Basic " + login not in head:
            await self._say(writer, b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
        else:
            await self._answer(reader, writer, (host.strip("[]"), int(port)), OPEN)

    async def _socks(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, count = await reader.readexactly(2)
        methods = await reader.readexactly(count)
        method = 2 if self.needs_login else 0
        if method not in methods:
            await self._say(writer, b"\x05\xff")
            return
        await self._say(writer, bytes([5, method]))
        if self.needs_login:
            login = b"\x01" + b"".join(bytes([len(one)]) + one.encode() for one in (USER, PASSWORD))
            user = await reader.readexactly((await reader.readexactly(2))[1])
            password = await reader.readexactly((await reader.readexactly(1))[0])
            is_right = b"\x01" + bytes([len(user)]) + user + bytes([len(password)]) + password == login
            await self._say(writer, b"\x01\x00" if is_right else b"\x01\x01")
            if not is_right:
                return
        *_, kind = await reader.readexactly(4)
        if kind == 3:
            host = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
        else:
            host = ".".join(map(str, await reader.readexactly(4)))
        port = int.from_bytes(await reader.readexactly(2))
        await self._answer(reader, writer, (host, port), SOCKS_OPEN)

    async def _answer(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        there: tuple[str, int],
        opened: bytes,
    ) -> None:
        self.asked.append(there)
        if not self.answers:
            await reader.read()
        elif self.says is not None:
            await self._say(writer, self.says)
        else:
            port = self.names.get(there[0], there[1])
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
            self._open.add(far_writer)
            await self._say(writer, opened)
            if not self.cuts:
                await asyncio.gather(
                    self._relay(reader, far_writer, is_out=True),
                    self._relay(far_reader, writer, is_out=False),
                )
            far_writer.close()
            self._open.discard(far_writer)

    async def _say(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        pieces = [data[at : at + 1] for at in range(len(data))] if self.drips else [data]
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await let_pass(0)

    async def _relay(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_out: bool
    ) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                self.through += len(data) if is_out else 0
                writer.write(data)
                await writer.drain()
        writer.close()


@contextlib.asynccontextmanager
async def running_proxy(scheme: str, names: Mapping[str, int] | None = None) -> AsyncIterator[Proxy]:
    """Run a proxy as long as the block lasts."""
    proxy = Proxy(scheme, names or {})
    listener = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = listener.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        listener.close()
        proxy.cut_all()
        await until(lambda: not proxy._open)
