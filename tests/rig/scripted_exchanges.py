"""Exchanges that limit and ban as their documents say, in code that shares nothing with the gateway.

They check no signatures. What each says, and for how long, is written here a second time, from the same pages
as the venues' files, and never read from those.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rig.leaping import EPOCH
from rig.upstream import Act, Received, say
from rig.wire import let_pass, reply

TRIP_S = 0.04  # from the arrival of a request to its reply
SECRETS = {"SECRET": "c2VjcmV0IHNlY3JldCBzZWNyZXQ=", "PASSPHRASE": "phrase"}
Said = tuple[int, Any, Mapping[str, object]]
PHRASES = {
    200: b"OK",
    400: b"Bad Request",
    403: b"Forbidden",
    418: b"I'm a teapot",
    429: b"Too Many Requests",
}


@dataclass(frozen=True)
class Closure:
    """One way in which an exchange shuts somebody out.

    `say` returns a refusal's status, body and headers, from the epoch seconds now and at the end. It lasts
    from `lasts_s[0]` to `lasts_s[1]`, which are equal if it is the documents that say so. It covers all that
    comes from the address (`covers_all`), or only what is signed, of that only the `calls` if there are any.
    Without `is_known` nobody says how long.
    """

    name: str
    say: Callable[[float, float], Said]
    lasts_s: tuple[float, float]
    covers_all: bool = False
    is_known: bool = True
    calls: tuple[str, ...] = ()  # how method and path of those begin that one pool counts


@dataclass(frozen=True)
class Exchange:
    """What an exchange answers; `asks` are a read, an order, a cancel, and a read that needs no key."""

    time_path: str
    time: Callable[[float], Any]
    done: Any
    asks: tuple[tuple[str, str, str], ...]
    closures: tuple[Closure, ...]
    key: Mapping[str, str] = field(default_factory=dict)


def _ms(seconds: float) -> int:
    return int(seconds * 1000)


def _coded(name: str, code: object, status: int = 200, **more: object) -> Callable[[float, float], Said]:
    return lambda _now, _end: (status, {name: code, **more}, {})


_JSON = '{"symbol":"X"}'
_PHRASE = {"passphrase": "env:PASSPHRASE"}
_EXCHANGES: Mapping[str, Exchange] = {
    "binance": Exchange(
        "/api/v3/time",
        lambda now: {"serverTime": _ms(now)},
        {},
        (
            ("GET", "/api/v3/openOrders", ""),
            ("POST", "/api/v3/order", "symbol=X"),
            ("DELETE", "/api/v3/order?symbol=X", ""),
            ("GET", "/api/v3/ticker/price", ""),
        ),
        (
            Closure(
                "429 with Retry-After",
                lambda now, end: (
                    429,
                    {"code": -1003, "msg": "Too many"},
                    {"Retry-After": int(end - now) + 1},
                ),
                (5, 60),
                covers_all=True,
            ),
            Closure(
                "418 with its words",
                lambda now, end: (
                    418,
                    {"code": -1003, "msg": f"Way too many requests; IP banned until {_ms(end) + 1}."},
                    {"Retry-After": int(end - now)},
                ),
                (120, 600),
                covers_all=True,
            ),
            Closure("418 that says nothing", lambda _now, _end: (418, {}, {}), (120, 120), covers_all=True),
            Closure(
                "-1015",
                _coded("code", -1015, 429, msg="Too many new orders"),
                (2, 10),
                is_known=False,
                calls=("POST /api/v3/order", "POST /fapi/v1/order"),
            ),
        ),
    ),
    "bybit": Exchange(
        "/v5/market/time",
        lambda now: {"retCode": 0, "time": _ms(now)},
        {"retCode": 0},
        (
            ("GET", "/v5/position/list?category=linear", ""),
            ("POST", "/v5/order/create", _JSON),
            ("POST", "/v5/order/cancel", _JSON),
            ("GET", "/v5/market/tickers", ""),
        ),
        (
            Closure(
                "10006 with its reset",
                lambda _now, end: (
                    200,
                    {"retCode": 10006, "retMsg": "Too many visits!"},
                    {"X-Bapi-Limit-Status": 0, "X-Bapi-Limit": 10, "X-Bapi-Limit-Reset-Timestamp": _ms(end)},
                ),
                (1, 5),
                calls=("POST /v5/order/create",),
            ),
            Closure(
                "403", lambda _now, _end: (403, "403, access too frequent", {}), (600, 600), covers_all=True
            ),
        ),
    ),
    "okx": Exchange(
        "/api/v5/public/time",
        lambda now: {"code": "0", "data": [{"ts": str(_ms(now))}]},
        {"code": "0", "data": []},
        (
            ("GET", "/api/v5/account/positions", ""),
            ("POST", "/api/v5/trade/order", _JSON),
            ("POST", "/api/v5/trade/cancel-order", _JSON),
            ("GET", "/api/v5/market/ticker", ""),
        ),
        (
            Closure(
                "50011",
                _coded("code", "50011", 429, msg="Too Many Requests"),
                (0.5, 2),
                is_known=False,
                calls=("POST /api/v5/trade/order",),
            ),
        ),
        _PHRASE,
    ),
    "kraken": Exchange(
        "/0/public/Time",
        lambda now: {"error": [], "result": {"unixtime": int(now)}},
        {"error": [], "result": {}},
        (
            ("POST", "/0/private/OpenOrders", "trades=true"),
            ("POST", "/0/private/AddOrder", "pair=X"),
            ("POST", "/0/private/CancelOrder", "txid=1"),
            ("GET", "/0/public/Ticker", ""),
        ),
        (
            Closure("lockout", _coded("error", ["EGeneral:Temporary lockout"]), (900, 900)),
            Closure(
                "throttled until",
                lambda _now, end: (200, {"error": [f"EService: Throttled: {int(end) + 1}"]}, {}),
                (5, 60),
            ),
            Closure(
                "rate limit",
                _coded("error", ["EAPI:Rate limit exceeded"]),
                (3, 10),
                is_known=False,
                calls=("POST /0/private/OpenOrders",),
            ),
        ),
    ),
    "kucoin": Exchange(
        "/api/v1/timestamp",
        lambda now: {"code": "200000", "data": _ms(now)},
        {"code": "200000"},
        (
            ("GET", "/api/v1/orders", ""),
            ("POST", "/api/v1/orders", _JSON),
            ("DELETE", "/api/v1/orders/1", ""),
            ("GET", "/api/v1/market/allTickers", ""),
        ),
        (
            Closure(
                "429000 with its reset",
                lambda now, end: (
                    429,
                    {"code": "429000", "msg": "Too many requests"},
                    {
                        "gw-ratelimit-limit": 4000,
                        "gw-ratelimit-remaining": 0,
                        "gw-ratelimit-reset": _ms(end - now) + 1,
                    },
                ),
                (5, 30),
                calls=("GET /api/v1/orders", "POST /api/v1/orders", "DELETE /api/v1/orders"),
            ),
            Closure("1015", _coded("code", "1015", 403), (30, 30), covers_all=True),
            Closure("200002", _coded("code", "200002"), (10, 10), calls=("POST /api/v1/orders",)),
        ),
        _PHRASE,
    ),
    "gate": Exchange(
        "/api/v4/spot/time",
        lambda now: {"server_time": _ms(now)},
        {},
        (
            ("GET", "/api/v4/spot/open_orders", ""),
            ("POST", "/api/v4/spot/orders", _JSON),
            ("DELETE", "/api/v4/spot/orders/1", ""),
            ("GET", "/api/v4/spot/tickers", ""),
        ),
        (
            Closure(
                "TOO_MANY_REQUESTS with its reset",
                lambda _now, end: (
                    429,
                    {"label": "TOO_MANY_REQUESTS"},
                    {
                        "X-Gate-RateLimit-Limit": 10,
                        "X-Gate-RateLimit-Requests-Remain": 0,
                        "X-Gate-RateLimit-Reset-Timestamp": int(end) + 1,
                    },
                ),
                (1, 10),
                calls=("POST /api/v4/spot/orders",),
            ),
        ),
    ),
    "bitget": Exchange(
        "/api/v2/public/time",
        lambda now: {"code": "00000", "data": {"serverTime": str(_ms(now))}},
        {"code": "00000"},
        (
            ("GET", "/api/v2/spot/trade/unfilled-orders", ""),
            ("POST", "/api/v2/spot/trade/place-order", _JSON),
            ("POST", "/api/v2/spot/trade/cancel-order", _JSON),
            ("GET", "/api/v2/spot/market/tickers", ""),
        ),
        (
            Closure(
                "429",
                _coded("code", "429", 429),
                (0.5, 1),
                is_known=False,
                calls=("POST /api/v2/spot/trade/place-order",),
            ),
        ),
        _PHRASE,
    ),
    "deribit": Exchange(
        "/api/v2/public/get_time",
        lambda now: {"jsonrpc": "2.0", "result": _ms(now)},
        {"jsonrpc": "2.0", "result": {}},
        (
            ("GET", "/api/v2/private/get_positions", ""),
            ("GET", "/api/v2/private/buy?instrument_name=X", ""),
            ("GET", "/api/v2/private/cancel?order_id=1", ""),
            ("GET", "/api/v2/public/ticker", ""),
        ),
        (
            Closure(
                "10028",
                lambda _now, _end: (400, {"error": {"code": 10028, "message": "too_many_requests"}}, {}),
                (1, 5),
                is_known=False,
                calls=("GET /api/v2/private/buy", "GET /api/v2/private/cancel"),
            ),
        ),
    ),
}
# What is other at another host of one of them: its paths, and the place of its time.
_FUTURES = replace(
    _EXCHANGES["binance"],
    time_path="/fapi/v1/time",
    asks=(
        ("GET", "/fapi/v1/openOrders", ""),
        ("POST", "/fapi/v1/order", "symbol=X"),
        ("DELETE", "/fapi/v1/order?symbol=X", ""),
        ("GET", "/fapi/v1/ticker/price", ""),
    ),
)
EXCHANGES: Mapping[str, Exchange] = {**_EXCHANGES, "binanceusdm": _FUTURES}


@dataclass(frozen=True)
class Arrival:
    """A request as the exchange saw it: "clock" asks for the time, "gateway" is its own signed read."""

    at: float
    whose: str
    is_covered: bool
    is_refused: bool


class ScriptedExchange:
    """Shuts out what the closure covers, from `begins` to `ends` on the loop's clock, and notes arrivals."""

    def __init__(self, exchange: Exchange, closure: Closure, begins: float, lasts_s: float) -> None:
        self._exchange, self._closure = exchange, closure
        self.begins, self.ends = begins, begins + lasts_s
        self._lasts_s = lasts_s
        self.refused_at: float | None = None  # when the first refusal left
        self.arrivals: list[Arrival] = []

    def act(self, received: Received) -> Act:
        """Return what is done with a request."""
        path = received.target.decode().partition("?")[0]
        asked = {ask[1].partition("?")[0] for ask in self._exchange.asks}
        is_open = path in (self._exchange.time_path, self._exchange.asks[3][1])
        whose = "clock" if path == self._exchange.time_path else "bot" if path in asked else "gateway"
        now = asyncio.get_running_loop().time()
        calls, call = self._closure.calls, f"{received.method.decode()} {path}"
        is_covered = self._closure.covers_all or (not is_open and (not calls or call.startswith(calls)))
        is_refused = is_covered and self.begins <= now < self.ends
        if is_refused and self.refused_at is None:
            self.refused_at = now + TRIP_S
            self.ends = now + self._lasts_s  # a ban begins with the request that it is for
        self.arrivals.append(Arrival(now, whose, is_covered, is_refused))
        status, body, fields = self._said(path, is_refused=is_refused)

        async def answer(wire: Any) -> None:
            await let_pass(TRIP_S)
            raw = body if isinstance(body, str) else json.dumps(body)
            lines = [f"{name}: {value}".encode() for name, value in fields.items()]
            await say(reply(b"%d %b" % (status, PHRASES[status]), raw.encode(), *lines))(wire)

        return answer

    def _said(self, path: str, *, is_refused: bool) -> Said:
        now = asyncio.get_running_loop().time()
        if is_refused:
            return self._closure.say(EPOCH + now, EPOCH + self.ends)
        if path == self._exchange.time_path:
            return 200, self._exchange.time(EPOCH + now + TRIP_S / 2), {}
        return 200, self._exchange.done, {}

    def into_the_wait(self, whose: tuple[str, ...]) -> int:
        """Count what was sent into the wait after it was known: later than the first refusal came back."""
        since = self.refused_at
        return sum(
            since is not None and since < one.at < self.ends and one.is_covered and one.whose in whose
            for one in self.arrivals
        )

    def beside_the_first(self) -> int:
        """Count what arrived before the first request after the closure was answered."""
        after = [one.at for one in self.arrivals if one.at >= self.ends and one.is_covered]
        return sum(at < after[0] + TRIP_S for at in after[1:])
