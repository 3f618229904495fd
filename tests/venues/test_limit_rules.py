"""`[limits]` of a venue's file: pools, which requests are theirs, and what mistakes in them say."""

import pytest

from sealgate.venues.limit_rules import Counter, LimitRules, PoolRule
from sealgate.venues.replies import Scope
from sealgate.venues.routes import Lane
from sealgate.venues.venue import Venue, VenueError, read_venue

LEAST = 'name = "mine"\ntitle = "Mine"\nprefix = "/v1"\n[signing]\nmessage = "{method}{target}{body}"\n'
ROUTES = """
[[routes]]
match = ["POST /v1/order", "* /v1/wallet/**", "GET /v1/wallet/coins", "* /v1/stream"]
"""
POOL = '[[limits.pools]]\nname = "a"\n'


def read(limits: str, find: str = "") -> Venue:
    def found(_like: str, _file: str) -> tuple[str, str]:
        return "base.toml", find

    return read_venue("mine.toml", limits if find else LEAST + limits, found)


def limits_of(limits: str) -> LimitRules:
    return read(limits).limits


def test_a_file_without_pools_has_one_that_every_request_passes() -> None:
    assert read("").limits == LimitRules(Scope.KEY, (), (PoolRule("all", Scope.KEY),))
    limits = limits_of(
        '[limits]\nscope = "account"\nknown = ["20/1s"]\n'
        'counters = [{ header = "X-LEFT", counts = "left" }]\n'
    )
    assert limits.pools == (PoolRule("all", Scope.ACCOUNT, known=("20/1s",)),)
    assert [one.pool for one in limits.counters] == ["all"]
    assert limits.pools[0].has_all


@pytest.mark.parametrize("pool", ["", POOL])
def test_how_many_streams_may_be_opened_is_said_beside_the_pools(pool: str) -> None:
    assert limits_of(f'[limits]\nstream_opens = "300/300s"\n{pool}').stream_opens == "300/300s"
    assert limits_of(pool).stream_opens == ""


def test_a_pool_has_what_the_file_says_of_it() -> None:
    limits = limits_of(
        f"""
[limits]
scope = "address"
[[limits.pools]]
name = "weight"
known = ["6000/60s"]
counter = {{ header = "X-USED", window_s = 60 }}
[[limits.pools]]
name = "orders"
scope = "account"
lanes = ["order"]
counts = "requests"
known = ["15/0.1s", "100/10s", "200000/86400s"]
counters = [{{ header = "X-10S", window_s = 10 }}, {{ header = "X-1D", window_s = 86400 }}]
[[limits.pools]]
name = "path"
open = true
per = "route"
[[limits.pools]]
name = "pair"
open = false
per = {{ parameter = "/pair" }}
{ROUTES}"""
    )
    assert limits.pools == (
        PoolRule("weight", Scope.ADDRESS, known=("6000/60s",)),
        PoolRule(
            *("orders", Scope.ACCOUNT, frozenset({Lane.ORDER})),
            counts="requests",
            known=("15/0.1s", "100/10s", "200000/86400s"),
        ),
        PoolRule("path", Scope.ADDRESS, is_open=True, per="route"),
        PoolRule("pair", Scope.ADDRESS, is_signed=True, per_parameter="/pair"),
    )
    assert [one.has_all for one in limits.pools] == [True, False, False, False]
    assert limits.counters == (
        Counter("X-USED", "used", 60.0, 6000.0, "", "", pool="weight"),
        Counter("X-10S", "used", 10.0, 100.0, "", "", pool="orders"),
        Counter("X-1D", "used", 86400.0, 200000.0, "", "", pool="orders"),
    )


@pytest.mark.parametrize(
    ("route", "found"),
    [
        ("POST /v1/order", {("POST", "/order")}),
        ("GET /v1/wallet/coins", {("GET", "/wallet/coins"), ("HEAD", "/wallet/coins")}),
        ("PUT /v1/stream", {("PUT", "/stream")}),
        ("* /v1/order", {("POST", "/order")}),
        ("PUT /v1/wallet/**", {("PUT", "/wallet/**")}),
        (
            "GET /v1/wallet/**",
            {(one, f"/wallet/{end}") for one in ("GET", "HEAD") for end in ("**", "coins")},
        ),
        (
            "* /v1/wallet/**",
            {(one, "/wallet/**") for one in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")}
            | {("GET", "/wallet/coins"), ("HEAD", "/wallet/coins")},
        ),
    ],
)
def test_routes_of_a_pool_are_those_of_the_file(route: str, found: set[tuple[str, str]]) -> None:
    (pool,) = limits_of(f'{POOL}routes = "{route}"\n{ROUTES}').pools
    assert pool.routes == found


def test_a_pool_outside_others_has_what_their_routes_do_not_name() -> None:
    others = '[[limits.pools]]\nname = "rest"\noutside = ["a", "b"]\n'
    b = '[[limits.pools]]\nname = "b"\nroutes = "GET /v1/wallet/**"\n'
    rest, a, b_read = limits_of(f'{others}{POOL}routes = "POST /v1/order"\n{b}{ROUTES}').pools
    assert rest.outside == a.routes | b_read.routes
    assert not rest.has_all
    taken = [("POST", "/order"), ("HEAD", "/wallet/coins"), ("POST", "/stream"), ("POST", "other")]
    assert [[one.takes(*asked) for one in (rest, a, b_read)] for asked in taken] == [
        [False, True, False],
        [False, False, True],
        [True, False, False],
        [True, False, False],
    ]


@pytest.mark.parametrize(
    ("counter", "most"),
    [
        ("window_s = 60", 6000.0),
        ("window_s = 60\nmost = 50", 50.0),
        ('window_s = 60\nmost_header = "Y"', 0.0),
        ('window_s = 60\ncounts = "left"', 0.0),
    ],
)
def test_what_a_counter_counts_up_to_may_be_the_published_limit_of_its_window(
    counter: str, most: float
) -> None:
    known = '[limits]\nknown = ["10/1s", "6000/60s", "9000/60s"]\n'
    (one,) = limits_of(f'{known}[[limits.counters]]\nheader = "X"\n{counter}\n').counters
    assert one.most == most


def test_a_reply_says_which_pool_refused() -> None:
    rule = '[[replies]]\nstatus = [429]\nmeans = "limited"\nkind = "slow"\npool = "{}"\n'
    assert read(POOL + rule.format("a")).replies.judge(429, b"").wait.pools == ("a",)
    assert read(rule.format("all")).replies.judge(429, b"").wait.pools == ("all",)


BASE = LEAST + POOL + '[[limits.pools]]\nname = "b"\n[[replies]]\nstatus = [429]\nkind = "slow"\n'
BASE += 'means = "limited"\npool = "b"\n'
HEAD = 'name = "mine"\nlike = "base"\n'


def test_a_file_that_starts_from_another_adds_pools_or_replaces_them() -> None:
    added = read(HEAD + '["limits+"]\n"pools+" = [{ name = "c" }, { name = "b", known = ["5/1s"] }]', BASE)
    assert [(one.name, one.known) for one in added.limits.pools] == [("c", ()), ("b", ("5/1s",)), ("a", ())]
    assert added.replies.judge(429, b"").wait.pools == ("b",)
    replaced = read(HEAD + '[[limits.pools]]\nname = "c"\n', BASE)
    assert [one.name for one in replaced.limits.pools] == ["c"]
    assert not replaced.replies.judge(429, b"").wait.pools, "the pool of the other file's rule is gone"


def test_a_rule_of_the_file_itself_names_a_pool_that_there_is() -> None:
    rule = '[["replies+"]]\nstatus = [418]\nmeans = "banned"\nkind = "out"\npool = "d"\n'
    with pytest.raises(VenueError, match=r"^mine\.toml:7: pool = 'd' is unknown; it may be a, b$"):
        read(HEAD + rule, BASE)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            '[limits]\nknown = ["1/1s"]\npools = [{ name = "a" }]',
            "7: known is a pool's where there are pools",
        ),
        (
            '[limits]\ncounters = []\npools = [{ name = "a" }]',
            "7: counters is a pool's where there are pools",
        ),
        ("[[limits.pools]]", "6: name is missing"),
        ('[[limits.pools]]\nname = "a|b"', "7: name = 'a|b' is not a name such as orders"),
        (POOL + POOL, "9: 'a' is the name of a pool before it; choose another one"),
        (POOL + 'scope = "user"', "8: scope = 'user' is unknown; it may be key, account, address"),
        (POOL + "lane = []", "8: unknown key lane; did you mean lanes?"),
        (POOL + 'lanes = ["orders"]', "8: 'orders' in lanes is unknown; did you mean order?"),
        (POOL + "open = 1", "8: open must be true or false"),
        (POOL + 'per = "rute"', "8: per = 'rute' is unknown; did you mean route?"),
        (POOL + "per = {}", "8: parameter is missing"),
        (
            POOL + 'per = { parameter = "pair" }',
            "8: parameter = 'pair' is not a JSON pointer such as /symbol",
        ),
        (POOL + 'counts = "request"', "8: counts = 'request' is unknown; did you mean requests?"),
        (
            '[limits]\nstream_opens = "300"',
            "7: stream_opens = '300' is not a limit such as 300/300s",
        ),
        ("[limits]\nstream_opens = 300", "7: stream_opens must be a text"),
        (f'{POOL}stream_opens = "5/1s"', "8: unknown key stream_opens; did you mean"),
        (POOL + 'known = ["20"]', "8: '20' in known is not a limit such as 1200/60s"),
        (POOL + 'known = ["20/0.0s"]', "8: '20/0.0s' in known is not a limit such as 1200/60s"),
        (
            f'{POOL}routes = ["POST /v1/ordr"]{ROUTES}',
            "8: 'POST /v1/ordr' in routes is no route of [[routes]]; did you mean POST /v1/order?",
        ),
        (f'{POOL}routes = ["POST /order"]{ROUTES}', "8: 'POST /order' in routes is no route of [[routes]]; "),
        (f'{POOL}routes = ["* /v1/order/**"]{ROUTES}', "8: '* /v1/order/**' in routes is no route of "),
        (
            f'{POOL}routes = "POST /v1/order"\n[[limits.pools]]\nname = "b"\noutside = "b"{ROUTES}',
            "11: 'b' in outside is no pool with routes; it may be a",
        ),
        (POOL + "counter = { header = 'X' }\ncounters = []", "8: a pool has counter, or counters where "),
        (POOL + "counter = { header = 'X' }", "8: a counter has most, most_header where replies say it, or "),
        (
            POOL + "known = ['5/2s']\ncounter = { header = 'X', window_s = 1 }",
            "9: a counter has most, most_header where replies say it, or known of its window",
        ),
        (POOL + "counter = { header = 'X', per_route = true }", "8: unknown key per_route; "),
        (
            '[[replies]]\nstatus = [429]\nkind = "x"\nmeans = "limited"\npool = "al"',
            "10: pool = 'al' is unknown; did you mean all?",
        ),
        (
            '[[replies]]\nstatus = [429]\nkind = "x"\npool = "all"',
            "9: pool needs means = 'limited', 'banned' or 'firewall'",
        ),
        (
            '[[replies]]\nstatus = [403]\nkind = "x"\nmeans = "firewall"\npool = "all"',
            "10: pool needs means = 'limited' or 'banned': a firewall refuses no pool",
        ),
        (
            '[[replies]]\nstatus = [403]\nkind = "x"\nmeans = "banned"\nscope = "key"\npool = "all"',
            "10: a rule has pool, whose scope [[limits.pools]] says, or scope",
        ),
    ],
)
def test_a_mistake_is_one_line_with_the_nearest_name(text: str, error: str) -> None:
    with pytest.raises(VenueError) as raised:
        read(text)
    assert str(raised.value).startswith(f"mine.toml:{error}")
    assert "\n" not in str(raised.value)


def test_the_pool_of_all_requests_is_one_or_none() -> None:
    one, other, of_orders = (
        PoolRule("a", Scope.KEY),
        PoolRule("b", Scope.ADDRESS),
        PoolRule("c", Scope.KEY, lanes=frozenset({Lane.ORDER})),
    )
    assert LimitRules(Scope.KEY, (), (one, of_orders)).whole is one
    assert LimitRules(Scope.KEY, (), (one, other)).whole is None
    assert LimitRules(Scope.KEY, (), (of_orders,)).whole is None
