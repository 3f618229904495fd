"""The texts of a picture, as the live page and `sealgate top` show them."""

from dataclasses import replace
from typing import Any

import pytest

from observe.test_picture import (
    BOTH,
    KEY,
    LATE,
    MINUTE,
    NOW,
    PERP,
    REFUSED,
    SECOND,
    SENT,
    SPOT,
    STATUS,
    WALL,
    down,
    of_exchange,
    picture,
    recent,
)
from rig.doubts import DOUBT
from rig.key_pools import only, pool
from rig.open_streams import stream
from rig.outcome import changed
from rig.verdicts import upstream_error
from sealgate.exchange.clock import ClockStatus
from sealgate.limits.status import LimitStatus, SharingStatus
from sealgate.observe.pools import KeyPool, PoolState
from sealgate.observe.status import KeyStatus, PolicyStatus, Status, halt_status
from sealgate.observe.units import ms, signed_ms
from sealgate.orders.doubts import JournalStatus
from sealgate.orders.halts import Halt, Halts, Origin, Scope
from sealgate.orders.outcome import Conclusion, Outcome
from sealgate.streams.tally import StreamsStatus
from sealgate.venues.routes import Lane

DISK, NO_WAY = "disk full", "connection refused"
WALL_MS = round(WALL * 1000)  # 13:33:20 UTC


def words(status: Status = STATUS, *outcomes: Outcome, at: float = NOW) -> dict[str, Any]:
    document: dict[str, Any] = picture(status=status, recent=recent(*(outcomes or (SENT,)), at=at)).document()
    found: dict[str, Any] = document["words"]
    return found


def notices(status: Status = STATUS, *outcomes: Outcome) -> list[str]:
    return [f"{one['mood']}: {one['text']}" for one in words(status, *outcomes)["notices"]]


def of_key(**changes: Any) -> Status:
    return of_exchange(keys=(replace(KEY, **changes),))


def of_clock(**changes: Any) -> Status:
    return of_exchange(clock=replace(STATUS.clock, **changes))


def of_journal(**changes: Any) -> Status:
    return replace(STATUS, journal=replace(STATUS.journal, **changes))


UNREAD = ClockStatus(None, None, None, 0, 0, NO_WAY)
HALT = Halt(Scope("grid"), WALL_MS - 5000, Origin(1000, 7, "the desk `called`"))
OLD_HALT = Halt(Scope(), WALL_MS - 3 * 86_400_000)
PASS = "Reads and cancels pass. Resume with:"

NOTICES: dict[str, tuple[Status, list[str]]] = {
    "all is well": (STATUS, []),
    "not ready": (
        of_exchange(clock=UNREAD, not_ready=(f"clock not synchronized: {NO_WAY}",)),
        [f"bad: Not ready: clock not synchronized: {NO_WAY}"],
    ),
    "a clock": (
        of_clock(trouble=NO_WAY),
        [
            (
                f"warn: The exchange's time cannot be read: {NO_WAY}. "
                "Requests are signed by the last reading, which is 3 s old."
            )
        ],
    ),
    "a clock that was never read": (
        of_exchange(clock=UNREAD),
        [f"warn: The exchange's time cannot be read: {NO_WAY}."],
    ),
    "halts": (
        replace(STATUS, halts=halt_status(Halts(HALT, OLD_HALT))),
        [
            (
                "bad: Orders are halted for bot grid since 14:13:15 UTC, 5 s ago, by user 1000, process 7. "
                f"{PASS} `sealgate resume --bot grid`. Reason: the desk `called`"
            ),
            (
                "bad: Orders are halted for all bots since 2026-09-18 14:13:20 UTC, 3 d ago, by an unknown "
                f"user. {PASS} `sealgate resume`"
            ),
        ],
    ),
    "a disabled key": (
        of_exchange(
            keys=(replace(KEY, disabled="it is invalid"),),
            not_ready=("the key main is disabled: it is invalid",),
        ),
        ["bad: Key main is disabled: it is invalid. The gateway tries it again automatically."],
    ),
    "a key in trouble": (
        of_key(trouble="the exchange refused its last 9 signatures", trouble_advice="Check the secret."),
        ["bad: Key main: the exchange refused its last 9 signatures. Check the secret."],
    ),
    "a limit that is not shared": (
        of_key(sharing=SharingStatus(3, is_leader=False, degraded="Redis is away")),
        [
            (
                "bad: The limit of key main is not shared: Redis is away. Until it is again, this gateway "
                "uses a cautious share of it (1 of 3 gateways)."
            )
        ],
    ),
    "a key that expires": (
        of_key(expires_at=WALL + 2.4 * 86_400),
        ["bad: Key main expires in 2 d: make a new one in the app."],
    ),
    "a key that has expired": (
        of_key(expires_at=WALL - 1),
        ["bad: Key main has expired: make a new one in the app."],
    ),
    "a key that expires much later": (of_key(expires_at=WALL + 8 * 86_400), []),
    "no journal": (
        of_journal(trouble=DISK, is_refusing=True),
        [
            (
                f"bad: The journal cannot be written: {DISK}. "
                "Orders are refused until it can; reads and cancels pass."
            )
        ],
    ),
    "a journal that is not needed": (
        of_journal(trouble=DISK),
        [f"bad: The journal cannot be written: {DISK}. Orders are sent without a record."],
    ),
    "a lost journal": (
        of_journal(lost="j.db was missing"),
        [
            (
                "bad: j.db was missing. If you did not remove it, stop the gateway, put the file back, and "
                "find out who did."
            )
        ],
    ),
}


@pytest.mark.parametrize(("status", "texts"), NOTICES.values(), ids=NOTICES)
def test_what_people_must_know(status: Status, texts: list[str]) -> None:
    assert notices(status) == texts


def test_a_bot_most_of_whose_requests_are_refused_is_a_notice() -> None:
    (notice,) = notices(STATUS, *[LATE] * 3)
    refused = "watcher: 3 of 3 reads refused by the gateway (deadline_exceeded)"
    assert notice.startswith(f"warn: {refused}, since 14:13:20 UTC, 0 s ago. ")
    assert notices(STATUS, LATE, SENT) == []


def test_an_exchange_that_fails_hides_the_clock_and_is_still_tried_unless_orders_are_halted() -> None:
    failing = (
        "bad: The exchange has been failing since 14:12:50 UTC, 30 s ago: 4 attempts, the last with lost. "
    )
    (notice,) = notices(of_clock(trouble=NO_WAY), down())
    assert notice.startswith(f"{failing}the reply was cut off ")
    assert notice.endswith(" Requests are still accepted, and sent.")
    failed, _ = notices(replace(STATUS, halts=halt_status(Halts(HALT))), down())
    assert failed.startswith(failing)
    assert "still accepted" not in failed


def test_a_gateway_that_no_bot_has_used_says_how_unless_it_is_not_ready() -> None:
    def texts(status: Status) -> list[str]:
        document = picture(status=status, recent=recent()).document()
        return [one["text"] for one in document["words"]["notices"]]

    (text,) = texts(STATUS)
    assert text.startswith("No bot has sent a request yet. Point a bot at the gateway's address")
    assert texts(replace(STATUS, is_draining=True)) == ["Not ready: shutting down"]


def tiles(status: Status = STATUS, *outcomes: Outcome) -> dict[str, str]:
    found = words(status, *outcomes)["tiles"]
    return {
        one["name"]: " ".join(filter(None, (one["value"], one["unit"], f"({one['more']})", one["mood"])))
        for one in found
    }


def test_the_figures_at_a_glance() -> None:
    assert tiles() == {
        "Limit used": "80 % (of 1,200/min)",
        "429s today": "0 (none since the start)",
        "Waiting": "0 (of 0 requests under way)",
        "Requests": "2 /s (1 in 60 s)",
        "Clock": "−250 ms (± 2 ms, 3 s old)",  # noqa: RUF001 - a minus
        "In doubt": "0 (no order)",
    }


def limited(**changes: Any) -> LimitStatus:
    return replace(SECOND, **changes)


TILES: dict[str, tuple[Status, str, str]] = {
    "full, which is no fault": (
        of_key(pools=only(limited(used_ratio=1.0)), waiting={"order": 4}),
        "Limit used",
        "100 % (of 20/s)",
    ),
    "a short window": (
        of_key(pools=only(limited(window_s=0.8149, low=4.0, high=4.0))),
        "Limit used",
        "50 % (of 4.91/s)",
    ),
    "a long window": (
        of_key(pools=only(limited(window_s=600.0))),
        "Limit used",
        "50 % (of 20 per 10 min)",
    ),
    "a learned limit": (
        of_key(pools=only(limited(low=19.6, high=20.4))),
        "Limit used",
        "50 % (of about 20/s)",
    ),
    "a learned limit with a long window": (
        of_key(pools=only(limited(window_s=10.0, low=100.0, high=120.0))),
        "Limit used",
        "50 % (of about 11/s)",
    ),
    "a limit without an upper bound": (
        of_key(pools=only(limited(high=None))),
        "Limit used",
        "50 % (of about 20/s)",
    ),
    "a limit that was never met": (
        of_key(pools=only(limited(high=None, seen=0))),
        "Limit used",
        "50 % (of at least 20/s)",
    ),
    "no limit": (of_key(pools=only()), "Sent", "2 /s (no limit known yet)"),
    "the fullest of many": (
        of_exchange(keys=(replace(KEY, alias="alt", pools=only()), KEY)),
        "Limit of main",
        "80 % (of 1,200/min)",
    ),
    "none of many": (
        of_exchange(keys=tuple(replace(KEY, alias=name, pools=only()) for name in ("a", "b"))),
        "Sent with a",
        "0 /s (no limit known yet)",
    ),
    "a pause": (of_key(pause_s=41.7), "Paused", "42 s (left, after a 429) warn"),
    "soon": (
        of_key(pools=only(limited(n=2.0, used_ratio=0.0), cost_per_s=2.0)),
        "Limit used",
        "0 % (of 20/s, full in 1 s)",
    ),
    "waiting": (of_key(waiting={"order": 4}), "Waiting", "4 (of 0 requests under way)"),
    "a clock in trouble": (of_clock(trouble=NO_WAY), "Clock", "−250 ms (± 2 ms, 3 s old) warn"),  # noqa: RUF001
    "no clock": (of_exchange(clock=UNREAD), "Clock", "– (not synchronized yet) bad"),  # noqa: RUF001
    "doubts": (of_journal(in_doubt=7), "In doubt", "7 (look them up) bad"),
}


@pytest.mark.parametrize(("status", "name", "text"), TILES.values(), ids=TILES)
def test_a_figure_with_what_explains_it(status: Status, name: str, text: str) -> None:
    assert tiles(status)[name] == text


TODAY = "no refusal today"
KEYS: dict[str, tuple[KeyStatus, tuple[str, str, str, str]]] = {
    "paused": (
        replace(KEY, pools=only(SECOND), pause_s=41.72),
        ("paused, 41.7 s left", f"20/s · {TODAY}", "", "about 20 per 1 s"),
    ),
    "spent": (
        replace(KEY, pools=only(SECOND, spent_s=7.3)),
        ("limit used up (exchange), 7.3 s left", f"20/s · {TODAY}", "", "about 20 per 1 s"),
    ),
    "not limited": (
        replace(KEY, pools=only()),
        ("", f"limit not known yet, learned from 429s · {TODAY}", "", ""),
    ),
    "several limits": (
        replace(KEY, pools=only(replace(SECOND, next_step="next: 21 per 1 s"), MINUTE, at_a_time=3)),
        (
            "",
            f"20/s and 1,200/min · {TODAY}",
            "at most 3 at a time",
            (
                "about 20 per 1 s; next: 21 per 1 s; about 1200 per 1 min; "
                "something else seems to use this limit too"
            ),
        ),
    ),
    "shared": (
        replace(KEY, pools=only(SECOND), sharing=SharingStatus(2, is_leader=True, degraded=None)),
        ("", f"20/s · {TODAY}", "shared by 2 gateways", "about 20 per 1 s"),
    ),
    "alone": (
        replace(KEY, pools=only(SECOND), sharing=SharingStatus(1, is_leader=True, degraded=None)),
        ("", f"20/s · {TODAY}", "sharing on, no other gateway yet", "about 20 per 1 s"),
    ),
}


@pytest.mark.parametrize(("key", "said"), KEYS.values(), ids=KEYS)
def test_what_holds_a_key_its_limit_and_what_is_known_of_it(
    key: KeyStatus, said: tuple[str, str, str, str]
) -> None:
    (found,) = words(of_exchange(keys=(key,)))["keys"]
    assert (found["state"], found["limit"], found["about"], found["evidence"]) == said


def test_a_limit_in_a_sentence_counts_the_refusals_of_the_key_on_this_day() -> None:
    refused = changed(SENT, upstream_errors=(upstream_error("rate_limited", NOW - 60.0),) * 3)
    (found,) = words(of_key(pools=only(limited(low=19.6, high=20.4))), refused)["keys"]
    assert found["limit"] == "about 20/s · 3 refusals today"
    pools = (WEIGHT, ORDERS)
    assert words(of_key(pools=pools), refused)["keys"][0]["limit"] == "weight: 1,200/min · 3 refusals today"


def test_the_use_of_a_limit_is_told_without_its_evidence() -> None:
    (found,) = words(of_key(pools=only(SECOND)))["keys"]
    assert found["uses"] == [{"ratio": 0.5, "text": "50 % of 20/s"}]


def test_reads_that_share_a_reply_explain_more_requests_than_are_sent() -> None:
    found = words(STATUS, SENT, *[changed(SENT, attempts=0, shared="r-0")] * 2)["exchanges"][0]
    assert found["shared"].startswith(
        "Bots ask for 6 requests a second, and the gateway sends 2: 4 are reads "
    )
    assert words()["exchanges"][0]["shared"] == ""


LAST: dict[str, tuple[dict[str, Any], str, str]] = {
    "done": ({}, "accepted (200)", ""),
    "refused": ({"conclusion": Conclusion.REFUSED, "status": 400}, "refused by the exchange (400)", "warn"),
    "not sent": (
        {"conclusion": Conclusion.NOT_SENT, "status": 503, "reason": "halted"},
        "not sent: halted (503)",
        "warn",
    ),
    "unknown": (
        {"conclusion": Conclusion.UNKNOWN, "status": 504, "reason": "upstream_timeout"},
        "no known result: upstream_timeout (504)",
        "bad",
    ),
}


@pytest.mark.parametrize(("changes", "how", "mood"), LAST.values(), ids=LAST)
def test_the_last_order_of_a_bot(changes: dict[str, Any], how: str, mood: str) -> None:
    order = {"method": "POST", "route": "/order", "lane": Lane.ORDER, "started": NOW - 50.0}
    first = changed(SENT, **order)
    last = changed(SENT, **order | changes)
    read = changed(SENT, started=NOW)
    assert words(STATUS, first, last, read)["last_orders"] == [
        {"ago": "50 s ago", "call": "POST /order", "how": how, "mood": mood}
    ]


def test_an_order_of_this_second_is_of_now() -> None:
    order = changed(SENT, lane=Lane.ORDER, started=NOW - 0.5)
    assert words(STATUS, order)["last_orders"][0]["ago"] == "now"


def test_what_went_wrong_the_latest_first() -> None:
    lost = changed(SENT, bot=None, key=None, upstream_errors=(upstream_error("lost", NOW - 1),))
    stranger = changed(
        LATE, bot=None, lane=None, reason="host_refused", client="192.0.2.7", user_agent="curl/8.5.0"
    )
    refusals, errors = recent(LATE, stranger, at=NOW - 90), (REFUSED, lost)
    refusals.take(errors, NOW)
    found = picture(recent=refusals).document()["words"]["wrong"]
    assert [(one["kind"], one["what"], one["who"], one["times"], one["last"]) for one in found] == [
        ("lost", "lost", "", "1×", "1 s ago"),  # noqa: RUF001
        ("key_invalid", "key_invalid", "key main, last by grid", "1×", "2 s ago"),  # noqa: RUF001
        (None, "deadline_exceeded", "refused by the gateway: watcher, reads", "1 of 1", "2 min ago"),
        (
            None,
            "host_refused",
            "refused by the gateway: stranger, any request; the last: curl/8.5.0, 192.0.2.7",
            "1×",  # noqa: RUF001
            "2 min ago",
        ),
    ]
    assert [one["is_over"] for one in found] == [False, False, False, True]
    assert found[1]["cause"].startswith("It has not been accepted since the start: most likely")
    assert found[3]["text"] == "Resolved at 14:11:50 UTC."


def test_where_nothing_went_wrong_it_says_so() -> None:
    assert words()["nothing_wrong"] == "No bot has met an error or a refusal since the start."
    assert words(STATUS, REFUSED)["nothing_wrong"] == ""
    policy = PolicyStatus("grid", "spot", "may", is_observing=False, refusals={"symbols": 1})
    found = words(of_exchange(policies=(policy,)))
    assert (found["nothing_wrong"], found["policies"]) == ("", ["grid's policy has refused: 1 by symbols"])


def in_doubt(**changes: Any) -> dict[str, str]:
    terms = {"symbol": "BTC", "side": "buy", "size": "0.1", "price": "65000", "client_id": "c1"}
    doubt = replace(DOUBT, exchange="spot", **terms | changes)
    found = words(replace(STATUS, journal=JournalStatus(1, (doubt,), None, is_refusing=False)))
    order: dict[str, str] = found["orders"][0]
    return order


def test_orders_in_doubt_with_their_terms_and_what_to_do() -> None:
    found = in_doubt(fence_ms=WALL_MS - 1000, sent_ms=WALL_MS - 5000, request_id="a b")
    assert found == {
        "call": DOUBT.call,
        "terms": "buy 0.1 BTC at 65000 as c1",
        "sent": "14:13:15 UTC",
        "ago": "5 s ago",
        "fence": "14:13:19 UTC",
        "do": "Look it up by client order id c1, then run: `sealgate orders --settle 'a b'`",
    }
    assert in_doubt(client_id=None, fence_ms=0)["do"].startswith(
        "Look it up by symbol and time, then run: `sealgate o"
    )


def test_an_order_over_a_stream_is_told_by_what_it_is_there() -> None:
    assert in_doubt(method="WS", route="stream.example.com/v5/trade order.create", target="/v5/trade")[
        "call"
    ] == ("WS stream.example.com/v5/trade order.create")


def test_what_may_still_execute_is_told_by_the_clock_of_the_exchange() -> None:
    # The exchange's clock is 250 ms behind.
    found = in_doubt(fence_ms=WALL_MS + 3750)
    assert found["do"].startswith("Wait 4 s: until then it may still execute. Look it up ")
    assert in_doubt(fence_ms=WALL_MS - 250)["do"].startswith("Look it up ")
    assert in_doubt(fence_ms=0)["fence"] == "not known"


def test_orders_in_doubt_with_one_request_id_are_settled_by_their_own_ids() -> None:
    both = (replace(DOUBT, id="1", request_id="same"), replace(DOUBT, id="2", request_id="same"))
    found = words(replace(STATUS, journal=JournalStatus(2, both, None, is_refusing=False)))
    assert [one["do"].rpartition(" ")[2] for one in found["orders"]] == ["1`", "2`"]
    assert found["doubts"].startswith("2 orders have no known result: ")
    assert words(of_journal(in_doubt=1))["doubts"].startswith("1 order has no known result: ")
    assert words()["doubts"] == ""


def test_what_runs_since_when() -> None:
    assert words(replace(STATUS, connections=1))["foot"] == "Sealgate 1.0, up 60 s, 1 bot connection."
    assert words()["own_addresses"] == ""
    found = words(replace(STATUS, connections=1, bot_urls={"grid": "http://127.0.0.1:8802"}))
    assert found["own_addresses"] == "Without a token: grid at http://127.0.0.1:8802."
    assert found["foot"].endswith("1 bot connection. Without a token: grid at http://127.0.0.1:8802.")
    assert words()["mood"] == "good"
    assert words(replace(STATUS, is_draining=True))["mood"] == "warn"
    assert words(of_exchange(not_ready=("no",)))["mood"] == "bad"


# Several exchanges: each sentence names its own.

KEY_AT_PERP = replace(
    KEY,
    exchange="perp",
    disabled="it is invalid",
    trouble="the exchange refused its last 9 signatures",
    trouble_advice="Check the secret.",
    sharing=SharingStatus(3, is_leader=False, degraded="Redis is away"),
)
PERP_DOWN = replace(
    PERP,
    clock=UNREAD,
    not_ready=(f"clock not synchronized: {NO_WAY}", "the key main is disabled: it is invalid"),
    keys=(KEY_AT_PERP,),
)


def test_notices_name_the_exchange() -> None:
    late = changed(LATE, exchange="perp")
    found = notices(replace(STATUS, exchanges=(SPOT, PERP_DOWN)), SENT, *[late] * 3)
    assert found == [
        f"bad: perp is not ready: clock not synchronized: {NO_WAY}",
        "bad: Key main at perp is disabled: it is invalid. The gateway tries it again automatically.",
        "bad: Key main at perp: the exchange refused its last 9 signatures. Check the secret.",
        found[3],
        found[4],
    ]
    assert found[3].startswith("bad: The limit of key main at perp is not shared: Redis is away.")
    assert found[4].startswith("warn: perp: watcher: 3 of 3 reads refused by the gateway (deadline_exceeded)")


def test_an_exchange_that_fails_or_whose_time_cannot_be_read_is_named() -> None:
    unread = replace(PERP, clock=replace(PERP.clock, trouble=NO_WAY))
    found = notices(replace(STATUS, exchanges=(SPOT, unread)), down())
    assert found[0].startswith("bad: The exchange spot has been failing since 14:12:50 UTC")
    assert found[1].startswith(f"warn: The time of perp cannot be read: {NO_WAY}.")


def test_what_went_wrong_names_the_exchange() -> None:
    outcomes = (
        changed(REFUSED, exchange="perp"),
        changed(SENT, exchange="perp", key=None, upstream_errors=(upstream_error("lost", NOW - 9),)),
        changed(LATE, exchange="perp"),
        changed(LATE, exchange="", lane=None, reason="unknown_exchange"),
    )
    found = words(BOTH, *outcomes)["wrong"]
    assert {one["what"]: (one["who"], one["anchor"]) for one in found} == {
        "key_invalid": ("key main at perp, last by grid", "perp/key_invalid"),
        "lost": ("at perp, last by grid", "perp/lost"),
        "deadline_exceeded": ("refused by the gateway: watcher at perp, reads", None),
        "unknown_exchange": ("refused by the gateway: watcher, any request", None),
    }


def test_the_figures_of_several_exchanges() -> None:
    doubts = replace(STATUS.journal, in_doubt=2, by_exchange={"perp": 2})
    status = replace(BOTH, exchanges=(SPOT, PERP_DOWN), journal=doubts)
    found = words(status)
    assert (found["where"], words()["where"]) == ("2 exchanges", "spot, https://api.example.com")
    assert [one["name"] for one in found["keys"]] == ["Key main at spot", "Key main at perp"]
    assert tiles(status)["Exchanges"] == "1 (of 2 ready) bad"
    assert tiles(BOTH)["Exchanges"] == "2 (of 2 ready)"
    assert "Limit of main at spot" in tiles(status)
    spot, perp = found["exchanges"]
    assert [tile["name"] for tile in spot["tiles"]] == list(tiles())
    assert {tile["name"]: tile["value"] for tile in perp["tiles"]}["In doubt"] == "2"


GLANCES: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "usual": ({}, {"mood": "good", "used": "80 % of 1,200/min", "pause": "", "limited": "0", "waiting": "0"}),
    "no clock": ({"clock": PERP_DOWN.clock}, {"mood": "warn", "clock": "–"}),  # noqa: RUF001 - a dash
    "no limit": ({"keys": (replace(KEY, pools=only()),)}, {"used": "–", "used_mood": ""}),  # noqa: RUF001
    "full": (
        {"keys": (replace(KEY, pools=only(limited(used_ratio=1.0))),)},
        {"mood": "good", "used_mood": ""},
    ),
    "a pause": (
        {"keys": (replace(KEY, pause_s=41.7, waiting={"order": 4}),)},
        {"pause": "paused, 42 s left", "used_mood": "warn", "waiting": "4", "mood": "warn"},
    ),
}


@pytest.mark.parametrize(("changes", "said"), GLANCES.values(), ids=GLANCES)
def test_an_exchange_at_a_glance(changes: dict[str, Any], said: dict[str, str]) -> None:
    found = words(replace(BOTH, exchanges=(replace(SPOT, **changes), PERP)))["exchanges"][0]
    assert {name: found[name] for name in said} == said


def test_429s_are_counted_with_the_latest() -> None:
    limited_twice = changed(SENT, upstream_errors=(upstream_error("rate_limited", NOW - 60.0),) * 2)
    assert words(BOTH, limited_twice)["exchanges"][0]["limited"] == "2, last 60 s ago"


def test_a_gateway_of_several_that_no_bot_has_used_says_how() -> None:
    document = picture(status=BOTH, recent=recent()).document()
    (notice,) = document["words"]["notices"]
    assert "Point a bot at the address of its exchange here, such as http://127.0.0.1:8787," in notice["text"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0 ms"),
        (0.314, "0.31 ms"),
        (0.3, "0.3 ms"),
        (9.96, "10 ms"),
        (999.4, "999 ms"),
        (9_999.0, "9,999 ms"),
        (10_048.0, "10 s"),
        (99_940.0, "99.9 s"),
        (3_600_000.0, "3,600 s"),
    ],
)
def test_milliseconds_have_as_many_digits_as_matter(value: float, text: str) -> None:
    assert ms(value) == text


def test_an_offset_of_nothing_has_no_sign() -> None:
    assert [signed_ms(value) for value in (-0.003, 1500.0, -0.5)] == [
        "0 ms",
        "+1,500 ms",
        "−0.5 ms",  # noqa: RUF001 - a minus
    ]


# Several pools.

WEIGHT = pool(MINUTE, pool="weight", is_whole=True, is_shared=True)
ORDERS = pool(
    limited(words="20 per 1 s, published, from 2 refusals; last 2 s ago", next_step="next: 21 per 1 s"),
    limited(n=200_000.0, window_s=86_400.0, used_ratio=0.01, words="200,000 per 86,400 s, published"),
    pool="orders",
    passes="orders",
    lanes=("order",),
    at_a_time=5,
)
CLOSED = replace(ORDERS, state=PoolState.CLOSED, pause_s=41.7)


def key_in(*pools: KeyPool, **changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = words(of_key(pools=pools, **changes))["keys"][0]
    return found


def test_each_pool_has_its_line() -> None:
    found = key_in(WEIGHT, CLOSED)
    assert found["pools"] == [
        {
            "name": "weight",
            "state": "",
            "mood": "",
            "ratio": 0.8,
            "text": "80 % of 1,200/min",
            "about": (
                "all requests; all keys share it; about 1200 per 1 min; "
                "something else seems to use this limit too"
            ),
        },
        {
            "name": "orders",
            "state": "closed for 42 s",
            "mood": "warn",
            "ratio": 0.5,
            "text": "50 % of 20/s",
            "about": (
                "orders; 20 per 1 s, published, from 2 refusals; last 2 s ago; next: 21 per 1 s; "
                "200,000 per 86,400 s, published; at most 5 at a time"
            ),
        },
    ]
    assert (found["uses"], found["more"]) == ([], "")


def test_a_closed_pool_is_told_with_what_goes_on() -> None:
    found = key_in(WEIGHT, CLOSED)
    assert (found["state"], found["about"]) == (
        "1 pool closed",
        "orders: closed for 42 s; cancels and reads go on",
    )
    status = of_key(pools=(WEIGHT, CLOSED))
    assert tiles(status)["Closed"] == "42 s (left of orders) warn"
    assert tiles(status)["Limit used"] == "80 % (of 1,200/min (weight))"
    assert notices(status) == ["warn: Key main, orders: closed for 42 s; cancels and reads go on."]
    assert words(status)["exchanges"][0]["pause"] == "1 pool closed"
    both = (WEIGHT, replace(CLOSED, pause_s=3.0), pool(pool="path", of="GET /x", pause_s=9.0))
    assert tiles(of_key(pools=both))["Closed"] == "9 s (left of path GET /x and 1 more pool) warn"
    assert notices(of_key(pools=both)) == []  # over before somebody has read of it


def test_the_pause_of_an_only_pool_is_no_notice() -> None:
    assert notices(of_key(pools=only(SECOND, pause_s=41.7), pause_s=41.7)) == []


def test_a_ban_is_told_of_the_key_and_not_of_each_pool() -> None:
    banned = [replace(one, state=PoolState.BANNED, pause_s=840.0) for one in (WEIGHT, ORDERS)]
    found = key_in(*banned, pause_s=840.0)
    assert (found["state"], found["about"]) == ("banned, 14 min left", "")
    assert [one["mood"] for one in found["pools"]] == ["bad", "bad"]
    status = of_key(pools=tuple(banned), pause_s=840.0)
    assert notices(status) == ["warn: Key main, banned by the exchange: nothing is sent for 14 min."]
    two = replace(status.keys[0], alias="alt")
    assert notices(of_exchange(keys=(*status.keys, two))) == [
        "warn: 2 keys, banned by the exchange: nothing is sent for 14 min."
    ]
    assert tiles(status)["Banned"] == "14 min (left) warn"


def parts(count: int, **changes: Any) -> list[KeyPool]:
    return [pool(pool="path", of=f"GET /{number}", **changes) for number in range(count)]


def test_of_many_pools_those_that_are_closed_or_known_are_shown_and_the_others_counted() -> None:
    found = key_in(WEIGHT, *parts(20), CLOSED, more_pools=3)
    assert [one["name"] for one in found["pools"]] == ["weight", "orders"]
    assert found["more"] == "and 23 more pools, all open"
    assert key_in(WEIGHT, *parts(7))["more"] == ""
    assert key_in(*parts(9))["more"] == "9 pools, all open"
    assert key_in(*parts(9))["limit"] == "limit not known yet, learned from 429s · no refusal today"
    found = key_in(WEIGHT, *parts(12, pause_s=1.0))
    assert [one["name"] for one in found["pools"]] == [f"path GET /{number}" for number in range(8)]
    assert found["more"] == "and 5 more pools, 4 of them closed"
    assert found["state"] == "12 pools closed"


def test_the_pools_of_requests_without_a_key_are_those_of_the_exchange() -> None:
    public = pool(MINUTE, pool="public", passes="requests without a key", is_shared=True, pause_s=12.0)
    (found,) = words(of_exchange(open_pools=(public,)))["exchanges"]
    assert found["open_name"] == "Requests without a key"
    assert [(one["name"], one["state"]) for one in found["open_pools"]] == [("public", "closed for 12 s")]
    soon = replace(public, pause_s=1.0)  # over before somebody has read of it
    both = replace(BOTH, exchanges=(SPOT, replace(PERP, open_pools=(soon, public))))
    assert notices(both) == ["warn: Requests without a key at perp, public: closed for 12 s."]


@pytest.mark.parametrize(
    ("is_logged_in", "login"), [(True, "logged in"), (False, "not logged in"), (None, "no login")]
)
def test_an_open_stream(*, is_logged_in: bool | None, login: str) -> None:
    one = stream(since=WALL - 180.0, is_logged_in=is_logged_in)
    assert words(replace(STATUS, streams=StreamsStatus((one,))))["streams"] == [
        {"since": "14:10:20 UTC, 3 min ago", "age": "3 min", "rate": "12.3/s", "login": login}
    ]
