"""An exchange whose pools fill up, or which bans, as its documents say: see pool_documents."""

import asyncio
import json
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from rig.leaping import EPOCH
from rig.limits_limiters import Limiter
from rig.pool_documents import DOCUMENTS, UNKNOWN, Asked, BanScript, PoolScript, pair_of
from rig.scripted_exchanges import EXCHANGES, PHRASES, TRIP_S, Said
from rig.upstream import Act, Received, say
from rig.wire import let_pass, reply

ACCOUNTS = {"ak-one-a": "one", "ak-one-b": "one", "ak-two": "two"}  # of API keys
_ROUNDED_S = 0.002  # what is stated in whole milliseconds may be so much early


@dataclass(frozen=True)
class Unit:
    """What a stranger spends to fill a pool, or a request spends of it."""

    cost: int = 1
    is_read: bool = True


@dataclass(frozen=True)
class Closure:
    """A ban, or a pool that a stranger keeps full but for what it `leaves` at first; `place` is its name."""

    script: PoolScript | BanScript
    place: str
    begins: float
    lasts_s: float
    leaves: int = 0


@dataclass
class Known:
    """What replies said of a place: known `since`, closed `until` (not later if no end is known)."""

    since: float
    until: float
    is_refused: bool
    scout_until: float = -1.0  # when the reply to the first request after it is there
    ends_at: float = float("inf")  # when that reply has shown that there is room again


@dataclass
class Counts:
    """What arrived that should not have: of bots and of the gateway itself."""

    into_known: int = 0
    into_known_of_gateway: int = 0
    beside_scout: int = 0
    tries: int = 0  # refused scouts
    refused: int = 0
    elsewhere: int = 0  # refused by a pool that nobody filled


def place_of(script: PoolScript | BanScript, asked: Asked, api_key: str) -> str | None:
    """Return the name of what a request passes of a pool, None if it is not in it."""
    if not script.has(asked) or (script.scope != "address" and not api_key):
        return None
    subject = {"address": "", "account": ACCOUNTS.get(api_key, ""), "key": api_key}[script.scope]
    parts = [script.name, subject]
    parts += [asked.method, asked.path] * script.per.startswith("path") + [asked.pair] * script.per.endswith(
        "pair"
    )
    return " ".join(parts).strip()


class PooledExchange:
    """Answers a gateway; times are the loop's, those of the meters and of what is said are epoch seconds."""

    def __init__(self, venue: str, closure: Closure | None) -> None:
        self._venue, self._documents, self._closure = venue, DOCUMENTS[venue], closure
        self._meters: dict[str, Limiter] = {}
        self._known: dict[str, Known] = {}
        self._has_leaked = False
        self.ban_until = 0.0
        self.closed_until = 0.0
        self.counts = Counts()
        self.paths: dict[str, int] = defaultdict(int)  # into a known closure, by path

    def asked(self, received: Received) -> tuple[Asked, str]:
        """Return what a request asks for, and its API key, "" without one."""
        path = received.target.decode().partition("?")[0]
        is_open = self._documents.is_open(path)
        keys = [] if is_open else [key for key in ACCOUNTS if key.encode() in received.raw]
        pair = pair_of(f"{received.target.decode()} {received.body.decode()}")
        return Asked(received.method.decode(), path, pair, is_open), max(keys, key=len, default="")

    def act(self, received: Received) -> Act:
        """Return what is done with a request: it is judged as it arrives, and answered a trip later."""
        asked, api_key = self.asked(received)
        now = asyncio.get_running_loop().time()
        status, body, fields = self._answer(asked, api_key, now)

        async def answer(wire: Any) -> None:
            await let_pass(TRIP_S)
            raw = body if isinstance(body, str) else json.dumps(body)
            lines = [f"{name}: {value}".encode() for name, value in fields.items()]
            lines.append(b"Content-Type: application/json")
            await say(reply(b"%d %b" % (status, PHRASES[status]), raw.encode(), *lines))(wire)

        return answer

    def _answer(self, asked: Asked, api_key: str, now: float) -> Said:
        # 1. A ban covers what its documents say, from the first such request on.
        if (ban := self._ban(asked, api_key, now)) is not None:
            return ban
        # 2. A stranger fills the pool, and a request that finds any of its pools full is refused.
        epoch = EPOCH + now
        self._fill(now)
        places = {
            place: pool
            for pool in self._documents.pools
            if (place := place_of(pool, asked, api_key)) is not None
        }
        cost = self._documents.costs.get(asked.path, 1)
        unit = Unit(cost)
        for place, pool in places.items():
            wait_s = self._meter(place, pool).wait_s(epoch, unit)
            if wait_s > 0:
                self._judge(place, asked, now, wait_s, is_known=pool.end != UNKNOWN)
                if self._closure is None or self._closure.place != place:
                    self.counts.elsewhere += 1
                return pool.say(epoch, epoch + wait_s)
        # 3. An accepted one is counted in all of them, and its reply tells of those that have header fields.
        fields: dict[str, object] = {}
        for place, pool in places.items():
            meter = self._meter(place, pool)
            meter.spend(epoch, unit)
            self._judge(place, asked, now, None)
            if pool.tells is not None:
                left, end = _left(meter, pool.most, epoch), epoch + meter.wait_s(epoch, Unit(pool.most))
                fields.update(pool.tells(pool.most, left, epoch, end))
                if not left and pool.do_counts_close:
                    self._known.setdefault(place, Known(now + TRIP_S, end - EPOCH, is_refused=False))
        if asked.path == EXCHANGES[self._venue].time_path:
            return 200, EXCHANGES[self._venue].time(epoch + TRIP_S / 2), fields
        return 200, EXCHANGES[self._venue].done, fields

    def _ban(self, asked: Asked, api_key: str, now: float) -> Said | None:
        closure = self._closure
        if closure is None or not isinstance(closure.script, BanScript) or now < closure.begins:
            return None
        if place_of(closure.script, asked, api_key) != closure.place:
            return None
        if not self.ban_until:
            self.ban_until = self.closed_until = now + closure.lasts_s
        if now >= self.ban_until:
            self._judge(closure.place, asked, now, None)
            return None
        self._judge(closure.place, asked, now, self.ban_until - now)
        return closure.script.say(EPOCH + now, EPOCH + self.ban_until)

    def _fill(self, now: float) -> None:
        closure = self._closure
        if closure is None or not isinstance(closure.script, PoolScript):
            return
        if closure.begins <= now < closure.begins + closure.lasts_s:
            meter, leaves = self._meter(closure.place, closure.script), closure.leaves
            epoch = EPOCH + now
            if leaves and not self._has_leaked:
                self._has_leaked = True
                while meter.wait_s(epoch, Unit(leaves + 1)) <= 0:
                    meter.spend(epoch, Unit())
            else:
                while meter.wait_s(epoch, Unit()) <= 0:
                    meter.spend(epoch, Unit())
            self.closed_until = now + meter.wait_s(epoch, Unit())

    def _meter(self, place: str, pool: PoolScript) -> Limiter:
        if place not in self._meters:
            self._meters[place] = pool.meter()
        return self._meters[place]

    def _judge(
        self, place: str, asked: Asked, now: float, wait_s: float | None, *, is_known: bool = True
    ) -> None:
        """Count a request that a place refused for `wait_s`, or accepted (None), by what is known of it."""
        counts, known = self.counts, self._known.get(place)
        is_own = asked.path == EXCHANGES[self._venue].time_path or not any(
            ask.target.partition("?")[0] == asked.path for ask in self._documents.asks
        )
        counts.refused += wait_s is not None
        if known is not None and now >= (known.ends_at if known.is_refused else known.until):
            del self._known[place]
            known = None
        is_scout = False
        if known is not None and known.since <= now:
            if now < known.until - _ROUNDED_S:
                counts.into_known += not is_own
                counts.into_known_of_gateway += is_own
                self.paths[f"{asked.method} {asked.path}"] += 1
            elif now < known.scout_until:
                counts.beside_scout += 1
            else:
                is_scout = True
                known.scout_until = now + TRIP_S
                counts.tries += wait_s is not None
        if wait_s is not None and (known is None or is_scout):
            until = now + wait_s if is_known else now + TRIP_S
            self._known[place] = Known(now + TRIP_S, until, is_refused=True)
        elif wait_s is None and is_scout and known is not None:
            known.ends_at = now + TRIP_S


def _left(meter: Limiter, most: int, now: float) -> int:
    """Return how many more requests would be accepted now."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if meter.wait_s(now, Unit(middle)) <= 0 else (low, middle - 1)
    return low
