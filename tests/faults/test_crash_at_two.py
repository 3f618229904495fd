"""`sealgate serve` before two exchanges, killed with orders in flight: each is in doubt at its own."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

from rig.acts import Act, hold_until, say
from rig.bot import Reply, request
from rig.command import ended_command
from rig.program import BASE
from rig.served import Served, running_served
from rig.upstream import Received, Script, Upstream, running_upstream
from rig.wire import OK, CutError, reply
from sealgate.orders.journal.file import connect

ORDER = b"/v1/trade/order/"
KILLS, BOTS, RECEIPTS = 4, 3, 15  # receipts at each exchange in each life, before it is killed
EXCHANGE = """\
[exchanges.{name}]
base_url = "{url}"
"""
CONFIG = """\
listen.tcp = "127.0.0.1:0"
admin.tcp = "127.0.0.1:0"
admin.unix = "off"
journal.file = "journal.db"
{exchanges}
[keys.both]
exchanges = {names}
api_key = "ak-public-1"
secret = "env:EXCHANGE_SECRET"
"""
Place = tuple[str, str]  # exchange and request id


class Desk:
    """Two exchanges, and one folder in which the gateway runs again and again."""

    def __init__(self, folder: Path, **upstreams: Upstream) -> None:
        self.folder = folder
        self.upstreams = upstreams
        self.configure(*upstreams)

    def configure(self, *names: str) -> None:
        """Write the configuration of some of them."""
        tables = [EXCHANGE.format(name=name, url=self.upstreams[name].base_url) for name in names]
        text = CONFIG.format(exchanges="".join(tables), names=json.dumps(names))
        (self.folder / "sealgate.toml").write_text(text)

    @property
    def environ(self) -> dict[str, str]:
        """The variables of the gateway and of all commands."""
        own = {name: value for name, value in BASE.items() if not name.startswith("SEALGATE_")}
        return {**own, "EXCHANGE_SECRET": "a secret", "SEALGATE_CONFIG": str(self.folder / "sealgate.toml")}

    @asynccontextmanager
    async def served(self) -> AsyncIterator[Served]:
        """Run the gateway."""
        async with running_served(self.environ, self.folder) as served:
            yield served

    async def orders(self, *arguments: str) -> list[dict[str, Any]]:
        """Return what `sealgate orders` lists, or settles."""
        result = await ended_command("orders", "--json", *arguments, environ=self.environ)
        assert result.exit_code == 0, result.output
        listed: list[dict[str, Any]] = json.loads(result.stdout)["orders"]
        return listed

    def receipts(self) -> list[Place]:
        """Return all orders that the exchanges received."""
        return [
            (name, received.target.removeprefix(ORDER).decode())
            for name, upstream in self.upstreams.items()
            for received in upstream.received
            if received.method == b"POST"
        ]

    def states(self) -> dict[Place, str]:
        """Return what the journal has."""
        with closing(connect(self.folder / "journal.db")) as database:
            rows = database.execute("SELECT exchange, request_id, state FROM orders")
            return {(exchange, name): state for exchange, name, state in rows}


@asynccontextmanager
async def two(folder: Path) -> AsyncIterator[Desk]:
    async with running_upstream() as spot, running_upstream() as perp:
        yield Desk(folder, spot=spot, perp=perp)


def order(exchange: str, order_id: str) -> bytes:
    own = (f"X-Gateway-Request-Id: {order_id}".encode(), f"Idempotency-Key: {order_id}".encode())
    return request(b"POST", b"/%b%b%b" % (exchange.encode(), ORDER, order_id.encode()), *own, body=b"{}")


async def kill(served: Served) -> None:
    served.program.tell(signal.SIGKILL)
    assert await served.program.end() == -signal.SIGKILL


async def test_orders_under_way_at_both_are_in_doubt_at_their_exchange(tmp_path: Path) -> None:
    go = asyncio.Event()
    async with two(tmp_path) as desk:
        for upstream in desk.upstreams.values():
            upstream.script = lambda _: hold_until(go, say(OK))
        async with desk.served() as served, served.bot() as one, served.bot() as other:
            await one.send(order("spot", "mine"))
            await other.send(order("perp", "mine"))
            for upstream in desk.upstreams.values():
                await upstream.until_received(1)
            assert await desk.orders() == [], "its gateway lives"
            await kill(served)
        go.set()
        doubts = {doubt["exchange"]: doubt for doubt in await desk.orders()}
        assert doubts.keys() == {"spot", "perp"}
        assert {(doubt["key"], doubt["idempotency_key"]) for doubt in doubts.values()} == {("both", "mine")}
        async with desk.served() as served:
            for name, doubt in doubts.items():
                answer = await served.ask(order(name, "mine"))
                assert (answer.reason, answer.outcome) == ("upstream_broken", "unknown")
                assert answer.text("X-Gateway-Fence-Ms") == str(doubt["fence_ms"])
            status = (await served.status())["journal"]
            assert (status["in_doubt"], status["by_exchange"]) == (2, {"spot": 1, "perp": 1})
            await kill(served)
        # The same request id is at both, and tells one order where the exchange is named.
        assert [one["exchange"] for one in await desk.orders("--exchange", "spot", "--settle", "mine")] == [
            "spot"
        ]
        desk.configure("spot")
        assert [doubt["exchange"] for doubt in await desk.orders()] == ["perp"]
        assert await desk.orders("--exchange", "spot") == []
        assert len(await desk.orders("--exchange", "perp", "--settle-all")) == 1
        assert await desk.orders() == []
        assert sorted(desk.receipts()) == [("perp", "mine"), ("spot", "mine")]


class Life:
    """One run of the gateway, with bots that place orders of the same names at both exchanges."""

    def __init__(self, number: int, desk: Desk, served: Served) -> None:
        self._number = number
        self._desk = desk
        self._served = served
        self.replies: dict[Place, Reply] = {}

    async def live(self) -> None:
        """Trade until so many more orders were received at each, then kill."""
        upstreams = self._desk.upstreams.values()
        received = [upstream.until_received(len(upstream.received) + RECEIPTS) for upstream in upstreams]
        bots = [
            asyncio.ensure_future(self._trade(exchange, bot))
            for exchange in self._desk.upstreams
            for bot in range(BOTS)
        ]
        await asyncio.gather(*received)
        await kill(self._served)
        await asyncio.gather(*bots)

    async def _trade(self, exchange: str, bot_number: int) -> None:
        with suppress(ConnectionError, CutError):
            async with self._served.bot() as bot:
                for name in self._names(bot_number):
                    answer = await bot.ask(order(exchange, name))
                    if answer.is_whole:
                        self.replies[exchange, name] = answer

    def _names(self, bot: int) -> Iterator[str]:
        return (f"{self._number}-{bot}-{number}" for number in range(10**6))


async def test_killed_again_and_again_it_loses_and_doubles_no_order_at_either(tmp_path: Path) -> None:
    replies: dict[Place, Reply] = {}
    async with two(tmp_path) as desk:
        for name, upstream in desk.upstreams.items():
            upstream.script = answer_of(name)
        for number in range(KILLS):
            async with desk.served() as served:
                life = Life(number, desk, served)
                await life.live()
            replies |= life.replies
            receipts, states = desk.receipts(), desk.states()
            assert len(receipts) == len(set(receipts)), "received twice"
            assert set(receipts) <= states.keys(), "received, and not in the journal"
        left = {place for place, state in states.items() if state in ("sent", "unknown")}
        assert {(doubt["exchange"], doubt["request_id"]) for doubt in await desk.orders()} == left
        async with desk.served() as served, served.bot() as bot:
            for exchange, name in {*replies, *left}:
                answer = await bot.ask(order(exchange, name))
                if (exchange, name) in left:
                    assert (answer.outcome, answer.reason) == ("unknown", "upstream_broken")
                else:
                    assert answer.body == replies[exchange, name].body
        assert desk.receipts() == receipts, "sent again"


def answer_of(exchange: str) -> Script:
    """Return what an exchange says: its own name, and the order's."""

    def answer(received: Received) -> Act:
        name = received.target.removeprefix(ORDER)
        return say(reply(b"200 OK", b'{"at": "%b", "id": "%b"}' % (exchange.encode(), name)))

    return answer
