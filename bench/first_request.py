"""A short-lived script's first request: first_request.py URL [CA_FILE]. Prints how long it took, in ms.

What the interpreter and its modules take to load does not count: from the first byte of the way to the server
to the last one of the answer.
"""

import http.client
import socket
import ssl
import sys
import time
from urllib.parse import urlsplit

from bench.orders import BODY, PATH, token


def connection(url: str, ca_file: str | None) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    host, port = str(parts.hostname), parts.port
    if ca_file is None:
        return http.client.HTTPConnection(host, port, timeout=10)
    context = ssl.create_default_context(cafile=ca_file)
    return http.client.HTTPSConnection(host, port, timeout=10, context=context)


def main() -> None:
    way = connection(*sys.argv[1:3]) if len(sys.argv) > 2 else connection(sys.argv[1], None)
    headers = {"Authorization": f"Bearer {token(0)}", "Content-Type": "application/json"}
    socket.getaddrinfo(way.host, way.port)  # loads what it needs; the address is a number
    since = time.perf_counter()
    way.request("POST", PATH, BODY, headers)
    reply = way.getresponse()
    reply.read()
    print((time.perf_counter() - since) * 1000)
    assert reply.status == 200, reply.status


if __name__ == "__main__":
    main()
