"""A port for a program that cannot choose one by itself, as it has to be named beforehand."""

import itertools
import os
import socket

# Below those that the system gives to connections and to port 0, so that nobody takes it by chance before it
# is bound; each process of tests begins elsewhere.
_FIRST, _COUNT = 10_000, 20_000
_TURNS = itertools.count(os.getpid() * 61)


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody has, another one each time."""
    while True:
        port = _FIRST + next(_TURNS) % _COUNT
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
