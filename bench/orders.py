"""What the benchmark's clients send: the same order, new ones, or those of many bots, keys and so on."""

from collections.abc import Iterator
from itertools import count
from typing import Literal
from uuid import uuid4

Varied = Literal["bots", "keys", "routes", "exchanges"]
VARIED: tuple[Varied, ...] = ("bots", "keys", "routes")
KEYS = 10  # at each of several exchanges

PREFIX = "/v1/trade"
PATH = f"{PREFIX}/order"
BODY = b'{"symbol":"BTC","side":"buy","size":"0.001","price":"65000.0"}'.ljust(100)
_ORDER = (
    b"POST %b HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\nAccept: */*\r\n"
    b"Authorization: Bearer %b\r\n%bContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
)
_OWN_FIELDS = b"X-Request-Id: %b-%08x\r\nIdempotency-Key: %b%08x\r\n"


def token(number: int) -> str:
    """Return the token of a bot; the first is number 0."""
    return f"bench-token-{number}"


def path(number: int) -> str:
    """Return the path of a route of the configuration; the first is number 0."""
    return f"{PREFIX}/bench/{number}/order"


def order(bot: int = 0, target: str = PATH, fields: bytes = b"") -> bytes:
    """Write the whole request, with more fields where they are given."""
    return _ORDER % (target.encode(), token(bot).encode(), fields, len(BODY), BODY)


def unique_orders() -> Iterator[bytes]:
    """Write orders without end, no two of which have the same head, in this process or another."""
    own = uuid4().hex.encode()
    return (order(fields=_OWN_FIELDS % (own, number, own, number)) for number in count())


def orders(varied: Varied, many: int) -> list[bytes]:
    """Write an order of each bot (each key has a bot of its own), to each route, or for each exchange's keys.

    0 exchanges: without a name before the path, for as many keys.
    """
    if varied == "exchanges":
        return [
            order(
                target=f"/exchange{number}{PATH}" if many else PATH,
                fields=b"X-Gateway-Key: key%d-%d\r\n" % (number, key),
            )
            for number in range(max(1, many))
            for key in range(KEYS)
        ]
    if varied == "routes":
        return [order(target=path(number)) for number in range(many)]
    return [order(bot=number) for number in range(many)]
