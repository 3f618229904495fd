"""Many bots, many orders and every fault at once: what the bots were told must fit what was received.

Each order has an id of its own in its target, and the upstream keeps every receipt. A
failure names its seed; the same seed makes the same choices, if not the same interleaving.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random  # noqa: TID251 - seeded
from typing import Any

import pytest

from rig.bot import Reply, request
from rig.faults import CODES
from rig.history import check_history, violations
from rig.mischief import Mischief, stop
from rig.station import API_KEY, SECRET, Station, running_station
from rig.tls import Authority
from rig.upstream import running_upstream
from rig.wire import let_pass
from sealgate.orders.journal.file import connect

METHODS = (b"POST", b"PUT", b"PATCH", b"DELETE", b"GET")
TARGET = b"/v1/trade/order/"
BOTS, ORDERS_EACH = 16, 22  # some 350 in each run
SETTINGS: Mapping[str, Any] = {
    "upstream": {"total_timeout": 0.25, "connect_timeout": 0.1},
    "limits": {
        "max_wait": 2.0,
        "known": "5000/1s",
    },  # what is learned from made-up refusals would slow it down
}


KINDS = {
    *("weather", "welcome", "unread", "lost", "late", "cut"),
    *("done", "refused", "server error", "pause", "timestamp"),
}


BY_CODE = {"done", "refused", "server error", "pause", "timestamp"}
OUTCOMES = {"done", "refused", "unknown", "not_sent"}


@pytest.fixture(autouse=True)
def _lost_scouts_are_soon_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else most of the time all wait for the reply to one that was lost."""
    monkeypatch.setattr("sealgate.limits.pool.SCOUT_S", 0.1)


@dataclass
class Asked:
    """What bots asked for and were told: by id, the reply to each try."""

    told: dict[str, list[Reply | None]] = field(default_factory=dict)
    reads: set[str] = field(default_factory=set)

    def last_outcomes(self) -> set[str | None]:
        """Return the outcomes with which orders have ended so far."""
        return {tries[-1].outcome for tries in self.told.values() if tries and tries[-1] is not None}


class Trader:
    """A bot that sends orders one after the other, each whatever became of the one before.

    Half of them have an Idempotency-Key; some of those are hung up on and asked for again.
    """

    def __init__(self, station: Station, asked: Asked, name: int, seed: int) -> None:
        self._station = station
        self._asked = asked
        self._name = name
        self._chance = Random(seed * 1000 + name)

    async def trade(self, orders: int, is_enough: Callable[[], bool]) -> None:
        """Place so many orders, and more until it is enough: what an exchange sees is a matter of time."""
        for number in range(10 * orders):
            if number >= orders and is_enough():
                return
            await self._order(METHODS[number % 5], f"{self._name}-{number}")

    async def _order(self, method: bytes, order_id: str) -> None:
        tries = self._asked.told[order_id] = []
        if method == b"GET":
            self._asked.reads.add(order_id)
        fields = [f"X-Gateway-Request-Id: {order_id}".encode()]
        has_key = method != b"GET" and self._chance.random() < 0.5
        if has_key:
            fields.append(f"Idempotency-Key: {order_id}".encode())
        raw = request(method, TARGET + order_id.encode(), *fields, body=b"{}")
        if self._chance.random() < 0.2:
            await self._hang_up_on(raw)
            tries.append(None)
            if not has_key:
                return
        await self._until_answered(raw, tries)

    async def _hang_up_on(self, raw: bytes) -> None:
        async with self._station.bot() as bot:
            await bot.send(raw)
            await let_pass(self._chance.choice((0.0, 0.001, 0.01)))
            bot.hang_up()

    async def _until_answered(self, raw: bytes, tries: list[Reply | None]) -> None:
        while True:
            tries.append(answer := await self._station.ask(raw))
            if answer.reason != "in_flight":
                return
            await let_pass(0.02)


@asynccontextmanager
async def running_mischief(
    seed: int, authority: Authority | None, folder: Path, *, by_codes: bool = False
) -> AsyncIterator[tuple[Station, Mischief]]:
    settings = {**SETTINGS, "journal": {"file": str(folder / "journal.db")}}
    if by_codes:
        (folder / "coded.toml").write_text(CODES)
        settings["venue"] = str(folder / "coded.toml")
    if authority is not None:
        settings["upstream"] = {**SETTINGS["upstream"], "ca_file": authority.write(folder)}
    async with (
        running_upstream(authority.server_context() if authority else None) as upstream,
        running_station(upstream, **settings) as station,
    ):
        yield station, Mischief(upstream, seed, by_codes=by_codes)


async def ask_for_everything(
    station: Station,
    mischief: Mischief,
    seed: int,
    orders: int,
    is_enough: Callable[[Asked], bool] = lambda _asked: True,
) -> Asked:
    """Let each bot place so many orders, and go on until everything that should come has come."""
    asked = Asked()
    weather = asyncio.ensure_future(mischief.weather())
    traders = [Trader(station, asked, name, seed) for name in range(BOTS)]
    try:
        await asyncio.gather(*(trader.trade(orders, lambda: is_enough(asked)) for trader in traders))
    finally:
        await stop(weather)
    await station.until(lambda: station.gateway.status().inflight == 0)
    return asked


def check(asked: Asked, station: Station, mischief: Mischief, seed: int) -> None:
    wrong = violations(mischief.deeds, asked.told, frozenset(asked.reads))
    assert not wrong, f"seed {seed}: " + "\n".join(wrong)
    check_history(station.upstream.received, SECRET, API_KEY)


def journalled(folder: Path) -> set[str]:
    """Return the ids of the orders in the journal."""
    with closing(connect(folder / "journal.db")) as database:
        return {name for (name,) in database.execute("SELECT request_id FROM orders")}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("is_tls", [False, True], ids=["plain", "TLS"])
async def test_what_bots_are_told_fits_what_was_received(
    authority: Authority, tmp_path: Path, seed: int, *, is_tls: bool
) -> None:
    async with running_mischief(seed, authority if is_tls else None, tmp_path) as (station, mischief):
        asked = await ask_for_everything(
            station,
            mischief,
            seed,
            ORDERS_EACH,
            lambda asked: mischief.kinds >= KINDS and asked.last_outcomes() >= OUTCOMES,
        )
        check(asked, station, mischief, seed)
    begun = {name for name, deed in mischief.deeds.items() if deed.begun}
    assert begun - asked.reads <= journalled(tmp_path), f"seed {seed}"
    assert asked.last_outcomes() == OUTCOMES, f"seed {seed}"
    assert mischief.kinds == KINDS, f"seed {seed}"


@pytest.mark.parametrize("seed", [4])
async def test_what_bots_are_told_fits_where_the_exchange_says_it_by_codes(tmp_path: Path, seed: int) -> None:
    """Limited, banned, timestamp, unknown and done stand in the bodies of an HTTP 200, compressed or not."""
    async with running_mischief(seed, None, tmp_path, by_codes=True) as (station, mischief):
        asked = await ask_for_everything(
            station, mischief, seed, ORDERS_EACH, lambda _asked: mischief.kinds_by_code >= BY_CODE
        )
        check(asked, station, mischief, seed)
    assert mischief.kinds_by_code >= BY_CODE, f"seed {seed}"
