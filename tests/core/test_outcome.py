import pytest

from sealgate.core.outcome import Conclusion, Outcome
from sealgate.core.routes import Lane

OUTCOME = Outcome(
    request_id="r1",
    bot="grid",
    key="main",
    method="POST",
    route="/order",
    lane=Lane.ORDER,
    status=200,
    conclusion=Conclusion.DONE,
    reason=None,
    detail=None,
    attempts=1,
    resends=(),
    broken=None,
    bot_s=0.0,
    queue_s=0.0,
    upstream_s=0.0,
    total_s=0.0,
    has_hung_up=False,
)


def test_the_conclusions_are_the_words_of_the_header() -> None:
    assert set(Conclusion) == {"done", "refused", "not_sent", "unknown"}


@pytest.mark.parametrize(
    ("times_s", "added_s"),
    [
        pytest.param((0.0, 0.0, 0.0, 0.25), 0.25, id="answered by the gateway"),
        pytest.param((1.0, 0.5, 0.0, 1.75), 0.25, id="waited and sent"),
        pytest.param((0.0, 0.5, 1.0, 1.75), 0.25, id="sent, and taken slowly by the bot"),
        pytest.param((0.0, 2.0, 0.0, 2.0), 0.0, id="nothing of its own"),
        pytest.param((0.0, 2.0, 0.0, 1.75), 0.0, id="never less than nothing"),
    ],
)
def test_the_gateways_own_share_of_the_time(
    times_s: tuple[float, float, float, float], added_s: float
) -> None:
    queue_s, upstream_s, bot_s, total_s = times_s
    outcome = OUTCOME._replace(queue_s=queue_s, upstream_s=upstream_s, bot_s=bot_s, total_s=total_s)
    assert outcome.added_s == added_s
