from decimal import Decimal

import pytest

from sealgate.config.quantities import (
    parse_amount,
    parse_amounts,
    parse_count,
    parse_seconds,
    parse_seconds_or_zero,
    parse_size,
    parse_uid,
    parse_weight,
)


@pytest.mark.parametrize(
    ("value", "seconds"), [(3, 3.0), (0.5, 0.5), ("2.5", 2.5), (" 10 ", 10.0), ("1e3", 1000.0)]
)
def test_seconds(value: object, seconds: float) -> None:
    assert parse_seconds(value) == parse_seconds_or_zero(value) == seconds


@pytest.mark.parametrize("value", [0, "0", 0.0])
def test_zero_seconds_only_where_it_means_something(value: object) -> None:
    assert parse_seconds_or_zero(value) == 0
    with pytest.raises(ValueError, match="above 0"):
        parse_seconds(value)


@pytest.mark.parametrize("value", [-1, "inf", "nan", "", "10s", True, None, [1], 10**400])
@pytest.mark.parametrize("parse", [parse_seconds, parse_seconds_or_zero])
def test_what_is_no_duration(parse: type, value: object) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse(value)


@pytest.mark.parametrize(("value", "weight"), [(2, 2.0), ("0.5", 0.5), (100, 100.0)])
def test_weights(value: object, weight: float) -> None:
    assert parse_weight(value) == weight


@pytest.mark.parametrize("value", [0, -1, 101, "x", "nan", True, None])
def test_what_is_no_weight(value: object) -> None:
    with pytest.raises(ValueError, match="is not a weight"):
        parse_weight(value)


@pytest.mark.parametrize(("value", "amount"), [("0.50", "0.50"), ("10000", "10000"), (5, "5")])
def test_amounts_are_decimals(value: object, amount: str) -> None:
    assert parse_amount(value) == parse_amounts(value) == Decimal(amount)
    assert parse_amounts({"BTC": value}) == {"BTC": Decimal(amount)}


def test_amounts_by_symbol_as_text() -> None:
    assert parse_amounts('{"BTC": "0.5", "ETH": 10}') == {"BTC": Decimal("0.5"), "ETH": Decimal(10)}


@pytest.mark.parametrize("value", [0.5, 0, "0", "0.0", "1e3", "-1", "+1", "", "x", True, None, "\u0661", [1]])
@pytest.mark.parametrize("parse", [parse_amount, parse_amounts, lambda value: parse_amounts({"BTC": value})])
def test_what_is_no_amount(parse: type, value: object) -> None:
    with pytest.raises(ValueError, match=r'is not an amount above 0; write it as text, as in "0\.5"'):
        parse(value)


def test_what_is_no_table_of_amounts() -> None:
    with pytest.raises(ValueError, match="has no symbol"):
        parse_amounts({})
    with pytest.raises(ValueError, match="is none; check quotes"):
        parse_amounts('{"BTC": }')


@pytest.mark.parametrize(("value", "count"), [(1, 1), ("32", 32), (5000.0, 5000)])
def test_counts(value: object, count: int) -> None:
    assert parse_count(value) == count


@pytest.mark.parametrize("value", [0, -1, 1.5, "1.5", "x", True, "inf", None])
def test_what_is_no_count(value: object) -> None:
    with pytest.raises(ValueError, match="is not a count"):
        parse_count(value)


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (1, 1),
        ("1048576", 1048576),
        ("1 MiB", 1048576),
        ("1MiB", 1048576),
        ("512 kib", 524288),
        ("2 GiB", 2147483648),
        ("10 B", 10),
        ("1 KB", 1000),
        ("5 MB", 5000000),
        ("1 GB", 1000000000),
    ],
)
def test_sizes(value: object, size: int) -> None:
    assert parse_size(value) == size


@pytest.mark.parametrize(
    "value", [0, -1, "0 MiB", "1.5 MiB", "1 MiBB", "MiB", "", "1e6", True, 1.5, None, "9" * 30]
)
def test_what_is_no_size(value: object) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        parse_size(value)


@pytest.mark.parametrize(("value", "uid"), [(0, 0), ("1001", 1001), (2**32 - 2, 2**32 - 2)])
def test_users(value: object, uid: int) -> None:
    assert parse_uid(value) == uid


@pytest.mark.parametrize("value", [-1, 1.5, "root", True, "", 2**32 - 1, 1e99, "inf"])
def test_what_is_no_user(value: object) -> None:
    with pytest.raises(ValueError, match="is not a user's number; "):
        parse_uid(value)


def test_the_user_that_all_strangers_look_like() -> None:
    with pytest.raises(ValueError, match="as all users of other containers appear"):
        parse_uid(65534)
