import pytest

from sealgate.core.host_name import host_name


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("localhost", "localhost"),
        ("LOCALHOST:8787", "localhost"),
        ("127.0.0.1:80", "127.0.0.1"),
        ("[::1]:8787", "::1"),
        ("[::1]", "::1"),
        ("evil.example:port", "evil.example:port"),
        ("", ""),
    ],
)
def test_the_name_in_a_host_header(value: str, name: str) -> None:
    assert host_name(value) == name
