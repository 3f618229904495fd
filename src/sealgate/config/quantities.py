"""Quantities: seconds, sizes in bytes and counts, from numbers or text (the environment has only text)."""

import json
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType

_SIZE = re.compile(r"(?P<number>[0-9]{1,15}) *(?P<unit>[A-Za-z]*)")
_AMOUNT = re.compile(r"[0-9]{1,40}(\.[0-9]{1,40})?")
_HEAVIEST = 100  # a share so large would leave the others next to nothing
_NOBODY_AT_ALL = 2**32 - 1  # chown(2) means "unchanged" by it
_OVERFLOW = 65534  # user_namespaces(7): a user that is not mapped into this namespace
_UNITS = {
    "": 1,
    "B": 1,
    "KB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
    "KIB": 1024,
    "MIB": 1024**2,
    "GIB": 1024**3,
}


def parse_seconds(value: object) -> float:
    """Parse a duration of more than nothing."""
    seconds = _number(value)
    if not 0 < seconds < math.inf:
        raise ValueError("is not a duration; write a number of seconds above 0")
    return seconds


def parse_seconds_or_zero(value: object) -> float:
    """Parse a duration that may be nothing."""
    seconds = _number(value)
    if not 0 <= seconds < math.inf:
        raise ValueError("is not a duration; write a number of seconds, 0 or more")
    return seconds


def parse_count(value: object) -> int:
    """Parse a whole number above 0."""
    number = _number(value)
    if not 1 <= number < math.inf or number != int(number):
        raise ValueError("is not a count; write a whole number above 0")
    return int(number)


def parse_weight(value: object) -> float:
    """Parse a share against others' shares."""
    weight = _number(value)
    if not 0 < weight <= _HEAVIEST:
        raise ValueError(f"is not a weight; write a number above 0, at most {_HEAVIEST}")
    return weight


def parse_uid(value: object) -> int:
    """Parse a user's number."""
    uid = _number(value)
    if not 0 <= uid < _NOBODY_AT_ALL or uid != int(uid):
        raise ValueError("is not a user's number; write what `id -u NAME` prints")
    if uid == _OVERFLOW:
        raise ValueError(f"is {_OVERFLOW}, as all users of other containers appear; give the bot a user here")
    return int(uid)


def parse_size(value: object) -> int:
    """Parse a size in bytes: a whole number, or text with a unit such as "512 KiB" or "1 MB"."""
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    found = _SIZE.fullmatch(text.strip())
    size = int(found["number"]) * _UNITS.get(found["unit"].upper(), 0) if found else 0
    if size == 0:
        raise ValueError('is not a size above 0; write bytes, or a unit as in "512 KiB" or "1 MB"')
    return size


def parse_amount(value: object) -> Decimal:
    """Parse a decimal amount above 0: text, or a whole number. A float is not what was written."""
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    if not _AMOUNT.fullmatch(text) or not (amount := Decimal(text)):
        raise ValueError('is not an amount above 0; write it as text, as in "0.5"')
    return amount


def parse_amounts(value: object) -> Decimal | Mapping[str, Decimal]:
    """Parse one amount for all symbols, or a table of amounts by symbol."""
    table = value
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            table = json.loads(value)
        except ValueError:
            raise ValueError("begins like a JSON table but is none; check quotes and commas") from None
    if not isinstance(table, Mapping):
        return parse_amount(table)
    if not table:
        raise ValueError('has no symbol; write one amount, or a table such as { BTC = "0.5" }')
    return MappingProxyType({str(symbol): parse_amount(amount) for symbol, amount in table.items()})


def _number(value: object) -> float:
    """Return a number, or not-a-number for all else; true and false are no numbers here."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return math.nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan
