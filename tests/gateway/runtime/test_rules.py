"""From the settings to the rules of admission; what the rules then decide is core's."""

from typing import Any

from rig.station import ENVIRON, make_config
from sealgate.core.routes import Lane, Permission
from sealgate.gateway.keys.parts import read_roster
from sealgate.gateway.runtime.rules import build_rules

TOKENS = {**ENVIRON, "T": "token-of-grid"}
PREFIX = {"upstream": {"prefix": "/api"}, "clock": {"path": "/api/time"}}


def rules(**tables: Any) -> Any:
    config = make_config("https://api.example.com", **tables)
    return build_rules(config, read_roster(config, TOKENS))


def test_without_bots_everybody_is_local_and_may_not_use_the_keys_own_routes() -> None:
    found = rules(keys={"alt": {"api_key": "ak-2", "secret": "env:EXCHANGE_SECRET"}})
    assert found.local is not None
    assert (found.local.name, found.local.keys) == ("local", ("main", "alt"))
    assert found.local.may == {Permission.READ, Permission.TRADE}


def test_with_bots_nobody_is() -> None:
    found = rules(bots={"grid": {"token": "env:T"}, "watch": {"uid": 1001}})
    assert found.local is None
    assert [bot.name for bot in found.bots.values()] == ["grid"]
    assert {uid: bot.name for uid, bot in found.users.items()} == {1001: "watch"}
    assert set(found.named) == {"grid", "watch"}
    assert found.bots[next(iter(found.bots))] is found.named["grid"], "there is one of each"


def test_the_bounds_of_the_listener() -> None:
    found = rules(listen={"hosts": ["Gateway.local"], "max_body": "2 KiB"})
    assert found.hosts == {"gateway.local"}
    assert found.max_body == 2048


def test_the_signing_headers_of_another_exchange_are_kept_from_bots() -> None:
    headers = rules(signing={"header_prefix": "X-EX-"}).headers
    assert headers.sort([(b"x_ex_apikey", b"a"), (b"X-Own", b"b")]).passed == b"X-Own: b\r\n"


def test_a_row_of_the_settings_changes_what_it_names_and_no_more() -> None:
    """Its path has the prefix, which the table of routes does not know."""
    found = rules(
        **PREFIX,
        routes=[
            {"match": "POST /api/orders/query", "needs": "read", "lane": "read", "cost": 3},
            {"match": "POST /api/order", "cost": 2},
        ],
    )
    assert found.prefix == "/api"
    query, order, other = (
        found.routes.find("POST", path) for path in ("/orders/query", "/order", "/order/modify")
    )
    assert (query.needs, query.lane, query.cost) == (Permission.READ, Lane.READ, 3.0)
    assert (order.needs, order.lane, order.cost) == (Permission.TRADE, Lane.ORDER, 2.0)
    assert other.cost == 1.0
