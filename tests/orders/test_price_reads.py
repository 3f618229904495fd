"""Which prices the gateway reads itself: each once a minute, while no bot brings what orders need."""

from sealgate.orders.price_reads import PriceReads
from sealgate.orders.prices import Prices
from sealgate.venues.order_terms import PriceShape

SHAPE = PriceShape(("s",), ("p",), None)
ALL, ONE, OTHER = "/all", "/spot?s={symbol}", "/perp?s={symbol}"


def learn(prices: Prices, symbol: str, now: float, target: str = "/bots") -> None:
    prices.learn((target, b""), SHAPE, b'{"s": "%b", "p": 5}' % symbol.encode(), now=now)


def test_at_the_start_and_once_a_minute_where_no_symbol_is_known() -> None:
    reads, prices = PriceReads((ALL, ONE), ()), Prices()
    due = {now: reads.due(prices, float(now)) for now in range(100, 222)}
    assert {now: targets for now, targets in due.items() if targets} == {100: [ALL], 160: [ALL], 220: [ALL]}


def test_a_symbol_whose_price_no_read_of_all_brought_is_asked_about_by_itself_in_order() -> None:
    reads, prices = PriceReads((ALL, ONE, OTHER), ("BTC", "ETH")), Prices()
    assert reads.due(prices, 100.0) == [ALL]
    learn(prices, "BTC", 100.0, ALL)
    assert reads.due(prices, 101.0) == ["/spot?s=ETH"]
    assert reads.due(prices, 102.0) == ["/perp?s=ETH"]
    assert reads.due(prices, 103.0) == []
    assert reads.due(prices, 160.0) == [ALL]


def test_nothing_is_asked_while_bots_read_what_is_needed() -> None:
    reads, prices = PriceReads((ALL, ONE), ("BTC",)), Prices()
    for now in range(100, 300, 50):
        learn(prices, "BTC", now)
        assert reads.due(prices, now + 49.0) == []
    assert reads.due(prices, 310.0) == [ALL]


def test_what_an_order_asked_for_in_vain_is_read_if_its_name_may_stand_in_a_target() -> None:
    reads, prices = PriceReads((ONE,), ()), Prices()
    for symbol in ("XRP", "A&s=B", "A/B", "A B", "\u00e4", "", "X" * 41):
        assert prices.last(symbol, 0.0) is None
    assert reads.due(prices, 1.0) == ["/spot?s=XRP"]


def test_what_is_asked_at_once_is_bounded() -> None:
    reads, prices = PriceReads((ONE,), (f"P{number}" for number in range(100))), Prices()
    for number in range(80):
        prices.last(f"S{number}", 0.0)
    targets = reads.due(prices, 1.0)
    assert (len(targets), targets[0]) == (50, "/spot?s=S79")  # what orders ask for goes first
    assert sum(target.startswith("/spot?s=P") for target in targets) == 25  # and leaves half to policies
