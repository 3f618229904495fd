"""Lately: who sent what and how fast, what went wrong, what was refused, and when that is over."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from rig.outcome import ANSWERED, changed
from rig.verdicts import upstream_error, verdict
from sealgate.config.venues import default_venue
from sealgate.exchange.clock import ClockStatus
from sealgate.observe import recent as recent_module
from sealgate.observe.recent import LATEST, Failing, Recent
from sealgate.observe.troubles import QUIET_S, RefusalCount, Trouble
from sealgate.orders.outcome import Conclusion, Outcome
from sealgate.venues.routes import Lane

SENT = changed(ANSWERED, attempts=1, upstream_s=0.020, total_s=0.021)
NEVER_SENT = changed(ANSWERED, attempts=0, conclusion=Conclusion.NOT_SENT)
STRANGER = changed(NEVER_SENT, bot=None, key=None)


def after(*outcomes: Outcome, now: float = 0.0, ticks: int = 1) -> Recent:
    recent = Recent(lambda _: default_venue().unsigned_routes)
    recent.take(outcomes, now)
    for _ in range(ticks):
        recent.turn()
    return recent


def test_each_attempt_is_spent_by_its_bot() -> None:
    recent = after(SENT, changed(SENT, attempts=3), changed(SENT, bot="watch"), NEVER_SENT, STRANGER)
    assert recent.at("spot").sent() == {("main", "grid"): 4, ("main", "watch"): 1}
    assert [tick.requests for tick in recent.ended()] == [5]
    assert recent.total == 5


def test_the_latest_requests_are_kept_as_they_are() -> None:
    recent = after(*(changed(SENT, request_id=f"{number}") for number in range(LATEST + 1)))
    assert [one.request_id for one in recent.requests] == [f"{number}" for number in range(1, LATEST + 1)]


def test_half_and_99_of_100_stay_under() -> None:
    latency = after(
        *(changed(SENT, upstream_s=ms / 1000, total_s=ms / 1000 + 0.001) for ms in range(100))
    ).latency()
    assert (latency.upstream_p50_ms, latency.upstream_p99_ms) == (50.0, 98.0)


WORKED = {
    "a signed request": (SENT, {"main"}),
    "one that was refused": (changed(SENT, conclusion=Conclusion.REFUSED), set()),
    "the time, which nobody signs": (changed(SENT, route="/time"), set()),
    "the list of keys, which goes by session": (changed(SENT, route="/api-keys"), set()),
}


@pytest.mark.parametrize(("outcome", "keys"), WORKED.values(), ids=WORKED)
def test_which_keys_were_ever_accepted(outcome: Outcome, keys: set[str]) -> None:
    assert after(outcome).at("spot").has_worked == keys


# Whether the exchange answers.

CLOCK = ClockStatus(0.0, 0.001, None, 0, 0, None)


def failed(*errors: tuple[str, float], reason: str | None = "upstream_unreachable") -> Outcome:
    """Return what ended with these errors, one for each attempt."""
    met = tuple(upstream_error(kind, at) for kind, at in errors)
    return changed(ANSWERED, reason=reason, detail="no answer", attempts=len(met), upstream_errors=met)


DOWN = failed(("unreachable", 10.0), ("unreachable", 10.1), ("unreachable", 10.3))


def failing(*outcomes: Outcome, clock: ClockStatus = CLOCK) -> Failing | None:
    return after(*outcomes).at("spot").failing(clock, now=60.0)


def test_some_failures_in_a_row() -> None:
    assert failing(DOWN) == Failing(verdict("unreachable"), 10.0, 10.3, 3, "no answer")
    late = failed(("late", 20.0), reason="upstream_timeout")
    assert failing(DOWN, late) == Failing(verdict("late"), 10.0, 20.0, 4, "no answer")


def test_replies_of_5xx_are_failures_without_more_words() -> None:
    error = failed(("other_5xx", 10.0), reason=None)
    assert failing(error, error, error) == Failing(verdict("other_5xx"), 10.0, 10.0, 3, None)


@pytest.mark.parametrize(
    "outcomes",
    [
        [failed(("lost", 1.0)), failed(("lost", 2.0))],
        [DOWN, ANSWERED],
        [DOWN, failed(("off_tick", 11.0), reason=None)],
        [DOWN, changed(failed(("unreachable", 11.0)), attempts=2)],
        [changed(DOWN, attempts=0, upstream_errors=())],
        [changed(DOWN, broken="cut short")],
    ],
    ids=["few", "an answer", "a refusal", "an answer in the end", "nothing sent", "a cut reply"],
)
def test_what_is_no_outage(outcomes: list[Outcome]) -> None:
    assert failing(*outcomes) is None


def test_what_sent_nothing_ends_no_outage() -> None:
    assert failing(DOWN, changed(ANSWERED, attempts=0)) is not None


@pytest.mark.parametrize(
    ("kind", "is_over"), [("unreachable", True), ("proxy", True), ("connect_timeout", True), ("late", False)]
)
def test_a_time_that_was_read_since_shows_that_it_is_reached(kind: str, *, is_over: bool) -> None:
    down = failed(*((kind, 10.0 + number) for number in range(3)))
    assert (failing(down, clock=replace(CLOCK, age_s=45.0)) is None) is is_over
    assert failing(down, clock=replace(CLOCK, age_s=55.0)) is not None


# What went wrong: a record for each key and kind.


def met(recent: Recent, *errors: tuple[str, float], bot: str | None = "grid") -> list[Trouble]:
    """Take in a request that met errors of a kind and at a time; return what the log should tell."""
    errors_met = tuple(upstream_error(*error, clock_error_s=0.002) for error in errors)
    outcome = changed(ANSWERED, bot=bot, conclusion=Conclusion.REFUSED, upstream_errors=errors_met)
    return recent.take([outcome], errors[-1][1])


def test_a_kind_is_due_at_once_then_once_a_minute_with_the_number_since() -> None:
    recent = Recent()
    assert [one.unlogged for one in met(recent, ("lost", 10.0), ("lost", 11.0))] == [1]
    assert met(recent, ("lost", 69.9)) == []
    (due,) = met(recent, ("lost", 70.0))
    assert due.unlogged == 3
    (trouble,) = recent.troubles()
    assert (trouble.count, trouble.last_at, trouble.unlogged) == (4, 70.0, 0)


def test_another_key_or_kind_is_another_record_and_the_latest_stands_first() -> None:
    recent = Recent()
    met(recent, ("lost", 1.0), ("late", 2.0), ("lost", 3.0))
    recent.take([changed(ANSWERED, key="alt", upstream_errors=(upstream_error("late", 4.0),))], 4.0)
    assert [(one.key, one.kind, one.count) for one in recent.troubles()] == [
        ("alt", "late", 1),
        ("main", "lost", 2),
        ("main", "late", 1),
    ]


def test_an_error_without_a_key_has_a_record_and_no_mark() -> None:
    recent = Recent()
    recent.take([changed(ANSWERED, key=None, upstream_errors=(upstream_error("rate_limited", 1.0),))], 1.0)
    assert [one.key for one in recent.troubles()] == [""]
    assert recent.turn()["spot"].limited == []


def test_whose_the_latest_was_and_whether_its_key_had_worked_by_then() -> None:
    recent = Recent()
    met(recent, ("key_invalid", 1.0))
    assert not recent.troubles()[0].had_worked
    recent.take([ANSWERED], 1.5)
    met(recent, ("key_invalid", 2.0), bot=None)
    (trouble,) = recent.troubles()
    assert (trouble.bot, trouble.had_worked) == ("", True)


@pytest.mark.parametrize("resends", [("nonce",), ()])
def test_a_request_that_was_sent_again_and_accepted_shows_that_its_key_works(
    resends: tuple[str, ...],
) -> None:
    mended = changed(ANSWERED, resends=resends, upstream_errors=(upstream_error("key_invalid", 1.0),))
    assert mended.conclusion is Conclusion.DONE
    assert after(mended).troubles()[0].had_worked is bool(resends)


def test_the_records_have_a_bound_and_the_oldest_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_module, "_TROUBLES", 2)
    recent = Recent()
    met(recent, ("lost", 1.0), ("late", 2.0), ("lost", 3.0), ("internal", 4.0))
    assert [one.kind for one in recent.troubles()] == ["internal", "lost"]


READ = changed(ANSWERED, lane=Lane.READ)
ORDER = changed(ANSWERED, lane=Lane.ORDER)
REFUSED_READ = changed(READ, conclusion=Conclusion.REFUSED)

# A kind that a read of `grid` met at 10 s, what went through later, and since when it is over at which time.
ENDS: dict[str, tuple[str, Outcome, dict[float, float | None]]] = {
    "a secret that is right again": ("signature_invalid", READ, {20.0: 20.0}),
    "another bot's read proves that, too": ("key_invalid", changed(READ, bot="maker"), {20.0: 20.0}),
    "an order proves nothing for reads": ("permission_missing", ORDER, {99.0: None}),
    "another exchange proves nothing": ("signature_invalid", changed(READ, exchange="perp"), {99.0: None}),
    "another key proves nothing": ("signature_invalid", changed(READ, key="alt"), {99.0: None}),
    "a refused one proves nothing": ("signature_invalid", REFUSED_READ, {99.0: None}),
    "a reply given again proves nothing": ("signature_invalid", changed(READ, attempts=0), {99.0: None}),
    "what comes and goes needs a quiet minute": ("lost", READ, {20.0: None, 69.9: None, 70.0: 20.0}),
    "a bot that learned": ("off_tick", READ, {70.0: 20.0}),
    "another bot says nothing of that": ("off_tick", changed(READ, bot="maker"), {99.0: None}),
}


@pytest.mark.parametrize(("kind", "later", "over"), ENDS.values(), ids=ENDS)
def test_a_trouble_is_over_once_the_same_works(
    kind: str, later: Outcome, over: Mapping[float, float | None]
) -> None:
    recent = after(changed(REFUSED_READ, upstream_errors=(upstream_error(kind, 10.0),)), now=10.0)
    recent.take([later], 20.0)
    recent.take([later], 25.0)
    (trouble,) = recent.troubles()
    assert {at: trouble.over_since(at) for at in over} == over


def test_a_trouble_that_comes_again_is_over_no_more() -> None:
    met_one = changed(REFUSED_READ, upstream_errors=(upstream_error("key_invalid", 10.0),))
    (trouble,) = after(met_one, READ, met_one, now=10.0).troubles()
    assert (trouble.count, trouble.over_since(11.0)) == (2, None)


def test_what_went_to_one_exchange_is_not_known_of_another() -> None:
    perp = changed(SENT, exchange="perp", attempts=2)
    limited = changed(perp, upstream_errors=(upstream_error("rate_limited", 1.0),))
    recent = after(SENT, perp, SENT, limited, changed(DOWN, exchange="perp"), STRANGER)
    spot, other, unknown = recent.at("spot"), recent.at("perp"), recent.at("")
    assert (spot.requests, other.requests, unknown.requests, recent.total) == (3, 3, 0, 6)
    assert spot.sent() == {("main", "grid"): 2}
    assert other.sent() == {("main", "grid"): 7}
    assert (spot.limited, other.limited, other.limited_at) == (0, 1, 1.0)
    assert (spot.failing(CLOCK, 60.0), other.failing(CLOCK, 60.0) is None) == (None, False)
    assert [len(spot.ended()), len(unknown.ended())] == [1, 1]
    latency = [recent.latency(name).upstream_p50_ms for name in ("spot", "", None)]
    assert latency == [20.0, None, 20.0]


def test_requests_of_the_running_tick_count_as_well() -> None:
    recent = after(SENT)
    recent.take([SENT], 1.0)
    assert recent.at("spot").requests == 2


# What the gateway refused: a record for each bot, lane and reason.

PASSED = changed(ANSWERED, bot="watcher", lane=Lane.READ)
LATE = changed(PASSED, reason="deadline_exceeded", status=504)


def refusals(*batches: tuple[float, list[Outcome]]) -> list[RefusalCount]:
    recent = Recent()
    for at, outcomes in batches:
        recent.take(outcomes, at)
    return recent.refusals()


def words(*outcomes: Outcome) -> list[str]:
    return [record.words for record in refusals((1.0, list(outcomes)))]


def test_they_are_counted_by_bot_lane_and_reason() -> None:
    passed_order = changed(PASSED, lane=Lane.ORDER)
    reused = changed(passed_order, bot="grid", reason="key_reused", status=422)
    found = refusals((1.0, [LATE] * 41 + [passed_order]), (2.0, [reused, passed_order]), (3.0, [LATE]))
    assert [record.words for record in found] == [
        "watcher: 42 of 42 reads refused by the gateway (deadline_exceeded)",
        "grid: 1 of 1 order refused by the gateway (key_reused)",
    ]


def test_what_passes_at_another_exchange_proves_nothing_unless_none_was_named() -> None:
    at_perp = changed(PASSED, exchange="perp")
    nowhere = changed(LATE, exchange="", lane=None, key=None, reason="unknown_exchange", status=404)
    late, unknown = refusals((1.0, [LATE]), (0.5, [nowhere]), (2.0, [at_perp]))
    assert (late.exchange, late.asked, late.passed_at) == ("spot", 1, None)
    assert (unknown.exchange, unknown.asked, unknown.passed_at) == ("", 2, 2.0)


def test_what_went_through_meanwhile_counts_as_asked() -> None:
    assert words(PASSED, LATE, PASSED, PASSED) == [
        "watcher: 1 of 3 reads refused by the gateway (deadline_exceeded)"
    ]


def test_one_that_is_refused_before_its_route_is_known_is_one_of_all_requests() -> None:
    forbidden = changed(PASSED, lane=None, key=None, reason="bot_forbidden", status=403)
    assert words(forbidden, PASSED, changed(PASSED, lane=Lane.ORDER)) == [
        "watcher: 1 of 3 requests refused by the gateway (bot_forbidden)"
    ]


def test_strangers_are_counted_and_told_by_where_the_latest_came_from() -> None:
    wrong_token = changed(LATE, bot=None, lane=None, reason="bot_unauthenticated", status=401)
    latest = changed(wrong_token, client="192.0.2.7", user_agent="curl/8.5.0")
    host = changed(wrong_token, reason="host_refused", status=421, client="user 1001")
    first, second = refusals((1.0, [*[wrong_token] * 6, latest]), (1.5, [host]))
    assert first.words == "stranger: 1 request refused by the gateway (host_refused; user 1001)"
    assert second.words == (
        "stranger: 7 requests refused by the gateway (bot_unauthenticated; the last: curl/8.5.0, 192.0.2.7)"
    )
    assert not second.is_grave(2.0)  # or anybody could turn the page yellow
    assert second.over_since(1.0 + QUIET_S) == 1.0


def test_an_exchange_that_fails_is_no_refusal_of_ours() -> None:
    """Nor is an order whose reply was lost when its key comes again: it may have executed."""
    broken = changed(LATE, reason="upstream_broken", status=502)
    assert words(changed(broken, upstream_errors=(upstream_error("lost", 1.0),))) == []
    assert words(*[changed(broken, attempts=0, lane=Lane.ORDER)] * 9) == []


def test_it_is_over_after_a_quiet_minute_in_which_something_passed() -> None:
    (record,) = refusals((1.0, [LATE]), (5.0, [PASSED]), (6.0, [PASSED]))
    assert record.over_since(1.0 + QUIET_S - 0.1) is None
    assert record.over_since(1.0 + QUIET_S) == 5.0


def test_a_bot_that_asks_for_nothing_any_more_was_not_helped() -> None:
    (record,) = refusals((1.0, [LATE]))
    assert record.over_since(9_999.0) is None


def test_one_that_comes_back_later_is_counted_anew() -> None:
    (record,) = refusals((1.0, [LATE] * 5), (5.0, [PASSED] * 9), (100.0, [LATE, PASSED]))
    assert (record.refused, record.asked, record.first_at) == (1, 2, 100.0)


def refused(count: int, asked: int, passed_at: float | None = None) -> RefusalCount:
    return RefusalCount("grid", "spot", Lane.ORDER, "queue_full", 1.0, 3.0, count, asked, passed_at)


GRAVE: dict[str, tuple[Callable[[], RefusalCount], bool]] = {
    "most of many": (lambda: refused(3, 6), True),
    "two": (lambda: refused(2, 2), False),
    "less than half": (lambda: refused(3, 7), False),
    "over": (lambda: refused(9, 9, passed_at=4.0), False),
}


@pytest.mark.parametrize(("made", "is_grave"), GRAVE.values(), ids=GRAVE)
def test_people_are_told_where_most_is_refused(made: Callable[[], RefusalCount], *, is_grave: bool) -> None:
    assert made().is_grave(100.0) is is_grave


def test_the_notice_ends_some_time_after_a_bot_stopped_asking_and_its_line_stays() -> None:
    stopped = refused(9, 9)
    assert stopped.is_grave(3.0 + 299.0)
    assert not stopped.is_grave(3.0 + 300.0)
    assert stopped.over_since(3.0 + 300.0) is None


def test_429s_of_today_begin_anew_with_the_day() -> None:
    limited = changed(SENT, upstream_errors=(upstream_error("rate_limited", 1.0),))
    recent = Recent()
    recent.take([limited, limited, changed(limited, key="alt")], 1.0)
    recent.turn(20_000)
    assert recent.at("spot").limited_today == {"main": 2, "alt": 1}
    recent.turn(20_001)
    recent.take([limited], 2.0)
    recent.turn(20_001)
    assert recent.at("spot").limited_today == {"main": 1}
    assert recent.at("spot").limited == 4


def test_the_last_order_of_each_bot_and_the_reads_that_share_a_reply() -> None:
    order = changed(SENT, lane=Lane.ORDER)
    later, other = changed(order, request_id="2"), changed(order, bot="watch")
    shared = changed(NEVER_SENT, shared="r-1")
    recent = after(order, later, other, SENT, changed(order, bot=None), shared, shared)
    assert recent.at("spot").orders == {"grid": later, "watch": other}
    assert [tick.shared for tick in recent.ended()] == [2]
