"""The way to a server that is far: distance.py PORT ROUND_TRIP_MS. Prints its own port.

A relay that passes on each piece half a round trip later. Opening a connection costs no round trip here, as
the kernel answers for the relay: in the world it costs one more.
"""

import asyncio
import sys

import uvloop


class End(asyncio.Protocol):
    """One end of a connection; `other` is where its bytes come out."""

    def __init__(self, delay_s: float) -> None:
        self._delay_s = delay_s
        self._loop = asyncio.get_running_loop()
        self.other: End | None = None
        self.transport: asyncio.Transport | None = None
        self._early: list[bytes] = []  # came before there was another end

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport

    def join(self, other: "End") -> None:
        self.other, other.other = other, self
        for data in self._early:
            self.data_received(data)

    def data_received(self, data: bytes) -> None:
        if self.other is None:
            self._early.append(data)
        elif self.other.transport is not None:
            self._loop.call_later(self._delay_s, self.other.put, data)

    def put(self, data: bytes) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if self.other is not None and self.other.transport is not None:
            self._loop.call_later(self._delay_s, self.other.transport.close)


class Near(End):
    """The end where a client connects: it opens the far one."""

    def __init__(self, delay_s: float, port: int) -> None:
        super().__init__(delay_s)
        self._port = port

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._opening = self._loop.create_task(self._open())

    async def _open(self) -> None:
        _, far = await self._loop.create_connection(lambda: End(self._delay_s), "127.0.0.1", self._port)
        self.join(far)


async def main(port: int, round_trip_ms: float) -> None:
    delay_s = round_trip_ms / 2000
    server = await asyncio.get_running_loop().create_server(lambda: Near(delay_s, port), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as running:
        running.run(main(int(sys.argv[1]), float(sys.argv[2])))
