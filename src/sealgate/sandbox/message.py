"""One request and one reply, as values between the sockets and the exchange."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from multidict import CIMultiDictProxy

from sealgate.sandbox.clock import Moment
from sealgate.sandbox.stream import Stream

Input = TypeVar("Input")


@dataclass(frozen=True, slots=True)
class Request:
    """What was received, byte for byte: the target raw from the request line, the body still encoded.

    `stream` is the one that it came over, None for HTTP.
    """

    method: str
    target: str
    headers: CIMultiDictProxy[str]
    body: bytes
    client_ip: str
    stream: Stream | None = None

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]

    def header(self, name: str) -> str | None:
        """Give a header's value; None if it is absent, empty, or there twice and so ambiguous."""
        values = self.headers.getall(name, ())
        return values[0] or None if len(values) == 1 else None


@dataclass(frozen=True, slots=True)
class Reply:
    """What goes back. `verdict` is `ok` or the slug of a row of the catalogue."""

    status: int
    body: bytes
    verdict: str
    headers: Mapping[str, str] = field(default_factory=dict)
    order_id: int | None = None


@dataclass(frozen=True, slots=True)
class Call(Generic[Input]):
    """An authenticated and validated request, as handlers get it. `address` is empty on public routes.

    `stream` is the one that it came over, None for HTTP.
    """

    now: Moment
    address: str
    client_ip: str
    params: Mapping[str, str]
    input: Input
    stream: Stream | None = None
