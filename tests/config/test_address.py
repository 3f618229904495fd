import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sealgate.config.addresses import Address, parse_address, parse_optional_address


@pytest.mark.parametrize(
    ("text", "address", "is_loopback"),
    [
        ("127.0.0.1:8787", Address("127.0.0.1", 8787), True),
        ("127.9.9.9:1", Address("127.9.9.9", 1), True),
        ("localhost:0", Address("localhost", 0), True),
        ("LOCALHOST:0", Address("localhost", 0), True),
        ("[::1]:8787", Address("::1", 8787), True),
        ("0.0.0.0:65535", Address("0.0.0.0", 65535), False),
        ("[::]:80", Address("::", 80), False),
        ("gateway.example:80", Address("gateway.example", 80), False),
        ("localhost.example:80", Address("localhost.example", 80), False),
    ],
)
def test_parses(text: str, address: Address, is_loopback: bool) -> None:
    assert parse_address(text) == address
    assert address.is_loopback is is_loopback


@pytest.mark.parametrize(
    ("value", "cause"),
    [
        ("", "is not host:port"),
        ("8787", "is not host:port"),
        ("127.0.0.1", "is not host:port"),
        ("127.0.0.1:", "is not host:port"),
        ("127.0.0.1:-1", "is not host:port"),
        ("127.0.0.1:٣", "is not host:port"),
        ("::1:8787", "is not host:port"),
        (8787, "is not host:port"),
        (":8787", "has no valid host"),
        ("a b:1", "has no valid host"),
        ("http//x:1", "has no valid host"),
        ("[::zz]:1", "has no valid host"),
        ("[127.0.0.1]:1", "brackets around a host that is not IPv6"),
        ("127.0.0.1:65536", "port out of range"),
        ("127.0.0.1:" + "9" * 5000, "port out of range"),
    ],
)
def test_refuses(value: object, cause: str) -> None:
    with pytest.raises(ValueError, match=cause):
        parse_address(value)


def test_nothing_is_no_address() -> None:
    assert parse_optional_address("") is None


hosts = st.ip_addresses().map(str) | st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)


@settings(deadline=None)
@given(st.builds(Address, hosts, st.integers(0, 65535)))
def test_what_is_written_parses_to_the_same(address: Address) -> None:
    assert parse_address(str(address)) == address
