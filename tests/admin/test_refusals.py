"""What the gateway itself refused: by bot, lane and reason, until it is over."""

from collections.abc import Callable

import pytest

from rig.outcome import ANSWERED, changed
from rig.verdicts import upstream_error
from sealgate.admin.troubles import QUIET_S, Refusals, Refused
from sealgate.core.outcome import Batch, Outcome
from sealgate.core.routes import Lane

PASSED = changed(ANSWERED, bot="watcher", lane=Lane.READ)
LATE = changed(PASSED, reason="deadline_exceeded", status=504)


def taken(*batches: tuple[float, list[Outcome]]) -> Refusals:
    refusals = Refusals()
    for at, outcomes in batches:
        refusals(Batch(outcomes), at)
    return refusals


def words(refusals: Refusals) -> list[str]:
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


def test_strangers_are_counted_and_said_to_be_unknown() -> None:
    wrong_token = changed(LATE, bot=None, lane=None, reason="bot_unauthenticated", status=401)
    refusals = taken((1.0, [wrong_token] * 7))
    assert words(refusals) == ["unknown: 7 requests refused: bot_unauthenticated"]
    refusals(Batch([changed(wrong_token, reason="host_refused", status=421)]), 1.5)
    assert "unknown: 1 request refused: host_refused" in words(refusals)
    record = refusals.latest()[-1]
    assert not record.is_grave(2.0)  # or anybody could turn the page yellow
    assert record.over_since(1.0 + QUIET_S) == 1.0


def test_an_exchange_that_fails_is_no_refusal_of_ours() -> None:
    broken = changed(LATE, reason="upstream_broken", status=502)
    assert words(taken((1.0, [changed(broken, upstream_errors=(upstream_error("lost", 1.0),))]))) == []
    replayed = changed(broken, attempts=0)  # an Idempotency-Key whose reply is lost: nothing was sent
    assert words(taken((1.0, [replayed]))) == ["watcher: 1 of 1 read refused: upstream_broken"]


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


GRAVE: dict[str, tuple[Callable[[], Refused], bool]] = {
    "most of many": (lambda: record(3, 6), True),
    "two": (lambda: record(2, 2), False),
    "less than half": (lambda: record(3, 7), False),
    "over": (lambda: record(9, 9, passed_at=4.0), False),
}


def record(refused: int, asked: int, passed_at: float | None = None) -> Refused:
    return Refused("grid", Lane.ORDER, "queue_full", 1.0, 3.0, refused, asked, passed_at)


@pytest.mark.parametrize(("made", "is_grave"), GRAVE.values(), ids=GRAVE)
def test_people_are_told_where_most_is_refused(made: Callable[[], Refused], *, is_grave: bool) -> None:
    assert made().is_grave(100.0) is is_grave
