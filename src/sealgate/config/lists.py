"""Lists: arrays in TOML, JSON or comma separated text in the environment."""

import json

from sealgate.config.address import parse_host
from sealgate.config.names import parse_name

PERMISSIONS = ("read", "trade", "keys")


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


def parse_symbols(value: object) -> tuple[str, ...]:
    """Parse symbols as the exchange writes them, letter by letter."""
    symbols = _strings(value)
    if not all(symbol and symbol.isprintable() for symbol in symbols):
        raise ValueError("holds what is no symbol")
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
