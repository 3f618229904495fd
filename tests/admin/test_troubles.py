"""What went wrong lately: one record for each key and kind, and at most one line a minute."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from rig.outcome import ANSWERED, changed
from rig.verdicts import upstream_error, verdict
from sealgate.admin import troubles as troubles_module
from sealgate.admin.troubles import Troubles
from sealgate.core.evidence import Known
from sealgate.core.outcome import Batch, Conclusion, Outcome
from sealgate.core.routes import Lane
from sealgate.core.venues.replies import Whose

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
        "evidence": "clock is fine (±2 ms), key is known: most likely the secret belongs to another key",
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
