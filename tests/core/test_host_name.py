import pytest

from sealgate.core.target import host_name


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("localhost", "localhost"),
        ("LOCALHOST:8787", "localhost"),
        ("127.0.0.1:80", "127.0.0.1"),
        ("[::1]:8787", "::1"),
        ("[::1]", "::1"),
        ("my_bot.internal:1", "my_bot.internal"),
        ("[2001:db8::FF]", "2001:db8::ff"),
        ("::1", ""),
        ("evil.example:port", ""),
        ("localhost:", ""),
        ("localhost:123456", ""),
        ("[localhost]", ""),
        ("[::1", ""),
        ("localhost]", ""),
        ("[localhost", ""),
        ("[::1]x", ""),
        ("me@localhost", ""),
        ("localhost/", ""),
        ("localhost, localhost", ""),
        ("localhost\n", ""),
        ("LOCALHO\u017ft", ""),
        ("", ""),
    ],
)
def test_the_name_in_a_host_header(value: str, name: str) -> None:
    assert host_name(value) == name
