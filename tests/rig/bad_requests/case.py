"""One bad request: its exact bytes, and what the gateway answers."""

from typing import NamedTuple

ORDER = b"/v1/trade/order"


class Bad(NamedTuple):
    """A request that must not reach the upstream."""

    raw: bytes
    status: int
    reason: str

    @property
    def method(self) -> bytes:
        """The first word, by which the reply is read."""
        return self.raw.lstrip().split(b" ", 1)[0]


def get(target: bytes, *fields: bytes) -> bytes:
    """Write a GET for a target."""
    return lines(b"GET " + target + b" HTTP/1.1", b"Host: localhost", *fields)


def post(*fields: bytes, body: bytes = b"") -> bytes:
    """Write an order whose framing is all in `fields`."""
    return lines(b"POST " + ORDER + b" HTTP/1.1", b"Host: localhost", *fields) + body


def in_chunks(raw: bytes, *fields: bytes) -> bytes:
    """Write an order whose chunked body is these bytes."""
    return post(b"Transfer-Encoding: chunked", *fields, body=raw)


def lines(*whole: bytes) -> bytes:
    """Write a head of whole lines."""
    return b"\r\n".join(whole) + b"\r\n\r\n"
