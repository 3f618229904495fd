from collections.abc import Callable

import pytest

from sealgate.config.quantities import parse_aliases, parse_hosts, parse_list, parse_permissions


@pytest.mark.parametrize(
    ("value", "members"),
    [
        (["a", "b"], ("a", "b")),
        ("a,b", ("a", "b")),
        (" a , b, ", ("a", "b")),
        ('["a", "b"]', ("a", "b")),
        ('[{"match": "GET /x"}]', ({"match": "GET /x"},)),
        ("", ()),
    ],
)
def test_lists_from_toml_json_and_commas(value: object, members: tuple[object, ...]) -> None:
    assert parse_list(value) == members


def test_hosts_are_lower_case_and_without_brackets() -> None:
    assert parse_hosts(["Localhost", "[::1]", "127.0.0.1"]) == ("localhost", "::1", "127.0.0.1")


def test_aliases_keep_their_order() -> None:
    assert parse_aliases("main,alt") == ("main", "alt")


def test_permissions_are_a_set() -> None:
    assert parse_permissions(["trade", "read"]) == {"read", "trade"}


REFUSED: list[tuple[Callable[[object], object], object, str]] = [
    (parse_list, 3, "must be a list"),
    (parse_list, {"a": 1}, "must be a list"),
    (parse_list, '["a"', "begins like a JSON array"),
    (parse_hosts, [], "one or more different strings"),
    (parse_hosts, ["a", "a"], "one or more different strings"),
    (parse_hosts, ["a", 3], "one or more different strings"),
    (parse_hosts, ["localhost:8787"], "no valid host"),
    (parse_aliases, ["a b"], "usable name"),
    (parse_permissions, ["read", "withdraw"], "unknown permission"),
    (parse_permissions, "", "one or more different strings"),
]


@pytest.mark.parametrize(("parse", "value", "cause"), REFUSED)
def test_refuses(parse: Callable[[object], object], value: object, cause: str) -> None:
    with pytest.raises(ValueError, match=cause):
        parse(value)
