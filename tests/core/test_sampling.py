import pytest

from sealgate.core.sampling import BURST, BURST_GAP_S, QUICK_S, Sampling

INTERVAL = 30.0


def after(samples: int, half_round_trip_s: float = 0.03) -> Sampling:
    sampling = Sampling()
    for _ in range(samples):
        sampling = sampling.taken(half_round_trip_s)
    return sampling


@pytest.mark.parametrize(
    ("sampling", "error_s", "gap_s"),
    [
        pytest.param(Sampling(), None, QUICK_S, id="no sample yet: try again soon"),
        pytest.param(after(1), 0.03, BURST_GAP_S, id="in the burst"),
        pytest.param(after(BURST), 0.03, INTERVAL, id="as good as the network allows"),
        pytest.param(after(BURST), 0.5, QUICK_S, id="poor"),
        pytest.param(after(BURST, 0.4), 0.5, INTERVAL, id="a slow network cannot do better"),
        pytest.param(after(BURST, 0.0001), 0.009, INTERVAL, id="good enough, however fast the network"),
        pytest.param(after(BURST), None, QUICK_S, id="in trouble later on"),
    ],
)
def test_gap(sampling: Sampling, error_s: float | None, gap_s: float) -> None:
    assert sampling.gap_s(INTERVAL, error_s) == gap_s


@pytest.mark.parametrize("error_s", [None, 0.5])
def test_an_interval_shorter_than_a_quick_one_stays(error_s: float | None) -> None:
    assert after(BURST).gap_s(0.2, error_s) == 0.2
