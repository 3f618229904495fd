from sealgate.core.pacing.reading import Kind


def test_the_kinds_are_written_as_other_gateways_read_them() -> None:
    assert list(map(str, Kind)) == ["unknown", "fixed", "sliding", "token bucket"]
