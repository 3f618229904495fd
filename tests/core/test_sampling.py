import pytest

from sealgate.core.clock import Gap, Sampling

INTERVAL = 30.0
SOON = 0.2


def after(samples: int, half_round_trip_s: float = 0.03) -> Sampling:
    sampling = Sampling()
    for _ in range(samples):
        sampling = sampling.taken(half_round_trip_s)
    return sampling


def in_trouble(failures: int, retry_after_s: float | None = None) -> Sampling:
    sampling = after(5)
    for _ in range(failures):
        sampling = sampling.failed(retry_after_s)
    return sampling


@pytest.mark.parametrize(
    ("sampling", "error_s", "gap"),
    [
        pytest.param(after(0), 0.03, Gap(0.05, 0.05), id="at first"),
        pytest.param(after(4), 0.03, Gap(0.05, 0.05), id="at the end of the burst"),
        pytest.param(after(9), 0.03, Gap(SOON, INTERVAL), id="long after the burst"),
        pytest.param(after(5), 0.06, Gap(SOON, INTERVAL), id="twice the best"),
        pytest.param(after(5), 0.0601, Gap(SOON, 1.0), id="more than twice the best"),
        pytest.param(after(5, 0.0001), 0.01, Gap(SOON, INTERVAL), id="just good enough"),
        pytest.param(after(5, 0.0001), 0.0101, Gap(SOON, 1.0), id="not good enough on a fast network"),
        pytest.param(in_trouble(1), 0.03, Gap(1.0, 1.0), id="the first trouble"),
        pytest.param(in_trouble(2), 0.03, Gap(1.0, 2.0), id="the second"),
        pytest.param(after(1), 0.03, Gap(0.05, 0.05), id="in the burst"),
        pytest.param(after(5), 0.03, Gap(SOON, INTERVAL), id="as good as the network allows"),
        pytest.param(after(5), 0.5, Gap(SOON, 1.0), id="poor"),
        pytest.param(after(5, 0.4), 0.5, Gap(SOON, INTERVAL), id="a slow network cannot do better"),
        pytest.param(
            after(5, 0.0001), 0.009, Gap(SOON, INTERVAL), id="good enough, however fast the network"
        ),
        pytest.param(Sampling().failed(None), 0.0, Gap(1.0, 1.0), id="nothing came yet"),
        pytest.param(in_trouble(3), 0.03, Gap(1.0, 4.0), id="the gap doubles in trouble"),
        pytest.param(in_trouble(100), 0.03, Gap(1.0, 30.0), id="but not for ever"),
        pytest.param(in_trouble(1, 60.0), 0.03, Gap(60.0, 60.0), id="a stated wait is kept to"),
        pytest.param(in_trouble(9).taken(0.03), 0.03, Gap(SOON, INTERVAL), id="a good one ends the trouble"),
    ],
)
def test_gap(sampling: Sampling, error_s: float, gap: Gap) -> None:
    assert sampling.gap(INTERVAL, error_s) == gap


@pytest.mark.parametrize("error_s", [0.03, 0.5])
def test_an_interval_shorter_than_a_quick_one_stays(error_s: float) -> None:
    assert after(5).gap(0.1, error_s) == Gap(0.1, 0.1)
