"""What `check` says of a bot's policy: a sentence, and the routes that it closes."""

import re
from pathlib import Path
from typing import Any

import pytest

from sealgate.config.load import config_of
from sealgate.config.venues import built_in_venue, venue_source
from sealgate.diagnose.local import look_at_policies
from sealgate.machine.findings import Finding, Level

UNNAMED = "all trading routes that the venue's file does not name"
NO_ORDER = "no order can pass: the file of"


def lines(venue: str, policy: dict[str, Any], may: tuple[str, ...] = ("read", "trade")) -> list[Finding]:
    """Return the two lines of a policy at a venue."""
    key = {"api_key": "ak-public-1", "secret": "env:SECRET"}
    if venue in ("okx", "kucoin"):
        key["passphrase"] = "env:PASSPHRASE"
    bots = {"grid": {"token": "env:TOKEN", "may": list(may), "policy": policy}}
    tree: dict[str, object] = {
        "venue": venue,
        "base_url": "https://exchange.example",
        "keys": {"main": key},
        "bots": bots,
    }
    config = config_of(tree)
    return list(look_at_policies(config, config.served.values()))


@pytest.mark.parametrize(
    ("venue", "policy", "level", "says", "closes"),
    [
        (
            *("service", {"symbols": ["BTC", "ETH"], "max_size": {"BTC": "0.5", "ETH": "10"}}, Level.OK),
            "grid may send orders in BTC and ETH, of at most 0.5 BTC and 10 ETH",
            f"closes POST /v1/trade/order/modify (symbols), {UNNAMED}",
        ),
        ("service", {"max_orders_per_day": 5}, Level.OK, "grid may send orders", f"closes {UNNAMED}"),
        (
            *("okx", {"max_notional": "9"}, Level.FAIL),
            f"{NO_ORDER} okx does not say what max_notional could be judged by",
            "closes ",
        ),
        (
            *("okx", {"reduce_only": True, "observe": True}, Level.WARN),
            "(observe); no order would pass: the file of",
            "would close ",
        ),
        (
            *("kucoin", {"max_orders_per_day": 5}, Level.FAIL),
            f"{NO_ORDER} kucoin does not say how orders are read",
            "closes ",
        ),
        (
            *("okx", {"max_notional_per_day": "9"}, Level.FAIL),
            f"{NO_ORDER} okx does not say what max_notional_per_day could be judged by",
            "closes ",
        ),
        (
            *("kraken", {"max_notional": "9"}, Level.WARN),
            "only buys with a limit can pass: the file of kraken names no",
            "closes ",
        ),
        (
            *("bybit", {"max_notional": "9"}, Level.OK),
            "grid may send orders in any symbol, worth at most 9",
            "closes ",
        ),
    ],
)
def test_what_a_bot_may_order_and_what_that_closes(
    venue: str, policy: dict[str, Any], level: Level, says: str, closes: str
) -> None:
    orders, routes = lines(venue, policy)
    assert (orders.area, orders.level, routes.area) == ("bots.grid.policy", level, "bots.grid.policy")
    assert says in orders.text
    assert routes.text.startswith(closes)
    assert (routes.level is Level.WARN) is bool(routes.fix) is (routes.text != f"closes {UNNAMED}")


def test_what_a_bot_may_not_do_anyway_is_nothing_that_its_policy_closes() -> None:
    policy = {"symbols": ["BTCUSDT"]}
    withdrawal = "POST /v5/asset/withdraw/create"
    assert withdrawal not in lines("bybit", policy)[1].text
    routes = lines("bybit", policy, ("read", "trade", "keys"))[1]
    assert routes.level is Level.WARN
    assert withdrawal in routes.text


def test_policies_of_several_exchanges_say_where_they_hold() -> None:
    key = {"api_key": "ak-public-1", "secret": "env:SECRET"}
    own = {"perp": {"max_notional_per_day": "50000"}}
    bots = {
        "grid": {"token": "env:A", "keys": ["main", "swap"], "policy": {"symbols": ["BTC"]}, "policies": own},
        "cash": {"token": "env:B", "key": "main", "policy": {"max_orders_per_day": 5}},
    }
    tree: dict[str, object] = {
        "exchanges": {"spot": {"base_url": "https://a.example"}, "perp": {"base_url": "https://b.example"}},
        "keys": {"main": {**key, "exchange": "spot"}, "swap": {**key, "exchange": "perp"}},
        "bots": bots,
    }
    config = config_of(tree)
    found = [(one.exchange, one.area, one.text) for one in look_at_policies(config, config.served.values())]
    worth = "may send orders in any symbol, together worth at most 50000 a day"
    prices = "for all but limit buys, the gateway reads prices: GET /v1/trade/symbols/list"
    assert found[::2] == [
        ("spot", "bots.grid.policy", "grid may send orders in BTC"),
        ("spot", "bots.cash.policy", "cash may send orders in any symbol, at most 5 a day"),
        ("perp", "bots.grid.policy", "grid may send orders in BTC"),
        ("perp", "bots.grid.policies.perp", f"grid {worth}; {prices}"),
    ]
    assert [(exchange, text.split()[0]) for exchange, _, text in found[1::2]] == [
        *[("spot", "closes")] * 2,
        *[("perp", "closes")] * 2,
    ]


def test_a_policy_with_max_notional_says_what_is_read_for_it(tmp_path: Path) -> None:
    orders, _ = lines("bybit", {"max_notional": "100"})
    assert (
        "for all but limit buys, the gateway reads prices: GET /v5/market/tickers?category=spot"
        in orders.text
    )
    source = venue_source(built_in_venue("bybit"))
    own = re.sub(r"\nprices = \[ .*?\n\]", "", source, flags=re.DOTALL)
    assert own != source
    (tmp_path / "own.toml").write_text(own)
    orders, _ = lines(str(tmp_path / "own.toml"), {"max_notional": "100"})
    assert orders.text.endswith("for all but limit buys, a bot must have read GET /v5/market/tickers")
