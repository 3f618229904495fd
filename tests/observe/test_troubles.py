"""What went wrong lately: one record for each key and kind, and at most one line a minute."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from rig.outcome import ANSWERED, changed
from rig.verdicts import upstream_error, verdict
from sealgate.observe import troubles as troubles_module
from sealgate.observe.evidence import Known
from sealgate.observe.troubles import QUIET_S, RefusalCount, RefusalCounts, Troubles
from sealgate.orders.outcome import Batch, Conclusion, Outcome
from sealgate.venues.replies import Whose
from sealgate.venues.routes import Lane

KNOWN = Known(0.004, has_worked=True)


def met(
    troubles: Troubles, *errors: tuple[str, float], bot: str | None = "grid"
) -> Sequence[Mapping[str, Any]]:
    """Take errors in, of a kind and at a time; return what was logged."""
    with capture_logs() as logs:
        errors_met = tuple(upstream_error(*error, clock_error_s=0.002) for error in errors)
        outcome = changed(ANSWERED, bot=bot, conclusion=Conclusion.REFUSED, upstream_errors=errors_met)
        troubles(Batch([outcome]), errors[-1][1])
    return logs


def test_a_kind_that_comes_up_is_told_with_what_explains_it() -> None:
    (told,) = met(Troubles(lambda _: KNOWN), ("signature_invalid", 10.0))
    assert told == {
        "event": "upstream_error",
        "log_level": "warning",
        "kind": "signature_invalid",
        "key": "main",
        "bot": "grid",
        "count": 1,
        "evidence": "clock is fine (±2 ms), the key is known: most likely the secret belongs to another key",
        "advice": verdict("signature_invalid").advice,
        "see": "docs/errors.md#signature_invalid",
    }


def test_what_counts_is_what_was_known_of_the_clock_when_it_came() -> None:
    troubles = Troubles(lambda _: KNOWN)
    stepped = upstream_error("timestamp_outside", 10.0, clock_error_s=0.003, step_s=-3600.0)
    with capture_logs() as logs:
        troubles(Batch([changed(ANSWERED, upstream_errors=(stepped,))]), 10.0)
    assert logs[0]["evidence"] == (
        "the exchange's clock stepped by -3600.0 s; before that, clock was fine (±3 ms)"
    )
    assert logs[0]["advice"] == "Nothing to do: the gateway follows the exchange's clock."


def test_what_the_bot_asked_for_is_no_warning() -> None:
    kinds = {"off_tick": "info", "internal": "warning"}
    assert verdict("off_tick").whose is Whose.BOT
    for kind, level in kinds.items():
        (told,) = met(Troubles(lambda _: KNOWN), (kind, 10.0))
        assert (told["log_level"], told["evidence"]) == (level, None)


def test_from_then_on_once_a_minute_with_the_number_since() -> None:
    troubles = Troubles(lambda _: KNOWN)
    assert len(met(troubles, ("lost", 10.0), ("lost", 11.0))) == 1
    assert met(troubles, ("lost", 69.9)) == []
    (told,) = met(troubles, ("lost", 70.0))
    assert told["count"] == 3
    (record,) = troubles.latest()
    assert (record.count, record.last_at, record.unsaid) == (4, 70.0, 0)


def test_another_key_or_kind_is_another_record_and_the_latest_stands_first() -> None:
    troubles = Troubles(lambda _: KNOWN)
    met(troubles, ("lost", 1.0), ("late", 2.0), ("lost", 3.0))
    troubles(Batch([changed(ANSWERED, key="alt", upstream_errors=(upstream_error("late", 4.0),))]), 4.0)
    assert [(record.key, record.kind, record.count) for record in troubles.latest()] == [
        ("alt", "late", 1),
        ("main", "lost", 2),
        ("main", "late", 1),
    ]


def test_whose_the_latest_was_and_whether_its_key_had_worked_by_then() -> None:
    worked: set[str] = set()
    troubles = Troubles(lambda _: KNOWN, worked)
    met(troubles, ("key_invalid", 1.0))
    assert not troubles.latest()[0].had_worked
    worked.add("main")
    met(troubles, ("key_invalid", 2.0), bot=None)
    (record,) = troubles.latest()
    assert (record.bot, record.had_worked) == ("", True)


@pytest.mark.parametrize("resends", [("nonce",), ()])
def test_a_request_that_was_sent_again_and_accepted_shows_that_its_key_works(
    resends: tuple[str, ...],
) -> None:
    troubles = Troubles(lambda _: KNOWN)
    mended = changed(ANSWERED, resends=resends, upstream_errors=(upstream_error("key_invalid", 1.0),))
    assert mended.conclusion is Conclusion.DONE
    troubles(Batch([mended]), 1.0)
    assert troubles.latest()[0].had_worked is bool(resends)


def test_the_records_have_a_bound_and_the_oldest_goes(monkeypatch: Any) -> None:
    monkeypatch.setattr(troubles_module, "_MOST", 2)
    troubles = Troubles(lambda _: KNOWN)
    met(troubles, ("lost", 1.0), ("late", 2.0), ("lost", 3.0), ("internal", 4.0))
    assert [record.kind for record in troubles.latest()] == ["internal", "lost"]


def test_what_is_known_is_asked_for_only_where_something_is_said() -> None:
    asked: list[str] = []

    def known(key: str) -> Known:
        asked.append(key)
        return KNOWN

    met(Troubles(known), ("lost", 1.0), ("lost", 2.0))
    assert asked == ["main"]


READ = changed(ANSWERED, lane=Lane.READ)
ORDER = changed(ANSWERED, lane=Lane.ORDER)

# A kind that a read of `grid` met at 10 s, what went through later, and since when it is over at which time.
ENDS: dict[str, tuple[str, Outcome, dict[float, float | None]]] = {
    "a secret that is right again": ("signature_invalid", READ, {20.0: 20.0}),
    "another bot's read proves that, too": ("key_invalid", changed(READ, bot="maker"), {20.0: 20.0}),
    "an order proves nothing for reads": ("permission_missing", ORDER, {99.0: None}),
    "another key proves nothing": ("signature_invalid", changed(READ, key="alt"), {99.0: None}),
    "a refused one proves nothing": (
        "signature_invalid",
        changed(READ, conclusion=Conclusion.REFUSED),
        {99.0: None},
    ),
    "a reply given again proves nothing": ("signature_invalid", changed(READ, attempts=0), {99.0: None}),
    "what comes and goes needs a quiet minute": ("lost", READ, {20.0: None, 69.9: None, 70.0: 20.0}),
    "a bot that learned": ("off_tick", READ, {70.0: 20.0}),
    "another bot says nothing of that": ("off_tick", changed(READ, bot="maker"), {99.0: None}),
}


@pytest.mark.parametrize(("kind", "later", "over"), ENDS.values(), ids=ENDS)
def test_a_trouble_is_over_once_the_same_works(
    kind: str, later: Outcome, over: Mapping[float, float | None]
) -> None:
    troubles = Troubles(lambda _: KNOWN)
    met_one = changed(READ, conclusion=Conclusion.REFUSED, upstream_errors=(upstream_error(kind, 10.0),))
    troubles(Batch([met_one]), 10.0)
    troubles(Batch([later]), 20.0)
    troubles(Batch([later]), 25.0)
    (record,) = troubles.latest()
    assert {at: record.over_since(at) for at in over} == over


def test_a_trouble_that_comes_again_is_over_no_more() -> None:
    troubles = Troubles(lambda _: KNOWN)
    met_one = changed(
        READ, conclusion=Conclusion.REFUSED, upstream_errors=(upstream_error("key_invalid", 10.0),)
    )
    troubles(Batch([met_one, READ, met_one]), 10.0)
    (record,) = troubles.latest()
    assert (record.count, record.over_since(11.0)) == (2, None)


PASSED = changed(ANSWERED, bot="watcher", lane=Lane.READ)
LATE = changed(PASSED, reason="deadline_exceeded", status=504)


def taken(*batches: tuple[float, list[Outcome]]) -> RefusalCounts:
    refusals = RefusalCounts()
    for at, outcomes in batches:
        refusals(Batch(outcomes), at)
    return refusals


def words(refusals: RefusalCounts) -> list[str]:
    return [record.words for record in refusals.latest()]


def test_they_are_counted_by_bot_lane_and_reason() -> None:
    passed_order = changed(PASSED, lane=Lane.ORDER)
    reused = changed(passed_order, bot="grid", reason="key_reused", status=422)
    refusals = taken((1.0, [LATE] * 41 + [passed_order]), (2.0, [reused, passed_order]), (3.0, [LATE]))
    assert words(refusals) == [
        "watcher: 42 of 42 reads refused: deadline_exceeded",
        "grid: 1 of 1 order refused: key_reused",
    ]


def test_what_went_through_meanwhile_counts_as_asked() -> None:
    assert words(taken((1.0, [PASSED, LATE, PASSED, PASSED]))) == [
        "watcher: 1 of 3 reads refused: deadline_exceeded"
    ]


def test_one_that_is_refused_before_its_route_is_known_is_one_of_all_requests() -> None:
    forbidden = changed(PASSED, lane=None, key=None, reason="bot_forbidden", status=403)
    refusals = taken((1.0, [forbidden, PASSED, changed(PASSED, lane=Lane.ORDER)]))
    assert words(refusals) == ["watcher: 1 of 3 requests refused: bot_forbidden"]


def test_strangers_are_counted_and_told_by_where_the_latest_came_from() -> None:
    wrong_token = changed(LATE, bot=None, lane=None, reason="bot_unauthenticated", status=401)
    latest = changed(wrong_token, client="192.0.2.7", user_agent="curl/8.5.0")
    refusals = taken((1.0, [wrong_token] * 6 + [latest]))
    assert words(refusals) == [
        "stranger: 7 requests refused: bot_unauthenticated (the last: curl/8.5.0, 192.0.2.7)"
    ]
    refusals(Batch([changed(wrong_token, reason="host_refused", status=421, client="user 1001")]), 1.5)
    assert "stranger: 1 request refused: host_refused (user 1001)" in words(refusals)
    record = refusals.latest()[-1]
    assert not record.is_grave(2.0)  # or anybody could turn the page yellow
    assert record.over_since(1.0 + QUIET_S) == 1.0


def test_an_exchange_that_fails_is_no_refusal_of_ours() -> None:
    broken = changed(LATE, reason="upstream_broken", status=502)
    assert words(taken((1.0, [changed(broken, upstream_errors=(upstream_error("lost", 1.0),))]))) == []


def test_an_order_whose_reply_is_lost_is_not_called_refused_when_its_key_comes_again() -> None:
    replayed = changed(LATE, reason="upstream_broken", status=502, attempts=0, lane=Lane.ORDER)
    assert words(taken((1.0, [replayed] * 9))) == []  # it may have executed


def test_it_is_over_after_a_quiet_minute_in_which_something_passed() -> None:
    refusals = taken((1.0, [LATE]), (5.0, [PASSED]), (6.0, [PASSED]))
    (record,) = refusals.latest()
    assert record.over_since(1.0 + QUIET_S - 0.1) is None
    assert record.over_since(1.0 + QUIET_S) == 5.0


def test_a_bot_that_asks_for_nothing_any_more_was_not_helped() -> None:
    (record,) = taken((1.0, [LATE])).latest()
    assert record.over_since(9_999.0) is None


def test_one_that_comes_back_later_is_counted_anew() -> None:
    refusals = taken((1.0, [LATE] * 5), (5.0, [PASSED] * 9), (100.0, [LATE, PASSED]))
    (record,) = refusals.latest()
    assert (record.refused, record.asked, record.first_at) == (1, 2, 100.0)


GRAVE: dict[str, tuple[Callable[[], RefusalCount], bool]] = {
    "most of many": (lambda: record(3, 6), True),
    "two": (lambda: record(2, 2), False),
    "less than half": (lambda: record(3, 7), False),
    "over": (lambda: record(9, 9, passed_at=4.0), False),
}


def record(refused: int, asked: int, passed_at: float | None = None) -> RefusalCount:
    return RefusalCount("grid", Lane.ORDER, "queue_full", 1.0, 3.0, refused, asked, passed_at)


@pytest.mark.parametrize(("made", "is_grave"), GRAVE.values(), ids=GRAVE)
def test_people_are_told_where_most_is_refused(made: Callable[[], RefusalCount], *, is_grave: bool) -> None:
    assert made().is_grave(100.0) is is_grave


def test_the_notice_ends_some_time_after_a_bot_stopped_asking_and_its_line_stays() -> None:
    stopped = record(9, 9)
    assert stopped.is_grave(3.0 + 299.0)
    assert not stopped.is_grave(3.0 + 300.0)
    assert stopped.over_since(3.0 + 300.0) is None
