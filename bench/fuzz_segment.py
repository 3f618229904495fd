"""Fuzz the first segment of targets: two exchanges in a gateway, whose upstreams keep every byte that comes.

    scripts/bench fuzz_segment --minutes 5

Each request has an id of its own. `expected` reads it in its own way: the exchange's name must stand between
the first two slashes byte for byte, and what arrives is the rest. At the address that an exchange has for
itself, all of it is the rest. Heads come again, at the other address and under the token of another bot, too.
The first violation ends the run; the same seed makes the same bytes.
"""

import argparse
import asyncio
import re
import sys
import time
from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Any

from bench.fuzz_target import FoundError
from rig.bot import Reply, bot_at
from rig.readings import check_one_reading
from rig.two_exchanges import GRID, SPOT_ONLY, Two, two_exchanges
from rig.upstream import Received
from rig.wire import CutError
from sealgate.http.target import Target

PREFIX = "/v1/trade"
_SPOT, _PERP = "spot", "perp"
_NAMES = {GRID: (_SPOT, _PERP), SPOT_ONLY: (_SPOT,), b"X-Any: 1": ()}
_ID = re.compile(rb"^[0-9]+$")
_PLAIN = re.compile(r"/v1/trade(/(order|orders|x|7))+(\?(a|b)=[a-z0-9/]*)?$")
_METHODS = (b"GET", b"POST", b"DELETE", b"PUT")
_BOTH = ("/spot", "/perp")
_FIRST = (
    *(
        "/spot",
        "/perp",
        "/spot",
        "/perp",
        "/spot",
        "/perp",
        "/Spot",
        "/PERP",
        "/swap",
        "/",
        "",
        "spot",
        "//spot",
    ),
    *("/./spot", "/../spot", "/spot/../perp", "/spot/./", "/spot//perp", "/perp/spot", "/sp%6ft", "/%73pot"),
    *("/spot%2f", "/spot%2F..%2fperp", "/spot;x", "/spot;/perp", "/spot%00", "/spot%20", "/spot.", "/spot\\"),
    *(
        "\\spot",
        "/spot?",
        "/spot#",
        "/spot?/perp",
        "/spot#/perp",
        "/spot&",
        "/spot,perp",
        "/@spot",
        "/spot:1",
    ),
    *(
        "http://127.0.0.1/spot",
        "http://perp/spot",
        "//127.0.0.1/spot",
        "*",
        "/spot\xa0",
        "/\xff",
        "/spo\u017f",
    ),
    *(
        "/v1/trade",
        "/v1",
        "/spot/v1/trade/../../../perp",
        "/spot/v1/trade/%2e%2e/%2e%2e/perp",
        "/-/ready",
        "/sp",
    ),
)
_REST = (
    *("/v1/trade/order", "/v1/trade/order", "/v1/trade/order", "/v1/trade/orders/7", "/v1/trade/x/7?a=/perp"),
    *(
        "/v1/trade/order?b=%2e%2e/perp",
        "/v1/trade",
        "/v1/trade/",
        "/v1/tradex/order",
        "/v1/order",
        "/",
        "",
        "?",
        "#",
    ),
    *(
        "/v1/trade/../../perp/v1/trade/order",
        "/v1/trade/%2e%2e/x",
        "/v1/trade//x",
        "/v1/trade/x/",
        "/v1/trade/..;/x",
    ),
    *(
        "/perp/v1/trade/order",
        "/spot/v1/trade/order",
        "/v1/trade/perp/order",
        "//v1/trade/order",
        "/./v1/trade/x",
    ),
    *(
        "/v1/trade/x\\..\\y",
        "/v1/trade/x%5c..%5cperp",
        "/v1/trade/%252e%252e/x",
        "/v1/trade/x#/perp",
        "/V1/trade/x",
    ),
    *("/v1%2ftrade/order", "/v1/trade%2forder", "/%761/trade/order", "/v1/trade/x?a=1?b=2", "/v1/trade/\xe9"),
)
_PIECES = (
    "/",
    "//",
    ".",
    "..",
    "%2e",
    "%2f",
    "%2F",
    "%5c",
    "\\",
    ";",
    "?",
    "#",
    "%",
    "%00",
    "%25",
    "spot",
    "perp",
    "v1",
)


@dataclass(frozen=True)
class Sent:
    """A request: its raw target, the line that proves its bot, and whether it goes to `perp`'s address."""

    method: bytes
    target: bytes
    token: bytes
    is_at_perp: bool

    def raw(self, number: int) -> bytes:
        """Write it."""
        body = b"{}" if self.method in (b"POST", b"PUT") else b""
        length = b"Content-Length: 2\r\n" if body else b""
        head = b"%b %b HTTP/1.1\r\nHost: 127.0.0.1\r\n%b\r\nX-Request-Id: %d\r\n%b\r\n"
        return head % (self.method, self.target, self.token, number, length) + body


def expected(sent: Sent) -> tuple[str, bytes] | None:
    """Return the only exchange where it may arrive, and the only target; None where it must not arrive."""
    names, target = _NAMES[sent.token], sent.target
    if sent.is_at_perp:
        return (_PERP, target) if _PERP in names else None
    for name in names:
        start = b"/" + name.encode() + b"/"
        if target.startswith(start):
            return name, target[len(start) - 1 :]
    return None


class Writer:
    """Makes up requests, and repeats those of before in other places."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._before: list[Sent] = []

    def next(self) -> Sent:
        """Return a request."""
        chance = self._chance
        token = chance.choice((GRID, GRID, GRID, SPOT_ONLY, SPOT_ONLY, b"X-Any: 1"))
        is_at_perp = chance.random() < 0.3
        if self._before and chance.random() < 0.3:
            before = chance.choice(self._before)
            return Sent(before.method, before.target, token, is_at_perp)
        first = (
            ""
            if is_at_perp and chance.random() < 0.6
            else chance.choice(_BOTH if chance.random() < 0.5 else _FIRST)
        )
        target = first + chance.choice(_REST)
        for _ in range(chance.choice((0, 0, 0, 1, 2))):
            at = chance.randrange(len(target) + 1)
            target = target[:at] + chance.choice(_PIECES) + target[at + chance.choice((0, 0, 1)) :]
        sent = Sent(chance.choice(_METHODS), target.encode(), token, is_at_perp)
        self._before = [*self._before[-500:], sent]
        return sent


class Fuzz:
    """A run from one seed. `figures` counts what became of the requests."""

    def __init__(self, seed: int) -> None:
        self._writer = Writer(Random(seed))
        self.figures: Counter[str] = Counter()

    async def run(self, goes_on: Any) -> None:
        """Send requests, one after another, as long as `goes_on` says so. Raises FoundError."""

        def exchanges(spot: str, perp: str) -> dict[str, Any]:
            return {_SPOT: {"base_url": spot}, _PERP: {"base_url": perp, "listen": "127.0.0.1:0"}}

        async with two_exchanges(exchanges=exchanges) as two:
            own = int(two.gateway.listeners.exchange_urls[_PERP].rpartition(":")[2])
            number = 0
            while goes_on(number):
                # A batch over one connection to each address: what refuses a target may close it.
                for is_at_perp in (False, True):
                    port = own if is_at_perp else two.gateway.address.port
                    async with bot_at("127.0.0.1", port) as bot:
                        for _ in range(50):
                            sent = self._writer.next()
                            if sent.is_at_perp != is_at_perp:
                                continue
                            number += 1
                            try:
                                reply = await bot.ask(sent.raw(number))
                            except (CutError, ConnectionError):
                                raise FoundError(f"no reply to {sent}") from None
                            self._check(two, number, sent, reply)
                            if reply.closes:
                                break
                two.outcomes.all.clear()

    def _check(self, two: Two, number: int, sent: Sent, reply: Reply) -> None:
        """Hold what arrived of the latest request against what was to arrive."""
        where = {_SPOT: two.spot, _PERP: two.perp}
        arrived = [(name, one) for name, upstream in where.items() for one in upstream.received]
        for upstream in where.values():
            upstream.received.clear()
        self.figures[reply.reason or f"arrived at {arrived[0][0] if arrived else 'none'}"] += 1
        may = expected(sent)
        came = [(name, one.target) for name, one in arrived]
        if (reply.outcome == "done") != (len(arrived) == 1) or len(arrived) > 1:
            raise FoundError(f"{sent} was told {reply.outcome}, and there arrived {came}")
        if arrived:
            [(name, one)] = arrived
            if (name, one.target) != may:
                raise FoundError(f"{sent} arrived at {name} as {one.target!r}, expected {may}")
            self._check_received(one, number, sent)
        elif may is not None and _PLAIN.match(may[1].decode("latin-1")):
            raise FoundError(f"{sent} was to arrive as {may}, and was refused: {reply.reason}")

    def _check_received(self, one: Received, number: int, sent: Sent) -> None:
        if (one.method, one.head.value(b"X-Request-Id")) != (sent.method, b"%d" % number):
            raise FoundError(f"for {sent} another request arrived: {one.raw!r}")
        target = one.target.decode("ascii")
        path, mark, query = target.partition("?")
        try:
            check_one_reading(target, PREFIX, Target(target, path, query if mark else None))
        except AssertionError as error:
            raise FoundError(f"{sent} arrived with several readings: {error}") from None


def main() -> None:
    parser = argparse.ArgumentParser(description="Fuzz the first segment of targets before two exchanges.")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 10**6)
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    ends_at = time.monotonic() + 60 * options.minutes
    fuzz = Fuzz(options.seed)
    try:
        asyncio.run(fuzz.run(lambda _: time.monotonic() < ends_at))
    except FoundError as found:
        sys.exit(str(found))
    for name, figure in fuzz.figures.most_common():
        print(f"{figure:10,} {name}")


if __name__ == "__main__":
    main()
