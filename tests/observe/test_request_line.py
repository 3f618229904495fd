"""The log line of a request: its fields, and its level."""

import json
from typing import Any

import pytest

from rig.outcome import ANSWERED, changed
from rig.verdicts import upstream_error
from sealgate.observe.request_line import level_of, request_line
from sealgate.orders.outcome import Conclusion, Outcome
from sealgate.venues.routes import Lane

ORDER = changed(
    ANSWERED,
    method="POST",
    route="/order",
    lane=Lane.ORDER,
    queue_s=0.25,
    upstream_s=0.0125,
    total_s=0.2635,
)
FIELDS = {
    "timestamp": "now",
    "level": "info",
    "event": "request",
    "id": "r-1",
    "bot": "grid",
    "exchange": "spot",
    "key": "main",
    "method": "POST",
    "route": "/order",
    "status": 200,
    "outcome": "done",
    "attempts": 1,
    "queue_ms": 250.0,
    "upstream_ms": 12.5,
    "added_ms": 1.0,
}
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
STRANGER = changed(
    ORDER, bot=None, key=None, lane=None, attempts=0, status=404, reason="outside_prefix", detail="Outside."
)
OF_STRANGER = {
    "bot": "stranger",
    "exchange": "spot",
    "status": 404,
    "attempts": 0,
    "client": "192.0.2.7",
    "user_agent": "curl/8 token=***",
    "reason": "outside_prefix",
    "detail": "Outside.",
}

LINES: dict[str, tuple[Outcome, dict[str, Any]]] = {
    "plain": (ORDER, {}),
    "traced": (changed(ORDER, trace_id=TRACE), {"trace_id": TRACE}),
    "sent again, and traced": (
        changed(ORDER, trace_id=TRACE, attempts=3, resends=("rate_limited", "lost")),
        {"attempts": 3, "trace_id": TRACE, "resends": "rate_limited,lost"},
    ),
    "with errors": (
        changed(ORDER, upstream_errors=tuple(upstream_error(kind, 1.0) for kind in ("off_tick", "lost"))),
        {"errors": "off_tick,lost"},
    ),
    "observed by a policy": (changed(ORDER, detail="Not refused, as ..."), {"detail": "Not refused, as ..."}),
    "cut": (changed(ORDER, broken="cut short"), {"broken": "cut short"}),
    "abandoned": (changed(ORDER, has_hung_up=True), {"hung_up": True}),
    "with another's reply": (changed(ORDER, attempts=0, shared="r-0"), {"attempts": 0, "shared": "r-0"}),
    "a stranger's": (changed(STRANGER, client="192.0.2.7", user_agent="curl/8 token=canary"), OF_STRANGER),
    "a name of a request that JSON escapes": (changed(ORDER, request_id='"\\'), {"id": '"\\'}),
}


@pytest.mark.parametrize(("outcome", "fields"), LINES.values(), ids=LINES)
def test_a_line_has_what_applies_to_its_request(outcome: Outcome, fields: dict[str, Any]) -> None:
    line = json.loads(request_line(outcome, "info", "now"))
    expected = FIELDS | fields
    if outcome.key is None:
        del expected["key"]
    assert line == expected
    assert list(line)[:3] == ["timestamp", "level", "event"]


DOUBTFUL = changed(
    ORDER,
    status=503,
    conclusion=Conclusion.UNKNOWN,
    upstream_errors=(upstream_error("other_5xx", 1.0),),
)

LEVELS: dict[str, tuple[Outcome, str]] = {
    "an answer": (ORDER, "info"),
    "a fault of the bot": (STRANGER, "info"),
    "a fault of the exchange": (changed(ORDER, reason="upstream_broken"), "warning"),
    "a reply that was cut": (changed(ORDER, broken="cut short"), "warning"),
    "an order in doubt, though the exchange answered": (DOUBTFUL, "warning"),
    "a read": (changed(DOUBTFUL, lane=Lane.READ), "info"),
    "an outcome that was told before": (changed(DOUBTFUL, attempts=0), "info"),
}


@pytest.mark.parametrize(("outcome", "level"), LEVELS.values(), ids=LEVELS)
def test_what_people_should_look_at_is_a_warning(outcome: Outcome, level: str) -> None:
    assert level_of(outcome) == level
