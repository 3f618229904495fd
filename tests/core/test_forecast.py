"""When the next 429 is to be expected."""

import pytest

from sealgate.core.status import Use, forecast

USE = Use(used=10, n=20, window_s=1, rate=5, waiting=0, pause_s=0, spent_s=0)


@pytest.mark.parametrize(
    ("use", "in_s", "words"),
    [
        (USE, None, "not at this pace"),
        (USE._replace(pause_s=2.5, waiting=3), None, "paused for 2.5 s more"),
        (USE._replace(spent_s=2.5, n=None), None, "held off: the exchange says nothing is left for 2.5 s"),
        (USE._replace(pause_s=0.5), None, "paused for 0.5 s more"),
        (USE._replace(spent_s=0.5), None, "held off: the exchange says nothing is left for 0.5 s"),
        (USE._replace(used=20.01, rate=20.01), None, "not at this pace"),  # it stays
        (USE._replace(rate=20), 1.0, "in about 1 s at this pace"),  # just as much as the limit lets go
        (USE._replace(n=None), None, "no limit known yet"),
        (USE._replace(waiting=1, rate=50), None, "held off: requests wait instead"),
        (USE._replace(rate=30), 0.5, "in about 0 s at this pace"),
        (USE._replace(window_s=60, used=0, n=1200, rate=30), 40, "in about 40 s at this pace"),
        (USE._replace(window_s=60, used=600, n=1200, rate=30), 30, "in about 30 s at this pace"),
        (USE._replace(used=25, rate=26), 0, "in about 0 s at this pace"),
        (USE._replace(used=30, rate=25), None, "not at this pace"),  # it falls
    ],
)
def test_the_forecast(use: Use, in_s: float | None, words: str) -> None:
    assert forecast(use) == (in_s, words)
