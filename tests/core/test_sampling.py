import pytest

from sealgate.core.sampling import BURST, BURST_GAP_S, QUICK_S, SLOWEST_S, Gap, Sampling

INTERVAL = 30.0
SOON = 0.2


def after(samples: int, half_round_trip_s: float = 0.03) -> Sampling:
    sampling = Sampling()
    for _ in range(samples):
        sampling = sampling.taken(half_round_trip_s)
    return sampling


def in_trouble(failures: int, retry_after_s: float | None = None) -> Sampling:
    sampling = after(BURST)
    for _ in range(failures):
        sampling = sampling.failed(retry_after_s)
    return sampling


@pytest.mark.parametrize(
    ("sampling", "error_s", "gap"),
    [
        pytest.param(after(1), 0.03, Gap(BURST_GAP_S, BURST_GAP_S), id="in the burst"),
        pytest.param(after(BURST), 0.03, Gap(SOON, INTERVAL), id="as good as the network allows"),
        pytest.param(after(BURST), 0.5, Gap(SOON, QUICK_S), id="poor"),
        pytest.param(after(BURST, 0.4), 0.5, Gap(SOON, INTERVAL), id="a slow network cannot do better"),
        pytest.param(
            after(BURST, 0.0001), 0.009, Gap(SOON, INTERVAL), id="good enough, however fast the network"
        ),
        pytest.param(Sampling().failed(None), 0.0, Gap(QUICK_S, QUICK_S), id="nothing came yet"),
        pytest.param(in_trouble(3), 0.03, Gap(QUICK_S, 4.0), id="the gap doubles in trouble"),
        pytest.param(in_trouble(100), 0.03, Gap(QUICK_S, SLOWEST_S), id="but not for ever"),
        pytest.param(in_trouble(1, 60.0), 0.03, Gap(60.0, 60.0), id="a stated wait is kept to"),
        pytest.param(in_trouble(9).taken(0.03), 0.03, Gap(SOON, INTERVAL), id="a good one ends the trouble"),
    ],
)
def test_gap(sampling: Sampling, error_s: float, gap: Gap) -> None:
    assert sampling.gap(INTERVAL, error_s) == gap


@pytest.mark.parametrize("error_s", [0.03, 0.5])
def test_an_interval_shorter_than_a_quick_one_stays(error_s: float) -> None:
    assert after(BURST).gap(0.1, error_s) == Gap(0.1, 0.1)
