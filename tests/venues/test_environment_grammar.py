"""Environments, which are the test networks of exchanges: their grammar."""

import pytest

from sealgate.venues.environments import Environment
from sealgate.venues.venue import VenueError, read_venue

LEAST = (
    'name = "mine"\ntitle = "Mine"\n[signing]\nmessage = "{timestamp}"\nheaders = { SIGN = "{signature}" }\n'
)


def test_a_file_says_what_is_other_in_an_environment() -> None:
    text = """[environments.test]
base_url = "https://testnet.example.com"
[environments.demo]
headers = { x-demo = "1" }
streams = { "ws.example.com" = "demo.example.com:8443", "ws.example.com:9443" = "demo.example.com" }
"""
    assert read_venue("mine.toml", LEAST + text).environments == {
        "test": Environment("https://testnet.example.com"),
        "demo": Environment(
            headers={"x-demo": "1"},
            streams={
                "ws.example.com": "demo.example.com:8443",
                "ws.example.com:9443": "demo.example.com",
            },
        ),
    }
    assert read_venue("mine.toml", LEAST).environments == {}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("[environments.Test]", "6: 'Test' is not a name such as test"),
        ("[environments.test]", "6: test changes nothing: it may have base_url, headers, streams"),
        ('[environments]\ntest = "x"', "7: test must be a table"),
        ('[environments.test]\nbase = ""', "7: unknown key base; did you mean base_url?"),
        (
            '[environments.test]\nbase_url = "http://x.y"',
            "7: base_url = 'http://x.y' is not an https address without a slash at its end",
        ),
        ('[environments.test]\nheaders = { "A B" = "1" }', "7: 'A B' is not a header name"),
        ('[environments.test]\nheaders = { A = "a\\r\\nb" }', "7: A = 'a\\r\\nb' is not a value of a header"),
        ('[environments.test]\nheaders = { A = "" }', "7: A = '' is not a value of a header"),
        ('[environments.test]\nheaders = { sign = "1" }', "7: sign is a header of [signing], which sets it"),
        ('[environments.test.streams]\n"wss://a.b" = "c.d"', "7: 'wss://a.b' is not a host such as"),
        ('[environments.test.streams]\n"a.b" = "c.d/x"', "7: a.b = 'c.d/x' is not a host such as"),
    ],
)
def test_a_broken_environment_is_refused_with_its_place(text: str, error: str) -> None:
    with pytest.raises(VenueError) as raised:
        read_venue("mine.toml", LEAST + text)
    assert str(raised.value).startswith(f"mine.toml:{error}")


def test_hosts_of_streams_stand_in_for_those_that_are_listed() -> None:
    listed = ["a.example.com", "b.example.com:9443"]
    assert Environment().stream_hosts(listed) == {host: (host, host) for host in listed}
    of_test = Environment(streams={"a.example.com": "test.example.com", "c.example.com": "d.example.com"})
    there = ("a.example.com", "test.example.com")
    assert of_test.stream_hosts(listed) == dict.fromkeys(there, there)


def test_two_hosts_may_have_the_same_one_in_the_place_of_both() -> None:
    both = Environment(streams={"a.example.com": "test.example.com", "b.example.com": "test.example.com"})
    assert both.stream_hosts(["a.example.com", "b.example.com"]) == {
        "a.example.com": ("a.example.com", "test.example.com"),
        "test.example.com": ("a.example.com", "test.example.com"),
        "b.example.com": ("b.example.com", "test.example.com"),
    }
