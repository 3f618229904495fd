"""One moment as the page, the stream and `sealgate top` show it."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rig.fences import ROOT
from rig.key_pools import only, pool
from rig.open_streams import stream
from rig.outcome import ANSWERED, changed
from rig.verdicts import upstream_error, verdict
from sealgate.errors import REASONS
from sealgate.exchange.clock import ClockStatus
from sealgate.limits.status import LimitStatus
from sealgate.observe.picture import TICK_S, Picture
from sealgate.observe.pools import KeyPool
from sealgate.observe.recent import Recent
from sealgate.observe.status import (
    ExchangeStatus,
    KeyStatus,
    PolicyStatus,
    State,
    Status,
    halt_status,
    state,
)
from sealgate.orders.doubts import JournalStatus
from sealgate.orders.halts import Halt, Halts, Scope
from sealgate.orders.outcome import Conclusion, Outcome
from sealgate.streams.tally import StreamsStatus
from sealgate.venues.routes import Lane

SECOND = LimitStatus(
    20.0, 1.0, 0.5, 3, is_foreign_use=False, words="about 20 per 1 s", low=20.0, high=20.0, next_step=""
)
MINUTE = LimitStatus(
    1200.0,
    60.0,
    0.8,
    1,
    is_foreign_use=True,
    words="about 1200 per 1 min",
    low=1200.0,
    high=1200.0,
    next_step="",
)
KEY = KeyStatus("main", "spot", 0.0, {"order": 0}, {}, only(SECOND, MINUTE))
SPOT = ExchangeStatus(
    "spot",
    "service",
    "https://api.example.com",
    ("http://127.0.0.1:8787",),
    (),
    ClockStatus(-0.25, 0.002, 3.0, 0, 0, None),
    (KEY,),
)
STATUS = Status(
    "1.0",
    60.0,
    is_draining=False,
    inflight=0,
    connections=0,
    exchanges=(SPOT,),
    journal=JournalStatus(0, (), None, is_refusing=False),
)


def of_exchange(**changes: Any) -> Status:
    """Return a status of one exchange that differs so."""
    return replace(STATUS, exchanges=(replace(SPOT, **changes),))


SENT = changed(ANSWERED, attempts=1, upstream_s=0.020, total_s=0.021)
NOW, WALL = 500.0, 1_790_000_000.0


def recent(*outcomes: Outcome, at: float = NOW, ticks: int = 1) -> Recent:
    made = Recent()
    made.take(outcomes, at)
    for _ in range(ticks):
        made.turn()
    return made


def picture(**parts: Any) -> Picture:
    usual: dict[str, Any] = {
        "status": STATUS,
        "recent": recent(),
        "weights": {},
        "now": NOW,
        "wall": WALL,
        "tasks": lambda: 7,
    }
    return Picture(**usual | parts)


def key_of(shown: Picture) -> dict[str, Any]:
    key: dict[str, Any] = shown.document()["keys"][0]
    return key


def test_rates_are_those_of_the_ticks_that_ended() -> None:
    shown = picture(recent=recent(SENT, changed(SENT, attempts=2), ticks=2))
    assert shown.document()["requests_per_s"] == 2 / (2 * TICK_S)
    assert key_of(shown)["sent_per_s"] == 3 / (2 * TICK_S)


def test_each_bot_with_its_share_and_what_is_due_to_it() -> None:
    """A bot that only waits has its part, too; one of another key has not."""
    key = replace(KEY, waiting={"order": 4}, waiting_by_bot={"watch": 4})
    sent = (changed(SENT, attempts=3), changed(SENT, key="alt", bot="other"))
    shown = picture(
        status=of_exchange(keys=(key,)),
        recent=recent(*sent),
        weights={"grid": 1.0, "watch": 3.0, "idle": 1.0},
    )
    assert key_of(shown)["bots"] == [
        {"name": "grid", "per_s": 6.0, "share": 1.0, "due": 0.25, "waiting": 0},
        {"name": "watch", "per_s": 0.0, "share": 0.0, "due": 0.75, "waiting": 4},
    ]
    assert shown.document()["idle_bots"] == ["idle"]


def test_a_bot_that_is_configured_no_more_weighs_as_most_do() -> None:
    shown = picture(recent=recent(SENT, changed(SENT, bot="gone")), weights={"grid": 3.0})
    assert [bot["due"] for bot in key_of(shown)["bots"]] == [0.25, 0.75]
    assert [bot["name"] for bot in key_of(shown)["bots"]] == ["gone", "grid"]


def test_the_limit_that_is_nearest_to_being_full() -> None:
    assert KEY.fullest == (KEY.pools[0], MINUTE)
    assert replace(KEY, pools=only()).fullest is None
    assert key_of(picture())["used"] == 960.0


def test_without_a_limit_there_is_no_height() -> None:
    key = replace(KEY, pools=only(), pause_s=1.234)
    shown = picture(status=of_exchange(keys=(key,)))
    assert key_of(shown)["next_429"]["words"] == "paused for 1.2 s more"
    assert shown.point({})["exchanges"]["spot"]["keys"] == {"main": [None, None, 1.23, 0.0]}


def down(kind: str = "lost", detail: str = "the reply was cut off") -> Outcome:
    met = tuple(upstream_error(kind, NOW - ago) for ago in (30.0, 20.0, 10.0, 1.0))
    return changed(SENT, reason="upstream_broken", detail=detail, attempts=4, upstream_errors=met)


def test_an_exchange_that_gives_no_answer() -> None:
    shown = picture(recent=recent(down())).document()
    assert shown["failing"] == {
        "exchange": "spot",
        "kind": "lost",
        "since_ms": (WALL - 30) * 1000,
        "attempts": 4,
        "cause": "the reply was cut off",
        "advice": verdict("lost").advice,
    }
    assert shown["state"] == "exchange failing"


REFUSED = changed(
    SENT, conclusion=Conclusion.REFUSED, upstream_errors=(upstream_error("key_invalid", NOW - 2.0),)
)


@pytest.mark.parametrize(
    ("before", "evidence"),
    [([SENT], "it was accepted before"), ([], "it has not been accepted since the start")],
)
def test_an_error_with_what_explains_it(before: list[Outcome], evidence: str) -> None:
    (shown,) = picture(recent=recent(*before, REFUSED)).document()["errors"]
    assert (shown["last_ms"], shown["count"], shown["whose"]) == ((WALL - 2) * 1000, 1, "setup")
    assert shown["evidence"].startswith(evidence)
    assert (shown["over_since_ms"], shown["advice"]) == (None, verdict("key_invalid").advice)


CLOSED = pool(replace(SECOND, seen=0), pool="orders", passes="requests to /x", pause_s=1.5)
REFUSING = replace(MINUTE, seen=2, used_ratio=0.1, is_foreign_use=False)


@pytest.mark.parametrize(
    ("pools", "evidence"),
    [
        (
            (pool(SECOND, pool="weight"), CLOSED),
            "orders (requests to /x): closed for 2 s; everything else goes on",
        ),
        (
            (pool(replace(SECOND, seen=0), pool="weight"), pool(REFUSING, pool="orders")),
            "orders: about 1200 per 1 min",
        ),
        ((pool(replace(SECOND, seen=0), pool="weight"), pool(pool="orders")), ""),
    ],
)
def test_a_refusal_is_explained_by_the_pool_that_may_have_refused(
    pools: tuple[KeyPool, ...], evidence: str
) -> None:
    limited = changed(SENT, upstream_errors=(upstream_error("rate_limited", NOW - 0.25),))
    status = of_exchange(keys=(replace(KEY, pools=pools),))
    (shown,) = picture(status=status, recent=recent(limited)).document()["errors"]
    assert shown["evidence"] == evidence


def test_an_error_that_is_over_says_since_when_and_advises_nothing() -> None:
    (shown,) = picture(recent=recent(REFUSED, SENT, at=NOW - 1)).document()["errors"]
    assert (shown["over_since_ms"], shown["advice"]) == ((WALL - 1) * 1000, "")
    assert shown["evidence"].startswith("it has not been accepted since the start")


LATE = changed(
    SENT, bot="watcher", lane=Lane.READ, attempts=0, reason="deadline_exceeded", detail="No room.", status=504
)


def test_what_the_gateway_refused_a_bot() -> None:
    shown = picture(recent=recent(*[LATE] * 42, at=NOW - 1)).document()
    assert shown["refusals"] == [
        {
            "bot": "watcher",
            "exchange": "spot",
            "lane": "read",
            "reason": "deadline_exceeded",
            "refused": 42,
            "asked": 42,
            "client": None,
            "user_agent": None,
            "words": "watcher: 42 of 42 reads refused by the gateway (deadline_exceeded)",
            "first_ms": (WALL - 1) * 1000,
            "last_ms": (WALL - 1) * 1000,
            "over_since_ms": None,
            "is_grave": True,
            "advice": REASONS["deadline_exceeded"].advice,
        }
    ]
    assert shown["state"] == "bots refused"


def test_a_refusal_that_is_over_advises_nothing() -> None:
    over = recent(*[LATE] * 42, at=NOW - 100)
    over.take([changed(SENT, bot="watcher", lane=Lane.READ)], NOW - 90)
    shown = picture(recent=over).document()
    (refused,) = shown["refusals"]
    assert (refused["over_since_ms"], refused["advice"]) == ((WALL - 90) * 1000, "")
    assert shown["state"] == "ready"


def test_what_policies_refused_is_told_by_rule() -> None:
    counts = {"max_size": 2, "symbols": 1, "body": 0}
    policies = (
        PolicyStatus("grid", "spot", "may send orders in BTC", is_observing=False, refusals=counts),
        PolicyStatus("maker", "spot", "would be held to it", is_observing=True, refusals=counts),
        PolicyStatus("idle", "spot", "may send orders in BTC", is_observing=False, refusals={"body": 0}),
    )
    shown = picture(status=of_exchange(policies=policies)).document()["policies"]
    assert [policy["by_rule"] for policy in shown] == [
        "grid's policy has refused: 2 by max_size, 1 by symbols",
        "maker's policy would have refused: 2 by max_size, 1 by symbols",
        "",
    ]


def test_a_policy_of_one_of_several_exchanges_is_told_with_its_name() -> None:
    policy = PolicyStatus("grid", "perp", "may", is_observing=False, refusals={"symbols": 1})
    status = replace(STATUS, exchanges=(SPOT, replace(PERP, policies=(policy,))))
    (shown,) = picture(status=status).document()["policies"]
    assert shown["by_rule"] == "grid's policy at perp has refused: 1 by symbols"


def test_the_refusals_of_a_halt_are_over_once_it_is_lifted() -> None:
    halted = changed(LATE, reason="halted")
    shown = picture(recent=recent(*[halted] * 9, at=NOW - 1)).document()
    (refused,) = shown["refusals"]
    assert (refused["over_since_ms"], refused["advice"]) == ((WALL - 1) * 1000, "")
    assert (refused["is_grave"], shown["state"]) == (False, "ready")


def test_a_point_of_the_charts() -> None:
    limited = Recent()
    limited.take([changed(SENT, upstream_errors=(upstream_error("rate_limited", NOW - 0.25),))], NOW)
    ended = limited.turn()
    point = {
        "keys": {"main": [960.0, 1200.0, 0.0, 2.0]},
        "limited": [["main", WALL - 0.25]],
        "added": 1.0,
        "upstream": 20.0,
        "usual": 20.0,
        "offset": -250.0,
        "error": 2.0,
    }
    assert picture(recent=limited).point(ended) == {"t": WALL, "exchanges": {"spot": point}}


def test_the_point_of_a_key_with_several_pools_is_in_percent_of_the_fullest() -> None:
    key = replace(KEY, pools=(pool(SECOND, pool="weight"), pool(MINUTE, pool="orders")))
    shown = picture(status=of_exchange(keys=(key,)))
    assert shown.point({})["exchanges"]["spot"]["keys"] == {"main": [80.0, 100.0, 0.0, 0.0]}


def test_a_key_is_told_with_its_pools() -> None:
    key = replace(
        KEY, pools=(pool(SECOND, pool="path", of="GET /x", pause_s=1.5), pool(MINUTE, pool="orders"))
    )
    shown = key_of(picture(status=of_exchange(keys=(key,))))
    assert [(one["pool"], one["of"], one["state"], one["pause_s"]) for one in shown["pools"]] == [
        ("path", "GET /x", "closed", 1.5),
        ("orders", "", "open", 0.0),
    ]
    assert [(one["pool"], one["of"], one["n"]) for one in shown["limits"]] == [
        ("path", "GET /x", 20.0),
        ("orders", "", 1200.0),
    ]
    assert (shown["pause_s"], shown["spent_s"], shown["at_a_time"], shown["used"]) == (0.0, 0.0, None, 960.0)
    assert shown["closed"] == "path GET /x: closed for 2 s; everything else goes on"


def test_a_point_leaves_out_keys_of_which_there_is_nothing_to_show() -> None:
    idle = replace(KEY, alias="idle", pools=only(), pause_s=0.0)
    shown = picture(status=of_exchange(keys=(KEY, idle)))
    assert list(shown.point({})["exchanges"]["spot"]["keys"]) == [KEY.alias]


PERP = replace(
    SPOT,
    name="perp",
    base_url="https://perp.example.com",
    urls=("http://127.0.0.1:8787/perp",),
    keys=(replace(KEY, exchange="perp", pools=only(SECOND), pause_s=2.0, waiting={"order": 3}),),
)
BOTH = replace(STATUS, exchanges=(SPOT, PERP))


def test_each_exchange_at_a_glance() -> None:
    limited = changed(SENT, exchange="perp", upstream_errors=(upstream_error("rate_limited", NOW - 0.25),))
    shown = picture(status=BOTH, recent=recent(SENT, limited, limited)).document()
    spot, perp = shown["exchanges"]
    assert perp == {
        "name": "perp",
        "venue": "service",
        "base_url": "https://perp.example.com",
        "urls": ("http://127.0.0.1:8787/perp",),
        "state": "paused",
        "not_ready": (),
        "clock": {
            "offset_s": -0.25,
            "error_s": 0.002,
            "age_s": 3.0,
            "steps": 0,
            "refusals": 0,
            "trouble": None,
        },
        "keys": ["main"],
        "open_pools": [],
        "used_ratio": 0.5,
        "pause_s": 2.0,
        "waiting": 3,
        "sent_per_s": 4.0,
        "requests": 2,
        "requests_per_s": 4.0,
        "limited": 2,
        "limited_ms": (WALL - 0.25) * 1000,
        "limited_today": 2,
        "shared_per_s": 0.0,
        "streams": 0,
        "in_doubt": 0,
        "latency": {"added_p99_ms": 1.0, "upstream_p50_ms": 20.0, "upstream_p99_ms": 20.0},
        "failing": None,
    }
    assert (spot["state"], spot["requests"], spot["limited_ms"]) == ("ready", 1, None)
    assert [(key["exchange"], key["sent_per_s"]) for key in shown["keys"]] == [("spot", 2.0), ("perp", 4.0)]
    assert (shown["state"], shown["requests"]) == ("paused", 3)


def test_what_is_wrong_at_one_exchange_is_not_the_state_of_another() -> None:
    late = changed(LATE, exchange="perp")
    shown = picture(status=BOTH, recent=recent(down(), *[late] * 3)).document()
    assert [one["state"] for one in shown["exchanges"]] == ["exchange failing", "bots refused"]
    assert (shown["state"], shown["failing"]["exchange"]) == ("exchange failing", "spot")
    assert [error["exchange"] for error in shown["errors"]] == ["spot"]
    assert [refusal["exchange"] for refusal in shown["refusals"]] == ["perp"]


def test_an_error_at_an_exchange_that_is_gone_is_told_without_what_is_known_of_it() -> None:
    gone = changed(REFUSED, exchange="gone", key="main")
    (error,) = picture(recent=recent(gone)).document()["errors"]
    assert (error["exchange"], error["kind"]) == ("gone", "key_invalid")


def test_a_point_has_each_exchange() -> None:
    both = recent(SENT, changed(SENT, exchange="perp", upstream_s=0.040, total_s=0.041))
    point = picture(status=BOTH, recent=both).point({})
    assert {name: one["upstream"] for name, one in point["exchanges"].items()} == {"spot": 20.0, "perp": 40.0}


REFUSED_KEY = replace(KEY, disabled="the exchange calls it invalid")
Change = Callable[[Status], Status]


def with_spot(status: Status, **changes: Any) -> Status:
    """Return a status whose first exchange differs so."""
    return replace(status, exchanges=(replace(status.exchanges[0], **changes), *status.exchanges[1:]))


# Each with what alone brings it about, the gravest first.
CHANGES: dict[State, Change] = {
    State.SHUTTING_DOWN: lambda status: replace(status, is_draining=True),
    State.KEY_REFUSED: lambda status: with_spot(status, keys=(REFUSED_KEY, REFUSED_KEY)),
    State.NOT_READY: lambda status: with_spot(status, not_ready=("clock not synced",)),
    State.AN_EXCHANGE_NOT_READY: lambda status: replace(
        status, exchanges=(*status.exchanges, replace(PERP, not_ready=("clock not synced",), keys=()))
    ),
    State.HALTED: lambda status: replace(status, halts=halt_status(Halts(Halt(Scope("grid"), 0)))),
    State.SIGNATURES_REFUSED: lambda status: with_spot(
        status, keys=(*status.keys, replace(KEY, trouble="the exchange refused its last 3 signatures"))
    ),
    State.JOURNAL_FAILING: lambda status: replace(
        status, journal=JournalStatus(0, (), "disk full", is_refusing=False)
    ),
    State.A_KEY_REFUSED: lambda status: with_spot(status, keys=(*status.keys, REFUSED_KEY)),
    State.CLOCK_NOT_READ: lambda status: with_spot(
        status, clock=replace(status.clock, trouble="connection refused")
    ),
    State.PAUSED: lambda status: with_spot(status, keys=(*status.keys, replace(KEY, pause_s=0.1))),
    State.A_POOL_CLOSED: lambda status: with_spot(status, open_pools=only(pause_s=1.0)),
    State.READY: lambda status: status,
}


@pytest.mark.parametrize(("expected", "change"), CHANGES.items(), ids=str)
def test_each_state_is_told_where_only_it_holds(expected: State, change: Change) -> None:
    assert state(change(STATUS), is_failing=False, is_refusing=False) is expected


def test_an_exchange_that_fails() -> None:
    assert state(STATUS, is_failing=True, is_refusing=True) is State.EXCHANGE_FAILING


def test_the_gravest_is_told() -> None:
    """All hold at once, then ever fewer."""
    order = list(State)
    for index, gravest in enumerate(order):
        status = STATUS
        for other in reversed(order[index:]):
            status = CHANGES[other](status) if other in CHANGES else status
        is_failing = index <= order.index(State.EXCHANGE_FAILING)
        is_refusing = index <= order.index(State.REFUSING)
        assert state(status, is_failing=is_failing, is_refusing=is_refusing) is gravest


def test_the_docs_tell_what_each_means() -> None:
    page = (ROOT / "docs/live-page.md").read_text()
    table = page.partition("| state | what it means |")[2].partition("\n\n")[0]
    told = {name for cells in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in cells.split(", ")}
    assert told - {"`reconnecting`", "`stalled`"} == {f"`{one}`" for one in State}


def test_an_open_stream() -> None:
    """The counts of what is over are for the metrics alone."""
    streams = StreamsStatus((stream(),), opened={("spot", "grid", "other", "opened"): 1})
    document = picture(status=replace(STATUS, streams=streams)).document()
    assert document["streams"] == [
        {
            "request_id": "r-1",
            "exchange": "spot",
            "bot": "grid",
            "key": "main",
            "stream": "stream.example.com/v5/private",
            "since_ms": 1_789_999_000_000,
            "is_logged_in": True,
            "messages_per_s": 12.35,
            "to_bot": {"messages": 1200, "bytes": 64_000},
            "to_exchange": {"messages": 7, "bytes": 900},
        }
    ]
    assert picture().document()["streams"] == []
