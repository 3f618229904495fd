"""Quantities and lists: numbers or text in TOML; in the environment text, lists as JSON or with commas."""

import json
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType

from sealgate.config.addresses import parse_host
from sealgate.config.names import parse_name
from sealgate.limits.quotas import Quota

_SIZE = re.compile(r"(?P<number>[0-9]{1,15}) *(?P<unit>[A-Za-z]*)")
AMOUNT = re.compile(r"[0-9]{1,40}(\.[0-9]{1,40})?")
HEAVIEST = 100  # a share so large would leave the others next to nothing
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
PERMISSIONS = ("read", "trade", "keys")
VARIABLES = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\*?")
_LIMIT = re.compile(r"(?P<requests>[0-9]{1,9}) */ *(?P<count>[0-9]{1,6}(\.[0-9]{1,3})?)? *(?P<unit>ms|s|m|h)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


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
    if not 0 < weight <= HEAVIEST:
        raise ValueError(f"is not a weight; write a number above 0, at most {HEAVIEST}")
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
    if not AMOUNT.fullmatch(text) or not (amount := Decimal(text)):
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


def parse_list(value: object) -> tuple[object, ...]:
    """Return the members of an array, of a JSON array in text, or of comma separated text."""
    members = _from_text(value) if isinstance(value, str) else value
    if not isinstance(members, list | tuple):
        raise ValueError("must be a list")  # noqa: TRY004 - pydantic turns a ValueError into a problem
    return tuple(members)


def parse_hosts(value: object) -> tuple[str, ...]:
    """Parse Host names: lower case, without port, an IPv6 address without brackets."""
    return tuple(parse_host(host.removeprefix("[").removesuffix("]")) for host in _strings(value))


def parse_aliases(value: object) -> tuple[str, ...]:
    """Parse a bot's keys: the first is its default."""
    return tuple(parse_name(alias) for alias in _strings(value))


def parse_variables(value: object) -> tuple[str, ...]:
    """Parse names of environment variables; one with a `*` at its end stands for all that begin so."""
    names = _strings(value) if value else ()
    if not all(VARIABLES.fullmatch(name) for name in names):
        raise ValueError(
            "has an entry that is not the name of a variable, or their beginning such as VAULT_*"
        )
    return names


def parse_symbols(value: object) -> tuple[str, ...]:
    """Parse symbols as the exchange writes them, letter by letter."""
    symbols = _strings(value)
    if not all(symbol and symbol.isprintable() for symbol in symbols):
        raise ValueError("has an entry that is not a symbol")
    return symbols


def parse_permissions(value: object) -> frozenset[str]:
    """Parse what a bot may do."""
    chosen = frozenset(_strings(value))
    if not chosen <= set(PERMISSIONS):
        raise ValueError(f"has an unknown permission; choose from {', '.join(PERMISSIONS)}")
    return chosen


def _strings(value: object) -> tuple[str, ...]:
    members = tuple(member for member in parse_list(value) if isinstance(member, str))
    if not members or len(set(members)) != len(parse_list(value)):
        raise ValueError("must be a list of one or more different strings")
    return members


def _from_text(text: str) -> object:
    if not text.lstrip().startswith("["):
        return [member.strip() for member in text.split(",") if member.strip()]
    try:
        return json.loads(text)
    except ValueError:
        raise ValueError("begins like a JSON array but is not one; check quotes and commas") from None


def parse_known_limits(value: object) -> tuple[Quota, ...]:
    """Parse a list of limits; a unit alone is one of it ("20/s")."""
    return tuple(_parse(str(member)) for member in parse_list(value))


def _parse(text: str) -> Quota:
    found = _LIMIT.fullmatch(text.strip())
    n, count = (int(found["requests"]), float(found["count"] or 1)) if found else (0, 0.0)
    if found is None or not n or not count:
        raise ValueError('is not a limit; write requests per time, as in "1200/60s"')
    return Quota(n, count * _SECONDS[found["unit"]])
