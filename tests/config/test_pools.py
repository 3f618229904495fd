"""The pools of an exchange: those of its venue's file, and what a configuration says over them."""

from pathlib import Path

import pytest

from sealgate.config import ConfigError, load_config
from sealgate.config.effective import effective
from sealgate.config.load import load_with_sources
from sealgate.config.tree import ExchangeConfig
from sealgate.venues.limit_rules import LimitRules, PoolRule
from sealgate.venues.replies import Scope
from sealgate.venues.routes import Lane

VENUE = """
name = "mine"
title = "Mine"
base_url = "https://api.example.com"
prefix = "/v1"
[signing]
message = "{method}{target}{body}"
[limits]
scope = "account"
[[limits.pools]]
name = "weight"
scope = "address"
known = ["100/60s"]
counters = [{ header = "X-USED", window_s = 60 }, { header = "X-LEFT", counts = "left" }]
[[limits.pools]]
name = "orders"
lanes = ["order"]
known = ["10/10s"]
counter = { header = "X-ORDERS", window_s = 10, most = 9 }
[[limits.pools]]
name = "wallet"
routes = "* /v1/wallet/**"
open = true
per = { parameter = "/coin" }
counts = "requests"
[[limits.pools]]
name = "rest"
outside = "wallet"
[[routes]]
match = ["POST /v1/order", "* /v1/wallet/**", "GET /v1/wallet/{id}"]
"""
KEY = 'venue = "./mine.toml"\n[keys.main]\napi_key = "ak"\nsecret = "env:S"\n'
WEIGHT, ORDERS, WALLET, REST = 0, 1, 2, 3


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(VENUE)
    without = VENUE[: VENUE.index("[[limits.pools]]")] + VENUE[VENUE.index("[[routes]]") :]
    Path("plain.toml").write_text(without.replace("scope", 'known = ["7/1s"]\nscope'))


def one(text: str = "", environ: dict[str, str] | None = None) -> ExchangeConfig:
    Path("sealgate.toml").write_text(KEY + text)
    (exchange,) = load_config(None, environ=environ or {}).served.values()
    return exchange


def test_without_a_word_the_pools_are_the_venues() -> None:
    exchange = one()
    assert exchange.pools == exchange.venue.limits.pools
    assert exchange.limit_rules.counters == exchange.venue.limits.counters
    (pool,) = one().pools[WEIGHT:ORDERS]
    assert (pool.scope, pool.known) == (Scope.ADDRESS, ("100/60s",))


def test_a_venue_without_pools_has_one_with_the_published_limits_that_hold() -> None:
    text = KEY.replace("mine", "plain")
    Path("sealgate.toml").write_text(text)
    assert pools_of() == (PoolRule("all", Scope.ACCOUNT, known=("7/1s",)),)
    Path("sealgate.toml").write_text(f'{text}[limits]\nknown = ["20/s", "600000/50000m"]')
    assert [pool.known for pool in pools_of()] == [("20/1s", "600000/3000000s")]
    Path("sealgate.toml").write_text(f'{text}[limits.pools.all]\nknown = ["30/s"]')
    assert [pool.known for pool in pools_of()] == [("30/1s",)]


def pools_of(name: str = "") -> tuple[PoolRule, ...]:
    served = load_config(None, environ={}).served
    return (served[name] if name else next(iter(served.values()))).pools


def test_a_published_limit_of_all_requests_is_of_the_pool_that_they_all_pass() -> None:
    assert [pool.known for pool in one('[limits]\nknown = ["5/s"]').pools] == [("5/1s",), ("10/10s",), (), ()]
    assert [pool.known for pool in one("[limits]\nknown = []").pools] == [(), ("10/10s",), (), ()]


def test_a_table_changes_what_it_says_of_a_pool() -> None:
    pools = one(
        '[limits.pools.orders]\nknown = ["50/10s", "1000/h"]\n'
        '[limits.pools.wallet]\nscope = "key"\nlanes = "read, cancel"\nroutes = "* /v1/wallet/{id}"\n'
        'open = false\nper = "route"\ncounts = "cost"\naligned = true\n'
    ).pools
    assert [pool.name for pool in pools] == ["weight", "orders", "wallet", "rest"]
    assert pools[ORDERS].known == ("50/10s", "1000/3600s")
    assert pools[ORDERS].lanes == {Lane.ORDER}
    assert pools[WALLET] == PoolRule(
        *("wallet", Scope.KEY, frozenset({Lane.READ, Lane.CANCEL})),
        routes=frozenset({("GET", "/wallet/{id}"), ("HEAD", "/wallet/{id}")}),
        is_signed=True,
        per="route",
        is_aligned=True,
    )


def test_a_new_name_is_one_more_pool() -> None:
    new = one('[limits.pools.bulk]\nscope = "address"\nopen = true\nknown = ["2/s"]').pools[-1]
    assert new == PoolRule("bulk", Scope.ADDRESS, is_open=True, known=("2/1s",))
    assert one('[limits.pools.bulk]\nscope = "key"').pools[-1] == PoolRule("bulk", Scope.KEY)


def test_what_a_counter_counts_up_to_is_the_published_limit_of_its_window() -> None:
    def most(text: str) -> list[float]:
        return [counter.most for counter in one(text).limit_rules.counters]

    assert most("") == [100.0, 0.0, 9.0]
    assert most('[limits]\nknown = ["60/s", "200/m"]\n[limits.pools.orders]\nknown = ["4/10s"]') == [
        200,
        0,
        4,
    ]
    assert most('[limits]\nknown = ["60/2m"]') == [100, 0, 9], "another window says nothing of it"


def test_a_route_of_the_configuration_stays_in_the_pools_of_the_one_whose_place_it_takes() -> None:
    own = (
        '[[routes]]\nmatch = "GET /v1/wallet/{id}/coins"\ncost = 5\n'
        '[[routes]]\nmatch = "POST /v1/a/b"\ncost = 2\n'
    )
    added = one(own).pools[WALLET].routes - one().pools[WALLET].routes
    assert added == {("GET", "/wallet/{id}/coins"), ("HEAD", "/wallet/{id}/coins")}
    assert one(own).pools[REST].outside - one().pools[REST].outside == added
    named = one(f'{own}[limits.pools.wallet]\nroutes = ["POST /v1/a/b"]').pools[WALLET].routes
    assert named == {("POST", "/a/b")}


def test_each_exchange_has_the_common_pools_or_its_own() -> None:
    Path("sealgate.toml").write_text(
        '[limits.pools.orders]\nknown = ["1/s"]\n[exchanges.a]\nvenue = "./mine.toml"\n'
        '[exchanges.b]\nvenue = "./mine.toml"\nbase_url = "https://b.example.com"\n'
        '[exchanges.b.limits.pools.weight]\nknown = ["2/s"]\n'
        '[keys.main]\napi_key = "ak"\nsecret = "env:S"\nexchanges = ["a", "b"]\n'
    )
    assert [pool.known for pool in pools_of("a")] == [("100/60s",), ("1/1s",), (), ()]
    assert [pool.known for pool in pools_of("b")] == [("2/1s",), ("10/10s",), (), ()]


def test_a_variable_sets_a_pool() -> None:
    pools = one(environ={"SEALGATE_LIMITS__POOLS__ORDERS__KNOWN": "5/s, 100/m"}).pools
    assert pools[ORDERS].known == ("5/1s", "100/60s")


def test_it_is_shown_where_a_pools_limits_are_from() -> None:
    Path("sealgate.toml").write_text(f'{KEY}[limits.pools.wallet]\nknown = ["5/s"]\n')
    shown = {
        (row.name, str(row.value), row.source)
        for row in effective(load_with_sources(None, environ={}))
        if row.name == "limits.known" or "pools" in row.name
    }
    assert shown == {
        ("limits.known", "['100/60s']", "venue mine"),
        ("limits.pools.orders.known", "['10/10s']", "venue mine"),
        ("limits.pools.rest.known", "[]", "venue mine"),
        ("limits.pools.wallet.known", "['5/1s']", "sealgate.toml"),
    }


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            '[limits.pools.ordrs]\nknown = ["5/s"]',
            "limits.pools.ordrs: is not a pool of the venue mine; did you mean orders?",
        ),
        (
            '[limits.pools.x]\nknown = ["5/s"]',
            "limits.pools.x: is not a pool of the venue mine; write one of weight, orders, wallet, rest. ",
        ),
        ("[limits.pools.orders]\nlimit = 5", "limits.pools.orders.limit: unknown setting"),
        ("[limits.pools.orders]\nknwon = 5", "limits.pools.orders.knwon: unknown setting; did you mean "),
        (
            '[limits.pools.orders]\nknown = ["5"]',
            "limits.pools.orders.known[0]: is not a limit; write requests per time, as in",
        ),
        (
            '[[limits.pools]]\nname = "orders"',
            "limits.pools: is not a table of tables; write [limits.pools.NAME] for each",
        ),
        ("[limits.pools.'a b']", 'limits.pools."a b": is not the name of a pool; use 1 to 32 of a-z, 0-9, _'),
        (
            '[limits.pools.orders]\nroutes = ["POST /v1/ordre"]',
            "limits.pools.orders.routes[0]: is not a route of the venue mine; did you mean POST /v1/order? ",
        ),
        (
            '[limits.pools.orders]\nroutes = ["everything"]',
            "limits.pools.orders.routes[0]: is not a route of the venue mine; add it to [[routes]]",
        ),
    ],
)
def test_a_mistake_is_one_line_with_its_fix(text: str, error: str) -> None:
    with pytest.raises(ConfigError) as raised:
        one(text)
    assert str(raised.value).startswith(f"sealgate.toml: {error}")
    assert "\n" not in str(raised.value)


def test_a_published_limit_of_all_requests_has_no_place_where_no_pool_has_them_all() -> None:
    Path("mine.toml").write_text(VENUE.replace('name = "weight"', 'name = "weight"\nopen = false'))
    assert one().limits.known == ()
    with pytest.raises(ConfigError) as raised:
        one('[limits]\nknown = ["5/s"]')
    assert str(raised.value) == (
        "sealgate.toml: limits.known: the venue mine has no pool for all requests; write it as known in "
        "[limits.pools.weight], or of one of orders, wallet, rest"
    )


def test_of_several_pools_that_have_all_requests_none_is_meant() -> None:
    rules = LimitRules(Scope.KEY, (), (PoolRule("a", Scope.KEY), PoolRule("b", Scope.ADDRESS)))
    assert rules.whole is None
