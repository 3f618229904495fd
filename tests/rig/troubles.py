"""What can befall a whole exchange, by name, and a gateway that has a calm exchange beside such a one.

Both are of one venue, with one key that is valid at both. Names are looked up by `Names`.
"""

import asyncio
import contextlib
import re
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rig.acts import Act, Wire, drip, say, say_and_reset, say_and_stall
from rig.bot import request
from rig.door import blurt
from rig.faults import whole
from rig.station import ENVIRON, KEY, Outcomes
from rig.tls import Authority
from rig.upstream import Received, Upstream, running_upstream
from rig.wire import OK, reply, until
from sealgate.config import Config
from sealgate.exchange.exchange import Exchange
from sealgate.server.gateway import Gateway, running_gateway

CALM, TROUBLED = "calm", "troubled"
_HOST = "troubled.test"
_HOUR_MS = 3_600_000
_TIMESTAMP = re.compile(rb"[?&]timestamp=(\d+)")
_MANY = "100000/1s"  # so that nobody is paced but for what the exchange says


class Names:
    """A resolver, in which the name of the troubled exchange can be missing, or nobody answers for it."""

    def __init__(self) -> None:
        self.fault: int | None = None
        self.port = 0  # of the troubled exchange
        self.answers = threading.Event()
        self.answers.set()

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Let it answer for the whole process."""
        genuine = socket.getaddrinfo

        def getaddrinfo(host: Any, port: Any, *rest: Any, **more: Any) -> Any:
            if host not in (_HOST, "localhost") or more.get("flags") != socket.AI_ADDRCONFIG:
                return genuine(host, port, *rest, **more)
            if port == self.port:
                self.answers.wait()
                if self.fault is not None:
                    raise socket.gaierror(self.fault, "as the resolver says")
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

        socket.getaddrinfo = getaddrinfo
        try:
            yield
        finally:
            self.answers.set()
            socket.getaddrinfo = genuine


Trouble = Callable[[Upstream, Names], None]


@dataclass(repr=False)
class Pair:
    """A running gateway between the two exchanges."""

    gateway: Gateway
    calm: Upstream
    troubled: Upstream
    names: Names
    outcomes: Outcomes

    def befall(self, trouble: str) -> None:
        """Let something befall the troubled exchange, with all connections that it has."""
        TROUBLES[trouble](self.troubled, self.names)
        self.troubled.cut_all()

    def relieve(self) -> None:
        """Let the troubled exchange be as at first."""
        troubled, self.names.fault = self.troubled, None
        troubled.otherwise = troubled.time = troubled.script = troubled.door.script = None
        troubled.skew_ms = 0
        self.names.answers.set()
        troubled.door.reopen()

    def exchange(self, name: str) -> Exchange:
        """Return one of the gateway's exchanges."""
        return self.gateway.generation.backends[name].exchange

    def seen_at_calm(self) -> list[str]:
        """Return, in words, all that the gateway holds against the calm exchange."""
        exchange = self.exchange(CALM)
        clock, live_key = exchange.clock.status(), exchange.live_keys["main"]
        line = live_key.scheduler.status()
        pools = [*line.pools.values()]
        limits = [one.n for pool in pools for one in pool.limits]
        found = {
            "the clock is not ready": exchange.clock.not_ready is not None,
            "the clock was stepped": clock.offset_s is None or abs(clock.offset_s) > 1,
            "the clock has trouble": clock.trouble is not None,
            "there is a pause": any(pool.pause_s > 0 for pool in pools),
            "requests wait": any(line.waiting.values()),
            "a limit was learned": set(limits) != {100_000} or any(pool.at_a_time for pool in pools),
            "the firewall is suspected": exchange.gates.firewall.is_alert,
            "the key is refused": live_key.breaker.state.fault is not None,
            "the key is suspected": live_key.breaker.state.trouble is not None,
            "orders are halted": bool(self.gateway.status().halts),
            "the gateway is not ready": bool(self.gateway.status().not_ready),
        }
        found |= {
            f"{one.exchange} has the outcome {one.conclusion}": True
            for one in self.outcomes.all
            if one.exchange == CALM and one.conclusion != "done"
        }
        return [words for words, is_so in found.items() if is_so]

    def strays(self) -> list[bytes]:
        """Return what arrived at an exchange, though nobody asked for it there."""
        is_own = re.compile(rb"newClientOrderId=calm-").search
        return [
            *(one.target for one in self.calm.received if not is_own(one.target)),
            *(one.target for one in self.troubled.received if is_own(one.target)),
        ]


def order_to(exchange: str, number: int, *fields: bytes) -> bytes:
    """Write an order, whose id names the exchange and says which it is."""
    name = exchange.encode()
    return request(
        b"POST",
        b"/%b/api/v3/order?symbol=BTCUSDT&newClientOrderId=%b-%d" % (name, name, number),
        *fields,
        body=b"",
    )


@contextlib.asynccontextmanager
async def running_pair(
    folder: Path, trouble: str | None = None, *, has_tls: bool = True
) -> AsyncIterator[Pair]:
    """Run it; return when both clocks have a sample. What arrives is what bots send.

    A trouble that is named befalls from the start; then the calm exchange's clock is waited for. `has_tls`:
    the troubled exchange speaks TLS.
    """
    authority, names, outcomes = Authority(), Names(), Outcomes()
    shared = {
        "venue": "binance",
        "clock": {"path": "/v1/trade/time", "interval": 0.5},
        "limits": {"pools": {name: {"known": [_MANY]} for name in ("weight", "orders")}, "max_wait": 2},
    }
    waits = {"connect_timeout": 0.5, "total_timeout": 1, "ca_file": authority.write(folder)}
    tls = authority.server_context(_HOST) if has_tls else None
    async with running_upstream() as calm, running_upstream(tls) as troubled:
        tree = {
            "listen": {"tcp": "127.0.0.1:0"},
            "admin": {"tcp": "127.0.0.1:0"},
            "upstream": waits,
            "exchanges": {
                CALM: {**shared, "base_url": f"http://localhost:{calm.port}"},
                TROUBLED: {
                    **shared,
                    "base_url": f"https://{_HOST}:{troubled.port}"
                    if has_tls
                    else f"http://localhost:{troubled.port}",
                },
            },
            "keys": {"main": {**KEY, "exchanges": [CALM, TROUBLED]}},
        }
        config = Config.model_validate(tree)
        names.port = troubled.port
        with names.in_use():
            if trouble is not None:
                TROUBLES[trouble](troubled, names)
            async with running_gateway(config, (outcomes,), ENVIRON) as gateway:
                gateway.services.untried.clear()
                pair = Pair(gateway, calm, troubled, names, outcomes)
                waited_for = (CALM, TROUBLED) if trouble is None else (CALM,)
                await until(lambda: all(pair.exchange(name).clock.not_ready is None for name in waited_for))
                try:
                    yield pair
                finally:
                    names.answers.set()
                    troubled.cut_all()


def _answering(act: Callable[[Upstream], Act]) -> Trouble:
    def befall(troubled: Upstream, _: Names) -> None:
        troubled.otherwise = troubled.time = act(troubled)

    return befall


def _refused(troubled: Upstream, _: Names) -> None:
    troubled.door.shut()


def _unanswered(troubled: Upstream, _: Names) -> None:
    troubled.door.block()


def _no_tls(troubled: Upstream, _: Names) -> None:
    troubled.door.script = lambda: blurt


def _no_name(_: Upstream, names: Names) -> None:
    names.fault = socket.EAI_AGAIN


def _silent_dns(_: Upstream, names: Names) -> None:
    names.answers.clear()


def _stepped_clock(troubled: Upstream, _: Names) -> None:
    """Step its clock by an hour; it refuses timestamps of before."""
    troubled.skew_ms = _HOUR_MS

    def act(received: Received) -> Act:
        stamped = _TIMESTAMP.search(received.target)
        if stamped and abs(int(stamped[1]) - troubled.now_ms()) < 5_000:
            return say(OK)
        words = b'{"code":-1021,"msg":"Timestamp for this request was 1000ms ahead of the server\'s time."}'
        return say(reply(b"400 Bad Request", words))

    troubled.script = act


def _banned(troubled: Upstream) -> Act:
    words = b'{"code":-1003,"msg":"Way too much request weight used; IP banned until %d."}'
    return say(reply(b"418 I'm a teapot", words % (troubled.now_ms() + _HOUR_MS)))


async def _endless_head(wire: Wire) -> None:
    gone = asyncio.ensure_future(wire.peer_gone())
    await wire.write(b"HTTP/1.1 200 OK\r\n")
    while not gone.done():
        await wire.write(b"X-One-More: x\r\n" * 50)
        await asyncio.wait((gone,), timeout=0.001)


TROUBLES: Mapping[str, Trouble] = MappingProxyType(
    {
        "hangs": _answering(lambda _: say_and_stall()),
        "refuses connections": _refused,
        "answers no connection": _unanswered,
        "429, 60 s": _answering(lambda _: say(reply(b"429 Too Many Requests", b"{}", b"Retry-After: 60"))),
        "ban": _answering(_banned),
        "firewall": _answering(
            lambda _: say(reply(b"403 Forbidden", b"<html>Blocked</html>", b"Content-Type: text/html"))
        ),
        "key invalid": _answering(
            lambda _: say(reply(b"401 Unauthorized", b'{"code":-2014,"msg":"API-key format invalid."}'))
        ),
        "clock steps by an hour": _stepped_clock,
        "DNS: no such name": _no_name,
        "DNS: no answer": _silent_dns,
        "endless header": _answering(lambda _: _endless_head),
        "drips": _answering(lambda _: drip(whole(b"x" * 90_000))),
        "resets": _answering(lambda _: say_and_reset()),
        "TLS fails": _no_tls,
    }
)
