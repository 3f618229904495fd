"""What each call of each exchange needs of a bot: `keys` for what leads out of the account or changes it.

needs.txt has the calls by what they do; what each kind needs is decided here, once. What a bot does all day
ccxt's own methods say, and the paths that hummingbot's connectors have.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from sealgate.errors import Refusal
from sealgate.http.headers import Head, HeaderRules
from sealgate.keys.bot import Bot
from sealgate.request.admission import Rules, authorise, check_body
from sealgate.venues.routes import Permission
from venues.calls import GONE
from venues.calls import VENUES as OF_CCXT
from venues.pages import ROOT
from venues.through import (
    HERE,
    OF_ANOTHER_FILE,
    Call,
    Case,
    body_of,
    family,
    named,
    table_of,
    target_of,
)

KINDS = {Permission.KEYS: "WSPIKBAN", Permission.TRADE: "OECDXT", Permission.READ: "R"}
NEEDED = {kind: needed for needed, kinds in KINDS.items() for kind in kinds}


class Listed(NamedTuple):
    """A line of a list of calls."""

    venue: str
    kind: str
    method: str
    path: str


def listed_in(name: str) -> list[Listed]:
    return list(_lines(HERE / name))


def _lines(file: Path) -> Iterator[Listed]:
    venue = ""
    for line in file.read_text("utf-8").splitlines():
        if line.startswith("["):
            venue = line.strip("[]")
        elif line and not line.startswith("#"):
            *kind, method, path = line.split()
            yield Listed(venue, "".join(kind), method, path)


CALLS = listed_in("needs.txt")


def needs(venue: str, method: str, path: str) -> Permission:
    """Return what a call needs, with some value in the place of each {}."""
    spelled = re.sub(r"\{\w*\}", "x1", path)
    return table_of(venue).find(method, spelled.removeprefix(named(venue).prefix)).needs


def wrong(calls: list[Listed]) -> list[tuple[Listed, Permission]]:
    """Return the calls that need another permission than their kind does, with that."""
    found = [(call, needs(call.venue, call.method, call.path)) for call in calls]
    return [(call, needed) for call, needed in found if needed is not NEEDED[call.kind]]


def of(needed: Permission) -> list[Listed]:
    return [call for call in CALLS if NEEDED[call.kind] is needed]


def test_what_leads_out_of_an_account_or_changes_it_needs_keys() -> None:
    outward = of(Permission.KEYS)
    assert len(outward) > 500
    assert wrong(outward) == []


def test_what_stays_within_the_account_needs_trade() -> None:
    trading = of(Permission.TRADE)
    assert len(trading) > 100
    assert wrong(trading) == []


def test_what_only_reads_needs_read_by_whatever_method() -> None:
    reads = of(Permission.READ)
    assert len(reads) > 100
    assert wrong(reads) == []


def known_to_ccxt(name: str, every_call: dict[str, list[Call]]) -> list[Call]:
    others = OF_ANOTHER_FILE.get(name, ("\0",))
    return [call for call in every_call.get(name, ()) if not call.path.startswith(others)]


def test_ccxt_knows_thousands_of_calls(every_call: dict[str, list[Call]]) -> None:
    assert sum(len(known_to_ccxt(name, every_call)) for name in every_call) > 7000


@pytest.mark.parametrize("name", OF_CCXT)
def test_of_all_that_ccxt_knows_nothing_else_needs_keys(name: str, every_call: dict[str, list[Call]]) -> None:
    names = (name, family(name))
    outward = [(call.method, _pattern(call.path)) for call in of(Permission.KEYS) if call.venue in names]
    assert [
        call
        for call in known_to_ccxt(name, every_call)
        if any(by == call.method and path.fullmatch(call.path.rstrip("/")) for by, path in outward)
        != (needs(name, call.method, call.path) is Permission.KEYS)
    ] == []


def _pattern(path: str) -> "re.Pattern[str]":
    return re.compile(re.sub(r"\\\{\w*\\\}", "[^/]+", re.escape(path)))


# Where not each GET is a read: orders are sent by GET, and by which method one comes may not matter.
_NO_READS = {"deribit", "kraken"}


def test_a_get_that_ccxt_knows_is_a_read_but_for_these(every_call: dict[str, list[Call]]) -> None:
    gets = {
        (family(name), call.path)
        for name, calls in every_call.items()
        for call in calls
        if call.method == "GET" and family(name) not in _NO_READS
    }
    assert sorted(get for get in gets if needs(get[0], "GET", get[1]) is Permission.TRADE) == [
        ("bingx", "/openApi/api/v3/get/asset/transfer"),
        ("bingx", "/openApi/swap/v1/trade/batchCancelReplace"),
        ("okx", "/api/v5/account/set-auto-repay"),
        ("okx", "/api/v5/account/spot-manual-borrow-repay"),
    ]


TRADER = Bot("trader", ("main",), frozenset({Permission.READ, Permission.TRADE}))


def rules_of(name: str) -> Rules:
    return Rules(
        prefix=named(name).prefix,
        hosts=frozenset(),
        bots={},
        local=None,
        routes=table_of(name),
        headers=HeaderRules(named(name).own_headers),
        max_body=1 << 20,
    )


def is_for_traders(venue: str, request: Case) -> bool:
    """Ask whether a bot that may read and trade may send a request."""
    kept = {name.lower().encode(): value.encode() for name, value in (request["headers"] or {}).items()}
    try:
        target = target_of(request["url"])
        ticket = authorise(TRADER, request["method"], target, Head(kept, b""), rules_of(venue))
        if ticket.checks is not None and ticket.checks.trade_if is not None:
            check_body(ticket, ticket.checks.trade_if, body_of(request))
    except Refusal as refused:
        if refused.slug != "bot_forbidden":
            raise
        return False
    return True


def is_here(venue: str, request: Case) -> bool:
    """Ask whether a request is to the API of the venue's file, and has a path (two of ccxt's have not)."""
    path = urlsplit(request["url"]).path
    is_path = "{" not in path and "//" not in path
    is_of_file = path.startswith(f"{named(venue).prefix}/")
    return is_path and is_of_file and not path.startswith(OF_ANOTHER_FILE.get(venue, ("\0",)))


def asked_all_day(name: str, asked_by_ccxt: dict[str, list[Case]]) -> list[Case]:
    """Return what ccxt's methods send to a venue, but for transfers."""
    asked = asked_by_ccxt.get(name, ())
    return [one for one in asked if one["asked"][0] != "transfer" and is_here(name, one)]


def test_ccxts_own_methods_trade_at_each_venue(asked_by_ccxt: dict[str, list[Case]]) -> None:
    asked = {name: asked_all_day(name, asked_by_ccxt) for name in asked_by_ccxt}
    trading = {name for name in asked if any(one["asked"][0] == "create_order" for one in asked[name])}
    no_orders = {"binance-options", "alpaca-data"}  # no option is asked for, and of data there is no order
    assert trading == OF_CCXT.keys() - GONE - no_orders
    assert sum(map(len, asked.values())) > 3000


@pytest.mark.parametrize("name", OF_CCXT)
def test_what_a_bot_on_ccxt_does_all_day_needs_no_more_than_trade(
    name: str, asked_by_ccxt: dict[str, list[Case]]
) -> None:
    asked = asked_all_day(name, asked_by_ccxt)
    assert [one for one in asked if not is_for_traders(name, one)] == []


def test_what_hummingbot_sends_needs_no_more_than_trade() -> None:
    calls = listed_in("hummingbot.txt")
    assert len(calls) > 150
    assert [call for call in calls if needs(call.venue, call.method, call.path) is Permission.KEYS] == []


PAGE = (ROOT / "docs" / "permissions.md").read_text("utf-8")


def test_ccxts_transfers_work_for_bots_that_trade_but_where_the_page_says_so(
    asked_by_ccxt: dict[str, list[Case]],
) -> None:
    moved = [
        (name, request)
        for name, requests in asked_by_ccxt.items()
        for request in requests
        if request["asked"][0] == "transfer"
    ]
    assert len({name for name, _ in moved}) > 25
    [table] = re.findall(
        r"^\| venue \| what of `transfer\(\)` needs `keys` \|\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE
    )
    said = {name for row in table.splitlines() for name in re.findall(r"`([\w-]+)`", row.split("|")[1])}
    assert {family(name) for name, request in moved if not is_for_traders(name, request)} == said


@pytest.mark.parametrize(
    ("venue", "path", "within", "out"),
    [
        (
            "okx",
            "/api/v5/asset/transfer",
            [
                '{"ccy":"BTC","amt":"1","from":"6","to":"18"}',
                '{"type":"0","subAcct":"","amt":"1"}',
                '{"type":0}',
            ],
            [
                '{"type":"1","subAcct":"a"}',
                '{"type":"4"}',
                '{"type":"0","subAcct":"a"}',
                '{"type":"0","type":"2"}',
            ],
        ),
        (
            "kucoin",
            "/api/v3/accounts/universal-transfer",
            ['{"type":"INTERNAL","amount":"1"}'],
            [
                '{"amount":"1"}',
                '{"type":"PARENT_TO_SUB","toUserId":"7"}',
                '{"type":"INTERNAL","toUserId":"7"}',
                "",
            ],
        ),
        (
            "kucoin",
            "/api/ua/v1/account/transfer",
            ['{"type":"0"}', '{"type":0}'],
            ['{"type":"1"}', "{}", '{"type":"0","toUid":"7"}'],
        ),
        (
            "bitfinex",
            "/v2/auth/w/transfer",
            ['{"from":"exchange","to":"margin","currency":"UST","amount":"1"}'],
            ['{"email_dst":"a@b.c","amount":"1"}', '{"user_id_dst":7,"amount":"1"}', '{"Email_dst":"a@b.c"}'],
        ),
    ],
)
def test_a_call_that_serves_both_kinds_goes_by_its_body(
    venue: str, path: str, within: list[str], out: list[str]
) -> None:
    def is_let(body: str) -> bool:
        headers = {"Content-Type": "application/json"}
        url = f"https://exchange.example{path}"
        return is_for_traders(venue, {"url": url, "method": "POST", "headers": headers, "body": body})

    assert [body for body in within if not is_let(body)] == []
    assert [body for body in out if is_let(body)] == []


@pytest.mark.parametrize(
    ("parameters", "is_let"),
    [
        ("asset=USDT&quantity=1&fromAccountType=MAIN&toAccountType=FUTURES", True),
        ("asset=USDT&quantity=1&fromUid=7", False),
        ("asset=USDT&quantity=1&toUid=7", False),
        ("asset=USDT&quantity=1&toUid=&toUid=7", False),
    ],
)
def test_so_does_one_with_a_form_or_a_query(parameters: str, is_let: bool) -> None:
    url = "https://exchange.example/api/v1/subAccount/transfer"
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    for request in (
        {"url": f"{url}?{parameters}", "headers": {}, "body": ""},
        {"url": url, "headers": form, "body": parameters},
    ):
        assert is_for_traders("toobit", {"method": "POST", **request}) is is_let


@pytest.mark.parametrize(
    ("venue", "path", "name", "within", "out"),
    [
        (
            "indodax",
            "/tapi",
            "method",
            ["getInfo", "trade", "cancelOrder", "withdrawFee"],
            ["withdrawCoin", "createVoucher", "", "trade&method=withdrawCoin", "withdraw%43oin", "Trade"],
        ),
        (
            "mercado",
            "/tapi/v3/",
            "tapi_method",
            ["list_orders", "place_buy_order", "place_market_sell_order", "cancel_order"],
            ["withdraw_coin", "", "list_orders&tapi_method=withdraw_coin", "list_orders&Tapi_Method=x"],
        ),
        (
            "zaif",
            "/tapi",
            "method",
            ["get_info", "get_info2", "trade", "cancel_order", "withdraw_history"],
            ["withdraw", "get_personal_info", "", "trade&method=withdraw", "Trade", "trade_historyx"],
        ),
    ],
)
def test_where_one_path_serves_all_calls_the_form_says_which_lead_out(
    venue: str, path: str, name: str, within: list[str], out: list[str]
) -> None:
    def is_let(called: str, query: str = "") -> bool:
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        url = f"https://exchange.example{path}{query}"
        body = f"{name}={called}&pair=btc_idr"
        return is_for_traders(venue, {"url": url, "method": "POST", "headers": headers, "body": body})

    assert [called for called in within if not is_let(called)] == []
    assert [called for called in out if is_let(called)] == []
    assert not is_let(within[0], f"?{name}={out[0]}")
