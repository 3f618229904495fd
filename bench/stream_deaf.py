"""Bots that open streams and do not read them: stream_deaf.py PORT TARGET STREAMS. Prints "open".

With --pour they send as much as is taken, messages of 300 bytes. A line on the standard input ends that; with
the line "read" they first read for some seconds what came all the time, which must be the messages of
stream_frames.py in their order. Prints the bytes that were read or sent.
"""

import argparse
import selectors
import socket
import sys
import time

from bench.process import allow_many_connections
from bench.stream_frames import FrameCount
from bench.stream_load import AUTHORISED
from rig.websocket import TEXT, frame, upgrade

_READ_S = 4.0
_HASTE = frame(TEXT, b'{"op":"ping","args":["%b"]}' % (b"x" * 280), mask=b"\x21\x84\x0f\xd3")


def opened(port: int, target: str) -> socket.socket:
    """Open a stream, and read its head alone. Raises SystemExit."""
    stream = socket.create_connection(("127.0.0.1", port))
    stream.sendall(upgrade(target, AUTHORISED))
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = stream.recv(1)
        if not byte:
            raise SystemExit(head.decode("latin-1"))
        head += byte
    if not head.startswith(b"HTTP/1.1 101 "):
        raise SystemExit(head.decode("latin-1"))
    stream.setblocking(False)
    return stream


def wait(streams: list[socket.socket], *, pours: bool) -> int:
    """Wait for the standard input; return how many bytes were sent meanwhile, if it `pours`."""
    rests, total = dict.fromkeys(streams, b""), 0
    with selectors.DefaultSelector() as selector:
        selector.register(sys.stdin, selectors.EVENT_READ)
        for one in streams if pours else ():
            selector.register(one, selectors.EVENT_WRITE)
        while True:
            for key, _ in selector.select():
                stream = key.fileobj
                if not isinstance(stream, socket.socket):
                    return total
                data = rests[stream] or _HASTE * 50
                try:
                    sent = stream.send(data)
                except ConnectionError:  # it was cut
                    selector.unregister(stream)
                    continue
                rests[stream] = data[sent:]
                total += sent


def read(streams: list[socket.socket]) -> int:
    """Read for some seconds; return how many bytes came. Raises SystemExit for none, or others."""
    counts, until = {stream: FrameCount() for stream in streams}, time.monotonic() + _READ_S
    with selectors.DefaultSelector() as selector:
        for stream in streams:
            selector.register(stream, selectors.EVENT_READ)
        while time.monotonic() < until:
            for key, _ in selector.select(0.1):
                assert isinstance(key.fileobj, socket.socket)
                counts[key.fileobj].add(key.fileobj.recv(1 << 16))
    if not all(count.bytes for count in counts.values()):
        raise SystemExit("nothing came on a stream")
    return sum(count.bytes for count in counts.values())


def main() -> None:
    parser = argparse.ArgumentParser(description="Open streams, and do not read them.")
    parser.add_argument("port", type=int)
    parser.add_argument("target")
    parser.add_argument("streams", type=int)
    parser.add_argument("--pour", action="store_true")
    options = parser.parse_args()
    allow_many_connections()
    streams = [opened(options.port, options.target) for _ in range(options.streams)]
    print("open", flush=True)
    sent = wait(streams, pours=options.pour)
    print(read(streams) if sys.stdin.readline() == "read\n" else sent, flush=True)


if __name__ == "__main__":
    main()
