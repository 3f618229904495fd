"""`max_notional_per_day` against a plain oracle: random orders, prices, waits, endings and restarts."""

import itertools
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from random import Random  # noqa: TID251 - by a seed that Hypothesis draws

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rig.journals import order
from sealgate.errors import Refusal
from sealgate.http.headers import Head
from sealgate.http.target import parse_target
from sealgate.orders.journal import Order, counts, orders
from sealgate.orders.journal.rows import sent_row, settled_row
from sealgate.orders.journal.schema import SCHEMA
from sealgate.orders.outcome import Conclusion, Ending
from sealgate.orders.policy import Guard, Policy, PolicyMemory, Used
from sealgate.venues.order_terms import OrderShape, PriceShape
from sealgate.venues.routes import RouteRow, RouteTable

DAY_S = 86_400
LONGER_S = 12  # than a day, that an order may count: a part of the day, and the second of the journal
SERVER_S = 1_790_000_000  # the exchange's time at 0
SHAPE = OrderShape(symbol=("s",), size=("q",), price=("p",), side=("b",), buys=frozenset({"buy"}))
ROUTE = RouteTable((RouteRow("POST", "/order", order=SHAPE),)).find("POST", "/order")
TARGET, HEAD = parse_target("/order", ""), Head({}, b"")
EXCHANGES = ("spot", "perp")


@dataclass
class Placed:
    """An order that passed: when it was sent last, how it ended and when."""

    exchange: str
    worth: Fraction
    used: Used
    row: Order
    sent_at: float | None = None
    conclusion: Conclusion | None = None
    ended_at: float = 0.0

    @property
    def counts(self) -> bool:
        """Whether it was sent and not refused, or may still be."""
        return self.conclusion not in (Conclusion.NOT_SENT, Conclusion.REFUSED)

    def is_of_today(self, now: float, longer_s: float = 0.0) -> bool:
        """Whether it is of the last 24 h; one that has not ended is."""
        if self.conclusion is None or self.sent_at is None:
            return True
        latest = max(self.sent_at, self.ended_at) if longer_s else self.sent_at
        return latest > now - DAY_S - longer_s


class Trader:
    """A bot, the gateway's policy and journal, and the oracle: the list of all that ever passed."""

    def __init__(self, random: Random, database: sqlite3.Connection) -> None:
        self.random = random
        self.database = database
        self.limit = Fraction(random.choice(("1000", "0.5", "123456.789")))
        self.prices: dict[str, Fraction] = {}
        self.now = 0.0
        self.started = 0.0  # `now` of this process counts from there
        self.placed: list[Placed] = []
        self.numbers = itertools.count()
        self.refused = 0
        self.start()

    def start(self) -> None:
        """Begin a run of the gateway; of those before only the journal is left."""
        for one in self.placed:
            if one.conclusion is None:
                was_sent = one.sent_at is not None
                one.conclusion = Conclusion.UNKNOWN if was_sent else Conclusion.NOT_SENT
                one.ended_at = self.now
        self.started = self.now
        memory = PolicyMemory()
        memory.remember(counts.passed(self.database))
        limit = Decimal(self.limit.numerator) / Decimal(self.limit.denominator)
        policy = Policy(max_notional_per_day=limit)
        self.guards: dict[str, Guard] = {}
        for name in EXCHANGES:
            memory.date(name, SERVER_S + self.now, 0.0)
            self.guards[name] = memory.guard("grid", (policy,), name, name)
            self.learn(memory, name)
        self.memory = memory

    def learn(self, memory: PolicyMemory, name: str) -> None:
        """Let the gateway read the price of an exchange."""
        if (price := self.prices.get(name)) is not None:
            body = json.dumps({"s": "BTC", "p": str(float(price))}).encode()
            memory.prices[name].learn(("/p", b""), PriceShape(("s",), ("p",)), body, now=self.at)

    @property
    def at(self) -> float:
        """The time as the gateway's process counts it."""
        return self.now - self.started

    def wait(self) -> None:
        """Let time pass: quarters of a second, or hours."""
        self.now += self.random.choice((0.25, 7.5, 9.75, 3600.0, 40_000.25))
        for name in EXCHANGES:  # the price is read again, as none of before the last hour counts
            self.learn(self.memory, name)

    def change_price(self) -> None:
        """Let the market move."""
        name = self.random.choice(EXCHANGES)
        self.prices[name] = Fraction(self.random.choice(("0.5", "100", "2500.75")))
        self.learn(self.memory, name)

    def place(self) -> None:
        """Place an order; the oracle says whether it must pass, must not, or may do either."""
        name, random = self.random.choice(EXCHANGES), self.random
        size, price = (random.choice(("0.001", "0.1", "3", "17.25")) for _ in range(2))
        side, has_price = random.choice(("buy", "sell")), random.random() < 0.7
        body = {"s": "BTC", "q": size, "b": side} | ({"p": price} if has_price else {})
        worth = self.worth(name, Fraction(size), Fraction(price) if has_price else None, side)
        try:
            passed = self.guards[name].admit(ROUTE, TARGET, HEAD, json.dumps(body).encode(), self.at)
        except Refusal as refusal:
            assert "policy.max_notional_per_day: " in refusal.detail  # noqa: PT017 - or it passes
            assert worth is None or self.spent(name, LONGER_S) + worth > self.limit
            self.refused += 1
            return
        assert worth is not None
        assert self.spent(name) + worth <= self.limit
        used = passed.used
        assert used is not None
        number = next(self.numbers)
        row = order(number)._replace(exchange=name, counted=used.orders, notional=str(used.notional))
        self.placed.append(Placed(name, worth, used, row))

    def worth(self, name: str, size: Fraction, price: Fraction | None, side: str) -> Fraction | None:
        """Return size x price: a limit buy's own, else the higher of its own and the market's."""
        if side == "buy" and price is not None:
            return size * price
        if name not in self.prices:
            return None
        return size * max(self.prices[name], price or Fraction(0))

    def spent(self, name: str, longer_s: float = 0.0) -> Fraction:
        """Return what the orders of the last 24 h at an exchange are worth."""
        mine = (one for one in self.placed if one.exchange == name and one.counts)
        return sum((one.worth for one in mine if one.is_of_today(self.now, longer_s)), Fraction(0))

    def send(self) -> None:
        """Send one that waits, or one of those again that were sent."""
        if (one := self.under_way()) is not None:
            one.sent_at = self.now
            one.row = one.row._replace(sent_ms=int((SERVER_S + self.now) * 1000))
            orders.write(self.database, [sent_row(one.row)])

    def end(self) -> None:
        """Let one end."""
        if (one := self.under_way()) is None:
            return
        sent = (Conclusion.DONE, Conclusion.REFUSED, Conclusion.UNKNOWN)
        one.conclusion = Conclusion.NOT_SENT if one.sent_at is None else self.random.choice(sent)
        one.ended_at = self.now
        sent_at = None if one.sent_at is None else one.sent_at - self.started
        is_refused = one.conclusion is Conclusion.REFUSED
        self.guards[one.exchange].usage.ended(one.used, sent_at, is_refused=is_refused)
        if one.sent_at is not None:
            orders.write(self.database, [settled_row(one.row, Ending(one.conclusion, 0), 1)])

    def under_way(self) -> Placed | None:
        """Return an order that has not ended."""
        found = [one for one in self.placed if one.conclusion is None]
        return self.random.choice(found) if found else None


def live(seed: int) -> Iterator[Trader]:
    """Yield the trader after each step of a life."""
    random = Random(seed)
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(SCHEMA)
        trader = Trader(random, database)
        steps = (trader.place, trader.send, trader.end, trader.wait, trader.change_price, trader.start)
        for step in random.choices(steps, weights=(10, 8, 8, 5, 1, 1), k=150):
            step()
            yield trader


@pytest.mark.slow
@settings(max_examples=150)
@given(st.integers(0, 2**64))
def test_never_more_than_the_limit_passes_in_any_day_at_any_exchange(seed: int) -> None:
    for trader in live(seed):
        for name in EXCHANGES:
            assert trader.spent(name) <= trader.limit


def test_many_orders_pass_and_many_do_not() -> None:
    """Else the test above would hold nothing."""
    lives = [list(live(seed))[-1] for seed in range(20)]
    assert sum(len(one.placed) for one in lives) > 200
    assert sum(one.refused for one in lives) > 200
