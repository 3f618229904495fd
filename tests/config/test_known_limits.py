import pytest

from sealgate.config.quantities import KnownLimit, parse_known_limits


@pytest.mark.parametrize(
    ("value", "limits"),
    [
        pytest.param(["1200/60s"], (KnownLimit(1200, 60.0),), id="seconds"),
        pytest.param(["20/s"], (KnownLimit(20, 1.0),), id="a unit alone"),
        pytest.param(["1200/1m", "5/100ms"], (KnownLimit(1200, 60.0), KnownLimit(5, 0.1)), id="two stacked"),
        pytest.param(
            "20/s, 3600 / 1h", (KnownLimit(20, 1.0), KnownLimit(3600, 3600.0)), id="from the environment"
        ),
        pytest.param([], (), id="none: learned"),
    ],
)
def test_limits(value: object, limits: tuple[KnownLimit, ...]) -> None:
    assert parse_known_limits(value) == limits


@pytest.mark.parametrize(
    "value", [["0/1s"], ["20/0s"], ["20"], ["20/1d"], ["-1/s"], ["x/s"], [20], ["20/s/s"]]
)
def test_what_is_no_limit(value: object) -> None:
    with pytest.raises(ValueError, match="is not a limit"):
        parse_known_limits(value)


def test_a_limit_reads_as_it_is_written() -> None:
    assert str(KnownLimit(1200, 60.0)) == "1200/60s"
