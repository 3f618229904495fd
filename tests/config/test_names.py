from collections.abc import Callable

import pytest

from sealgate.config.names import (
    is_plain_path,
    parse_api_key,
    parse_header_prefix,
    parse_match,
    parse_name,
    parse_optional_path,
    parse_pointer,
    parse_prefix,
    split_match,
)


@pytest.mark.parametrize("path", ["", "/v1", "/v1/trade", "/a.b/~c/_-", "/..a", "/a..", "/..."])
def test_plain_paths(path: str) -> None:
    assert is_plain_path(path)


@pytest.mark.parametrize(
    "path", ["/", "v1", "/v1/", "//v1", "/a/./b", "/a/..", "/..", "/%61", "/a b", "/ä", "/a;b", "/a?b"]
)
def test_paths_with_two_readings(path: str) -> None:
    assert not is_plain_path(path)


@pytest.mark.parametrize(
    ("value", "prefix"), [("/v1/trade", "/v1/trade"), ("/v1/trade/", "/v1/trade"), ("/", "")]
)
def test_a_prefix_has_no_slash_at_its_end(value: str, prefix: str) -> None:
    assert parse_prefix(value) == prefix


ACCEPTED: list[tuple[Callable[[str], object], str]] = [
    (parse_name, "main"),
    (parse_name, "Grid-2_b"),
    (parse_name, "x" * 32),
    (parse_optional_path, "/v1/trade/time"),
    (parse_header_prefix, "X-SERVICE-"),
    (parse_api_key, "ak_live-9/+=!"),
    (parse_pointer, ""),
    (parse_pointer, "/data/serverTime"),
    (parse_pointer, "/a~1b/~0/0"),
    (parse_match, "POST /v1/trade/orders/{orderId}/query"),
]


@pytest.mark.parametrize(("parse", "value"), ACCEPTED)
def test_keeps_what_is_right(parse: Callable[[str], object], value: str) -> None:
    assert parse(value) == value


REFUSED: list[tuple[Callable[..., object], object, str]] = [
    (parse_name, "", "usable name"),
    (parse_name, "x" * 33, "usable name"),
    (parse_name, "a b", "usable name"),
    (parse_name, "ä", "usable name"),
    (parse_name, "a\n", "usable name"),
    (parse_prefix, "", "plain path"),
    (parse_prefix, "v1", "plain path"),
    (parse_prefix, "/v1/../v2", "plain path"),
    (parse_prefix, 1, "plain path"),
    (parse_optional_path, "/time/", "plain path"),
    (parse_optional_path, "/time?x=1", "plain path"),
    (parse_optional_path, None, "plain path"),
    (parse_header_prefix, "", "cannot begin a header"),
    (parse_header_prefix, "X SERVICE", "cannot begin a header"),
    (parse_header_prefix, "X:", "cannot begin a header"),
    (parse_header_prefix, "X-\r\n", "cannot begin a header"),
    (parse_api_key, "", "is not an API key"),
    (parse_api_key, "a b", "is not an API key"),
    (parse_api_key, "ä", "is not an API key"),
    (parse_api_key, "a\n", "is not an API key"),
    (parse_api_key, 17, "is not an API key"),
    (parse_pointer, "data", "JSON pointer"),
    (parse_pointer, "/a~2", "JSON pointer"),
    (parse_match, "POST", "METHOD and path"),
    (parse_match, "post /x", "METHOD and path"),
    (parse_match, "TRACE /x", "METHOD and path"),
    (parse_match, "GET x", "METHOD and path"),
    (parse_match, "GET /a/../b", "METHOD and path"),
    (parse_match, "GET /{A B}", "METHOD and path"),
    (parse_match, 3, "must be a string"),
]


@pytest.mark.parametrize(("parse", "value", "cause"), REFUSED)
def test_refuses(parse: Callable[..., object], value: object, cause: str) -> None:
    with pytest.raises(ValueError, match=cause):
        parse(value)


def test_a_match_splits_into_method_and_path() -> None:
    assert split_match("DELETE /v1/trade/order/{id}") == ("DELETE", "/v1/trade/order/{id}")
