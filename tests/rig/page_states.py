"""The live page's states: each changes what a running gateway says of itself, and has words for it."""

import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Any

from rig.admin import Admin, live_view, running_admin
from rig.key_pools import only, pool
from rig.open_streams import stream
from rig.outcome import ANSWERED, changed
from rig.station import Station
from rig.verdicts import verdict
from sealgate.exchange.clock import ClockStatus
from sealgate.limits.status import LimitStatus, SharingStatus
from sealgate.machine.system import System
from sealgate.observe.live import Live
from sealgate.observe.metrics import Metrics
from sealgate.observe.pools import PoolState
from sealgate.observe.status import PolicyStatus, Status, halt_status
from sealgate.orders.doubts import Doubt, JournalStatus
from sealgate.orders.halts import Halt, Halts, Origin, Scope
from sealgate.orders.outcome import Conclusion, Outcome
from sealgate.streams.tally import StreamsStatus, StreamStatus
from sealgate.venues.routes import Lane

Change = Callable[[Status], Status]

_NOW_MS = round(System().wall() * 1000)
_DAY_S = 86_400.0
_DISK = "database or disk is full"
_REFUSED = "the exchange refused its last 9 signatures"
_INVALID = "the exchange calls it invalid"
_HALTS = Halts(Halt(Scope(), 0, Origin(1000, 7, "the desk `called`")), Halt(Scope("grid", "main"), 0))
_NO_WAY = "cannot connect to api.some-exchange.example:443: connection refused"


def _doubt(number: int) -> Doubt:
    return Doubt(
        id=f"{number}",
        request_id=f"grid-2026-11-21T22.31.05-{number:06}",
        bot="market-maker-eu",
        exchange="spot",
        key="main",
        method="POST",
        route="/order",
        target="/v1/trade/order/modify?account=0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        idempotency_key=None,
        timestamp_ms=_NOW_MS - 90_000,
        fence_ms=_NOW_MS - 85_000,
        attempts=1,
        sent_ms=_NOW_MS - 90_000,
        symbol="BTC",
        side="buy",
        size="0.00125",
        price="65000.5",
        client_id="grid-7",
    )


_DOUBTS = tuple(map(_doubt, range(3)))


def _limit(
    n: float, window_s: float, used_ratio: float, words: str = "published", step: str = ""
) -> LimitStatus:
    height = f"{n:,g} per {window_s:g} s, {words}"
    return LimitStatus(n, window_s, used_ratio, 0, False, height, n, n, step)


_WEIGHT = pool(
    _limit(6000, 60, 0.31, "published, never refused yet"), pool="weight", is_whole=True, is_shared=True
)
_BINANCE = (
    _WEIGHT,
    pool(
        _limit(100, 10, 1.0, "published, from 3 refusals; last 2 s ago; refused at most one in 1,200"),
        _limit(200_000, 86_400, 0.04, "published, never refused yet"),
        pool="orders",
        passes="orders",
        lanes=("order",),
        pause_s=41.7,
    ),
)
_STEP = "next: 10.5 per 1 s, in 40 s, if requests wait"
_PATHS = ("POST /v5/order/create", "POST /v5/order/cancel", "GET /v5/position/list", "GET /v5/order/realtime")
_BYBIT = (
    pool(_limit(600, 5, 0.12), pool="address", is_whole=True, is_shared=True),
    *(
        pool(
            _limit(10, 1, 0.97 - at / 4, "from 2 refusals; last 48 s ago; refused at most one in 700", _STEP),
            pool="path",
            of=path,
            passes="",
            pause_s=0.8 * (at == 2),
        )
        for at, path in enumerate(_PATHS)
    ),
    *(pool(pool="path", of=f"GET /v5/market/{name}", passes="") for name in "abcdefgh"),
)
_PUBLIC = only(
    _limit(2000, 30, 0.02), pool="public", passes="requests without a key", is_shared=True, pause_s=12.0
)
_BANNED = tuple(replace(one, state=PoolState.BANNED, pause_s=840.0) for one in _BINANCE)
_SHORT = LimitStatus(4.0, 0.8149, 0.5, 6, is_foreign_use=False, words="", low=3.6, high=4.1, next_step="")


def _exchange(status: Status, **changes: Any) -> Status:
    return replace(status, exchanges=(replace(status.exchanges[0], **changes),))


def _key(status: Status, **changes: Any) -> Status:
    return _exchange(status, keys=(replace(status.keys[0], **changes),))


_POLICIES = (
    PolicyStatus(
        "grid", "spot", "may", is_observing=False, refusals={"max_orders_per_minute": 3, "symbols": 1}
    ),
    PolicyStatus("maker", "spot", "would be", is_observing=True, refusals={"max_notional": 2, "body": 0}),
)

_UNREAD = ClockStatus(None, None, None, 0, 0, _NO_WAY)
# A name, and what differs there: of ten exchanges some are always in trouble.
_OTHERS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("binance", {}),
    ("binanceusdm", {"pause_s": 41.7}),
    ("binance-portfolio-margin", {"waiting": {"cancel": 0, "order": 12, "read": 3}}),
    ("bybit", {"pools": only(_SHORT)}),
    ("okx", {"disabled": _INVALID, "is_active": False}),
    ("kraken", {"trouble": _REFUSED, "trouble_advice": verdict("signature_invalid").advice}),
    ("coinbase", {}),
    ("gate", {}),
    ("kucoinfutures", {}),
)


def _ten_exchanges(status: Status) -> Status:
    first = status.exchanges[0]
    others = [
        replace(
            first,
            name=name,
            venue=name,
            base_url=f"https://api.{name}.example.com",
            urls=(f"http://127.0.0.1:8787/{name}",),
            keys=(replace(first.keys[0], **({"exchange": name} | changes)),),
        )
        for name, changes in _OTHERS
    ]
    others[0] = replace(others[0], clock=_UNREAD, not_ready=(f"clock not synchronized: {_NO_WAY}",))
    return replace(status, exchanges=(first, *others))


def _stream(number: int, **changes: Any) -> StreamStatus:
    return stream(
        exchange="service",
        bot=("grid", "market-maker-eu")[number % 2],
        stream=("stream.example.com/v5/private", "ws-api.example.com:9443/ws-api/v3")[number % 2],
        since=_NOW_MS / 1000 - 60.0 * 3**number,
        messages_per_s=1234.5 / 7**number,
        **changes,
    )


_STREAMS = (
    replace(_stream(0, is_logged_in=None), stream="fstream.example.com:443/market/{symbols}/trades/**"),
    _stream(1),
    _stream(2, is_logged_in=False),
)


_FULL = _limit(20, 1, 1.0, "from 3 refusals; last 5 min ago; refused at most one in 1,200", _STEP)
BOTS = tuple(f"{kind}-{number:02}" for number in range(17) for kind in ("grid", "maker", "watch"))[:50]


def _fifty_bots(status: Status) -> Status:
    """Ten exchanges with fifty bots, of which each uses two."""
    ten = _ten_exchanges(status)
    full = replace(ten.exchanges[3].keys[0], pools=only(replace(_FULL, low=19.6, high=20.4)))
    waiting = {"cancel": 0, "order": 12, "read": 40}
    busy = replace(full, waiting=waiting, waiting_by_bot=dict.fromkeys(BOTS[:10], 5))
    exchanges = [*ten.exchanges]
    exchanges[3] = replace(exchanges[3], keys=(busy,))
    by_exchange = {"binance-portfolio-margin": 3}
    return replace(
        ten,
        exchanges=tuple(exchanges),
        connections=50,
        streams=StreamsStatus(tuple(_stream(at % 3, is_logged_in=True) for at in range(20))),
        journal=JournalStatus(3, _DOUBTS, None, is_refusing=False, by_exchange=by_exchange),
    )


def half_a_second(status: Status, now: float) -> list[Outcome]:
    """Return what fifty bots at ten exchanges ask for in half a second: reads and orders, some refused."""
    found = []
    for at, bot in enumerate(BOTS):
        for exchange in status.exchanges[at % 10], status.exchanges[(at + 3) % 10]:
            usual = {"bot": bot, "exchange": exchange.name, "key": "main", "attempts": 1, "started": now}
            took = {"upstream_s": 0.018 + at / 5000, "total_s": 0.0181 + at / 5000}
            is_bad = at % 17 == 0
            end: dict[str, Any] = {"status": 400 if is_bad else 200}
            if is_bad:
                end["conclusion"] = Conclusion.REFUSED
            made = {"method": "POST", "route": "/v5/order/create", "lane": Lane.ORDER}
            found.append(changed(ANSWERED, **usual, **took, **made, **end))
            found.append(changed(ANSWERED, **usual, **took))
            found.append(changed(ANSWERED, **usual | {"attempts": 0}, shared="of-another"))
    return found


# Each with some words that the page then shows; what it says is a matter of observe/test_sentences.py.
STATES: dict[str, tuple[Change, str]] = {
    "ready": (lambda status: status, "Requests"),
    "paused": (lambda status: _key(status, pause_s=41.7), "paused, 41.7 s left"),
    "spent": (
        lambda status: _key(status, pools=only(_SHORT, spent_s=7.3)),
        "limit used up (exchange), 7.3 s left",
    ),
    "halted": (lambda status: replace(status, halts=halt_status(_HALTS)), "Reason: the desk called"),
    "disabled": (
        lambda status: _exchange(
            _key(status, disabled=_INVALID, is_active=False),
            not_ready=(f"the key main is disabled: {_INVALID}",),
        ),
        "key refused",
    ),
    "signatures refused": (
        lambda status: _key(status, trouble=_REFUSED, trouble_advice=verdict("signature_invalid").advice),
        "signatures refused",
    ),
    "a short window": (lambda status: _key(status, pools=only(_SHORT)), "of about 4.72/s"),
    "a closed pool": (
        lambda status: _key(status, pools=_BINANCE),
        "orders: closed for 42 s; cancels and reads go on",
    ),
    "many pools": (
        lambda status: _exchange(
            status, keys=(replace(status.keys[0], pools=_BYBIT, more_pools=30),), open_pools=_PUBLIC
        ),
        "and 38 more pools, all open",
    ),
    "a ban": (
        lambda status: _key(status, pools=_BANNED, pause_s=840.0),
        "Key main, banned by the exchange: nothing is sent for 14 min",
    ),
    "a ban for less": (
        lambda status: _key(
            status, pools=tuple(replace(one, pause_s=780.0) for one in _BANNED), pause_s=780.0
        ),
        "Key main, banned by the exchange: nothing is sent for 13 min",
    ),
    "not shared": (
        lambda status: _key(status, sharing=SharingStatus(3, is_leader=False, degraded="Redis is away")),
        "The limit of key main is not shared: Redis is away",
    ),
    "expiring": (lambda status: _key(status, expires_at=_NOW_MS / 1000 + 2.5 * _DAY_S), "expires in 2 d"),
    "doubts": (
        lambda status: replace(status, journal=JournalStatus(7, _DOUBTS, None, is_refusing=False)),
        "buy 0.00125 BTC at 65000.5 as grid-7",
    ),
    "one key of two": (
        lambda status: _exchange(
            status, keys=(replace(status.keys[0], disabled=_INVALID, is_active=False), status.keys[0])
        ),
        "a key refused",
    ),
    "no journal": (
        lambda status: replace(status, journal=JournalStatus(0, (), _DISK, is_refusing=True)),
        "Orders are refused until it can",
    ),
    "a lost journal": (
        lambda status: replace(
            status, journal=JournalStatus(0, (), None, is_refusing=False, lost="j.db was missing")
        ),
        "j.db was missing. If you did not remove it",
    ),
    "degraded": (
        lambda status: _exchange(
            replace(status, journal=JournalStatus(0, (), _DISK, is_refusing=False)),
            clock=replace(status.clock, trouble=_NO_WAY),
        ),
        "The exchange's time cannot be read",
    ),
    "not ready": (
        lambda status: _exchange(status, clock=_UNREAD, not_ready=(f"clock not synchronized: {_NO_WAY}",)),
        "Not ready: clock not synchronized",
    ),
    "policies": (
        lambda status: _exchange(status, policies=_POLICIES),
        "maker's policy would have refused: 2 by max_notional",
    ),
    "streams": (
        lambda status: replace(status, streams=StreamsStatus(_STREAMS)),
        "ws-api.example.com:9443/ws-api/v3",
    ),
    "many streams": (
        lambda status: replace(
            _ten_exchanges(status),
            streams=StreamsStatus(tuple(_stream(at % 4, is_logged_in=at % 3 > 0) for at in range(60))),
        ),
        "not logged in",
    ),
    "saturated": (
        lambda status: _key(
            status,
            pools=only(replace(_FULL, low=19.6, high=20.4)),
            waiting={"cancel": 0, "order": 12, "read": 40},
        ),
        "about 20/s · no refusal today",
    ),
    "fifty bots": (_fifty_bots, "3 orders have no known result"),
    "ten exchanges": (_ten_exchanges, "binance is not ready: clock not synchronized"),
    "shutting down": (
        lambda status: replace(status, is_draining=True),
        "Not ready: shutting down",
    ),
}


@dataclass
class Feed:
    """A page whose state is changed at will."""

    admin: Admin
    change: Change
    live: Live
    status: Callable[[], Status]

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.admin.port}/"


@contextlib.asynccontextmanager
async def running_feed(station: Station) -> AsyncIterator[Feed]:
    """Run the page of a gateway, as long as the block lasts."""

    def status() -> Status:
        return feed.change(station.gateway.status())

    feed = Feed(Admin(0), STATES["ready"][0], live_view(station, status), status)
    async with running_admin(status, Metrics(status), feed.live) as feed.admin:
        yield feed
