"""Values as they are written in TOML, from what the parsers made of them."""

import json
from collections.abc import Mapping

from sealgate.config.quantities import parse_size
from sealgate.config.settings import Setting
from sealgate.config.venues import venue_text
from sealgate.core.venues.venue import Venue

_UNITS = ((1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"))


def plain_value(setting: Setting, value: object) -> object:
    """Return a value as text, number, truth value or list of these; None, for no value, is ""."""
    if setting.parser is parse_size and isinstance(value, int):
        return _size(value)
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {name: str(member) for name, member in value.items()}
    if isinstance(value, frozenset):
        return sorted(map(str, value))
    if isinstance(value, tuple):
        return [str(member) for member in value]
    return venue_text(value) if isinstance(value, Venue) else "" if value is None else str(value)


def toml_text(value: object) -> str:
    """Return a plain value as TOML writes it. JSON's form of each is TOML's, too."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{json.dumps(name)} = {toml_text(one)}' for name, one in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml_text, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _size(count: int) -> str | int:
    for size, unit in _UNITS:
        if count % size == 0:
            return f"{count // size} {unit}"
    return count
