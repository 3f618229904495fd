"""No storm: warnings that repeat themselves are counted, in the log as a whole and for each kind of error."""

from datetime import UTC, datetime, timedelta
from typing import Any

import structlog
import structlog.testing

from rig.outcome import ANSWERED, changed
from rig.verdicts import upstream_error
from sealgate.admin.log import Repeats
from sealgate.admin.troubles import Troubles
from sealgate.core.evidence import Known
from sealgate.core.outcome import Batch, Outcome

START = datetime(2026, 1, 31, 12, tzinfo=UTC)


def line(after_s: float, event: str = "down", level: str = "warning", **values: Any) -> dict[str, Any]:
    stamp = (START + timedelta(seconds=after_s)).isoformat()
    return {"event": event, "level": level, "timestamp": stamp, **values}


def passed(*lines: dict[str, Any]) -> list[dict[str, Any]]:
    repeats, found = Repeats(), []
    for one in lines:
        try:
            found.append(dict(repeats(None, "", one)))
        except structlog.DropEvent:
            continue
    return found


def test_the_same_warning_is_counted() -> None:
    first, last = passed(*(line(second) for second in range(60)))
    assert "repeated" not in first
    assert last["repeated"] == 58


def test_others_pass() -> None:
    assert len(passed(line(0), line(1, "up"), line(2, cause="disk"), line(3, cause="net"))) == 4
    assert len(passed(line(0, level="info"), line(0, level="info"))) == 2
    assert len(passed(line(0, request_id="a"), line(0, request_id="b"))) == 1


def test_a_clock_that_was_set_back_silences_nothing() -> None:
    assert len(passed(line(0), line(-3600))) == 2


def test_what_is_remembered_is_bounded() -> None:
    repeats = Repeats()
    for number in range(1000):
        repeats(None, "", line(0, number=number))
    assert len(repeats._said) == 256


def met(kind: str, at: float) -> Outcome:
    return changed(ANSWERED, upstream_errors=(upstream_error(kind, at, clock_error_s=0.004),))


def test_errors_of_one_kind_are_one_line_a_minute() -> None:
    troubles = Troubles(lambda _: Known(None, has_worked=False))
    with structlog.testing.capture_logs() as lines:
        troubles(Batch([met("signature_invalid", second / 10) for second in range(1210)]), 120.9)
        troubles(Batch([met("off_tick", 121.0)]), 121.0)
    assert [one["count"] for one in lines] == [1, 600, 600, 1]
    assert [one["log_level"] for one in lines] == ["warning"] * 3 + ["info"]
    assert lines[0]["evidence"].startswith("clock is fine (±4 ms), key is known")
    assert lines[0]["advice"]
    assert lines[0]["see"] == "docs/errors.md#signature_invalid"
    assert [(one.kind, one.count) for one in troubles.latest()] == [
        ("off_tick", 1),
        ("signature_invalid", 1210),
    ]
