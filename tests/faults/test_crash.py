"""`sealgate serve` killed under load: what was received is in the journal, and no key is used twice."""

import asyncio
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rig.acts import Act, hold_until, say
from rig.bot import Bot, Reply, request
from rig.served import Served, environ, orders_in_doubt, running_served
from rig.upstream import Received, Upstream, running_upstream
from rig.wire import OK, CutError, reply
from sealgate.orders.journal.file import connect

KILLS, BOTS = 10, 8
RECEIPTS = 40  # in each life, before it is killed
TARGET = b"/v1/trade/order/"
SETTLED = {"done", "refused", "not_sent"}


def order(order_id: str) -> bytes:
    own = (f"X-Gateway-Request-Id: {order_id}".encode(), f"Idempotency-Key: {order_id}".encode())
    return request(b"POST", TARGET + order_id.encode(), *own, body=b"{}")


def id_of(received: Received) -> str:
    return received.target.removeprefix(TARGET).decode()


@dataclass
class Told:
    """What bots know: the whole replies to orders, and the orders whose reply never came."""

    replies: dict[str, Reply] = field(default_factory=dict)
    unanswered: set[str] = field(default_factory=set)


class Life:
    """One run of the gateway, its bots, and its violent end."""

    def __init__(self, number: int, served: Served, upstream: Upstream) -> None:
        self._number = number
        self._served = served
        self._upstream = upstream
        self.told = Told()

    async def live(self, receipts: int) -> None:
        """Trade until so many more orders were received, then kill."""
        wanted = len(self._upstream.received) + receipts
        bots = [asyncio.ensure_future(self._trade(name)) for name in range(BOTS)]
        await self._upstream.until_received(wanted)
        self._served.program.tell(signal.SIGKILL)
        assert await self._served.program.end() == -signal.SIGKILL
        await asyncio.gather(*bots)

    async def _trade(self, name: int) -> None:
        with suppress(ConnectionError, CutError):
            async with self._served.bot() as bot:
                for number in range(10**6):
                    await self._order(bot, f"{self._number}-{name}-{number}")

    async def _order(self, bot: Bot, order_id: str) -> None:
        self.told.unanswered.add(order_id)
        answer = await bot.ask(order(order_id))
        if answer.is_whole:
            self.told.replies[order_id] = answer
            self.told.unanswered.discard(order_id)


def answer_with_its_target(received: Received) -> Act:
    return say(reply(b"200 OK", b'{"id":"%b","key":"kept"}' % id_of(received).encode()))


def states(journal: Path) -> dict[str, str]:
    with closing(connect(journal)) as database:
        return dict(database.execute("SELECT request_id, state FROM orders").fetchall())


@asynccontextmanager
async def after_the_lives(folder: Path, upstream: Upstream) -> AsyncIterator[tuple[Mapping[str, str], Told]]:
    """Kill the gateway again and again on one journal; yield its settings and what the bots know."""
    settings = environ(upstream.base_url, folder / "journal.db")
    told = Told()
    for number in range(KILLS):
        async with running_served(settings, folder) as served:
            life = Life(number, served, upstream)
            await life.live(RECEIPTS)
        told.replies.update(life.told.replies)
        told.unanswered |= life.told.unanswered
        check_the_journal(folder / "journal.db", upstream, told)
    yield settings, told


def check_the_journal(journal: Path, upstream: Upstream, told: Told) -> None:
    """Check that it has all that was received, and settled nothing else."""
    known = states(journal)
    receipts = [id_of(received) for received in upstream.received]
    assert len(receipts) == len(set(receipts)), "received twice"
    assert set(receipts) <= known.keys(), "received, and not in the journal"
    assert told.replies.keys() <= set(receipts), "answered, and never received"
    for name in known.keys() - set(receipts):
        assert known[name] not in SETTLED - {"not_sent"}, "settled, and never received"


@pytest.fixture
async def upstream() -> AsyncIterator[Upstream]:
    async with running_upstream() as running:
        running.script = answer_with_its_target
        yield running


async def test_killed_ten_times_it_loses_no_order(upstream: Upstream, tmp_path: Path) -> None:
    """Ten lives; then every key that was ever used is asked for again."""
    journal = tmp_path / "journal.db"
    async with after_the_lives(tmp_path, upstream) as (settings, told):
        receipts = {id_of(received) for received in upstream.received}
        assert len(receipts) >= KILLS * RECEIPTS
        left = {name for name, state in states(journal).items() if state not in SETTLED}
        doubts = await orders_in_doubt(settings)
        assert {doubt["request_id"] for doubt in doubts} == left
        assert receipts <= left | told.replies.keys() | settled(journal)
        async with running_served(settings, tmp_path) as served:
            status = await served.status()
            assert status["journal"]["in_doubt"] == len(left)
            await check_the_keys(served, told, left)
        later = {
            id_of(received) for received in upstream.received[len(receipts) :] if received.method != b"GET"
        }
        assert later <= told.unanswered - left


def settled(journal: Path) -> set[str]:
    return {name for name, state in states(journal).items() if state in SETTLED}


async def check_the_keys(served: Served, told: Told, left: set[str]) -> None:
    """Ask with every key again: what was answered is answered so again, what is in doubt is not sent."""
    async with served.bot() as bot:
        for name in (*told.replies, *told.unanswered):
            answer = await bot.ask(order(name))
            if name in left:
                assert (answer.outcome, answer.reason) == ("unknown", "upstream_broken")
                assert answer.text("X-Gateway-Fence-Ms") != "0"
            elif name in told.replies:
                # The end of a reply is written a moment after it was passed on.
                assert answer.body == told.replies[name].body
                assert answer.outcome == "done"


async def test_an_order_under_way_is_in_doubt_afterwards(upstream: Upstream, tmp_path: Path) -> None:
    go = asyncio.Event()
    upstream.script = lambda _: hold_until(go, say(OK))
    settings = environ(upstream.base_url, tmp_path / "journal.db")
    async with running_served(settings, tmp_path) as served, served.bot() as bot:
        await bot.send(order("mine"))
        await upstream.until_received(1)
        assert await orders_in_doubt(settings) == [], "its gateway lives"
        served.program.tell(signal.SIGKILL)
        await served.program.end()
    go.set()
    (doubt,) = await orders_in_doubt(settings)
    assert (doubt["request_id"], doubt["idempotency_key"]) == ("mine", "mine")
    assert doubt["fence_ms"] > doubt["timestamp_ms"]
    async with running_served(settings, tmp_path) as served:
        answer = await served.ask(order("mine"))
        assert (answer.reason, answer.outcome) == ("upstream_broken", "unknown")
        assert answer.text("X-Gateway-Fence-Ms") == str(doubt["fence_ms"])
        other = await served.ask(request(b"POST", TARGET + b"other", b"Idempotency-Key: mine", body=b"{}"))
        assert (other.status, other.reason) == (422, "key_reused")
    assert len(upstream.received) == 1


async def test_a_look_at_the_orders_costs_the_running_gateway_nothing(
    upstream: Upstream, tmp_path: Path
) -> None:
    """SQLite's locks are the process's; who loses them loses the log, too, to the next who closes."""
    settings = environ(upstream.base_url, tmp_path / "journal.db")
    async with running_served(settings, tmp_path) as served:
        assert await orders_in_doubt(settings) == []
        assert (tmp_path / "journal.db-wal").exists()
        first = await served.ask(order("mine"))
        served.program.tell(signal.SIGKILL)
        await served.program.end()
    async with running_served(settings, tmp_path) as served:
        second = await served.ask(order("mine"))
        assert first.status == 200
        assert second.reason in (None, "upstream_broken"), "its ending may have come too late for the journal"
        await orders_in_doubt(settings)
        served.program.tell(signal.SIGTERM)
        assert await served.program.end() == 0
    async with running_served(settings, tmp_path) as served:
        assert (await served.ask(order("other"))).status == 200
    assert upstream.receipts(TARGET + b"mine") == 1
