"""When what is to be told should go."""

import math
from collections.abc import Callable

import pytest

from sealgate.cluster.member_pacer import Outbox
from sealgate.cluster.messages import Completion, Note
from sealgate.limits.claims import Claim, Fate, LimitReply
from sealgate.venues.routes import Lane

OVER = Completion("x", LimitReply(Fate.ACCEPTED), 0.5, 1.0)
CLAIM = Claim("x", "bot", Lane.ORDER, 9.0)


@pytest.mark.parametrize(
    ("tell", "due_at"),
    [
        pytest.param(lambda box: box.waits(CLAIM, 1.0), 1.0, id="who waits: now"),
        pytest.param(lambda box: box.begin([], [], 1.0), 1.0, id="who is new: now"),
        pytest.param(lambda box: box.gone("x"), -math.inf, id="who is gone: at once"),
        pytest.param(lambda box: box.sent("x", 1.0), 1.01, id="what was sent: in company"),
        pytest.param(lambda box: box.wants(3, 1.0), 1.01, id="a wish: in company"),
        pytest.param(lambda box: box.completed(OVER, 1.0, is_urgent=True), 1.0, id="an urgent answer: now"),
        pytest.param(lambda box: box.completed(OVER, 1.0, is_urgent=False), 1.01, id="an answer: in company"),
    ],
)
def test_when_a_note_is_due(tell: Callable[[Outbox], None], due_at: float) -> None:
    outbox = Outbox()
    tell(outbox)
    assert outbox.due_at == pytest.approx(due_at)
    assert outbox.take() != Note()
    assert (outbox.take(), outbox.due_at) == (Note(), math.inf)
