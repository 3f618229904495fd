"""What the benchmark's clients send: one order, or orders of as many bots, keys or routes."""

from typing import Literal

Varied = Literal["bots", "keys", "routes"]
VARIED: tuple[Varied, ...] = ("bots", "keys", "routes")

PREFIX = "/v1/trade"
PATH = f"{PREFIX}/order"
BODY = b'{"symbol":"BTC","side":"buy","size":"0.001","price":"65000.0"}'.ljust(100)
_ORDER = (
    b"POST %b HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\nAccept: */*\r\n"
    b"Authorization: Bearer %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
)


def token(number: int) -> str:
    """Return the token of a bot; the first is number 0."""
    return f"bench-token-{number}"


def path(number: int) -> str:
    """Return the path of a route of the configuration; the first is number 0."""
    return f"{PREFIX}/bench/{number}/order"


def order(bot: int = 0, target: str = PATH) -> bytes:
    """Write the whole request."""
    return _ORDER % (target.encode(), token(bot).encode(), len(BODY), BODY)


def orders(varied: Varied, count: int) -> list[bytes]:
    """Write an order of each bot (each key has a bot of its own), or one to each route."""
    if varied == "routes":
        return [order(target=path(number)) for number in range(count)]
    return [order(bot=number) for number in range(count)]
