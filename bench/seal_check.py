"""Before anything is measured: each way passes on the same request, signed as the exchange wants it."""

import hashlib
import hmac
import time

from bench.orders import BODY, PATH, PREFIX
from bench.process import Way, answer_at
from bench.rivals import API_KEY, SECRET

_CLOCK_MS = 5000  # the default recv_window of spec.md
_LAST = b"GET /last HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def check_seal(name: str, way: Way, direct: Way) -> None:
    """Send an order that way and look at what the upstream got. Raises SystemExit where that is wrong."""
    answer = answer_at(way.port)
    received = answer_at(direct.port, _LAST).partition(b"\r\n\r\n")[2]
    problem = "is refused" if not answer.startswith(b"HTTP/1.1 200 ") else _problem(received)
    if problem:
        raise SystemExit(f"{name}: the order {problem}\n{answer.decode()}\n\n{received.decode()}")


def _problem(received: bytes) -> str | None:
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    pairs = [line.partition(":") for line in lines]
    fields = {name.strip().lower(): value.strip() for name, _, value in pairs}
    checks = (
        ("has another target", first.startswith(f"POST {PATH} ")),
        ("has another body", body == BODY),
        ("shows the bot's token", "authorization" not in fields),
        ("names another key", fields.get("x-service-apikey") == API_KEY),
        ("has an old timestamp", _is_recent(fields.get("x-service-timestamp", "0"))),
        ("is signed wrongly", fields.get("x-service-signature") == _signature(fields, body)),
        ("has a header twice", len(fields) == len(pairs)),
    )
    return next((problem for problem, is_right in checks if not is_right), None)


def _is_recent(timestamp: str) -> bool:
    return abs(int(timestamp) - time.time_ns() // 1_000_000) < _CLOCK_MS


def _signature(fields: dict[str, str], body: bytes) -> str:
    path = PATH.removeprefix(PREFIX)
    message = f"{fields.get('x-service-timestamp')}POST{path}".encode() + body
    return hmac.new(SECRET.encode(), message, hashlib.sha256).hexdigest()
