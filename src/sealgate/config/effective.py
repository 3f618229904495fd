"""The settings as they hold, each with where it was set: what `config show` and `check --explain` print.

Values that may hold a secret in spite of all are masked: the arguments of a `cmd:`, a password in a URL, and
all but the beginning of an API key, in whose place people paste the secret.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sealgate.config.listing import ANY, Setting, all_settings, plain_value
from sealgate.config.load import Loaded
from sealgate.config.names import SettingPath, dotted
from sealgate.config.sources import DEFAULT
from sealgate.config.values import Masked
from sealgate.config.venues import settings_of

_PASSWORD = re.compile(r"(?<=://)[^/@\s]*@")


@dataclass(frozen=True, slots=True)
class Effective:
    """One setting as it holds: its name, its masked value as `plain_value` has it, and its source."""

    name: str
    value: object
    source: str


def effective(loaded: Loaded) -> list[Effective]:
    """Return every setting, in the order of the model; those of one key, bot or route stay together."""
    found = []
    for setting in all_settings():
        for path, value in _values(loaded.config, setting.path, ()):
            row = path[:2] if ANY in setting.path else path[:1]
            shown = _masked(setting, plain_value(value))
            found.append((row, Effective(dotted(path), shown, _source(loaded, setting, path))))
    rows = list(dict.fromkeys(row for row, _ in found))
    return [one for _, one in sorted(found, key=lambda pair: rows.index(pair[0]))]


def _values(node: Any, path: SettingPath, at: SettingPath) -> Iterator[tuple[SettingPath, object]]:
    """Yield the values that a setting has below a node, with their real paths."""
    if not path:
        yield at, node
        return
    part, *below = path
    if part != ANY:
        yield from _values(getattr(node, str(part)), tuple(below), (*at, part))
        return
    for name, value in node.items() if isinstance(node, Mapping) else enumerate(node):
        yield from _values(value, tuple(below), (*at, name))


def _source(loaded: Loaded, setting: Setting, path: SettingPath) -> str:
    for layer in loaded.layers:
        if layer.depth(path) < len(path):
            continue
        if layer.variables is not None:
            return layer.name(path)
        return layer.origin.removesuffix(": ")
    venue = loaded.config.venue
    is_chosen = any(layer.depth(("venue",)) for layer in loaded.layers)
    return f"venue {venue.name}" if is_chosen and setting.path in settings_of(venue) else DEFAULT


def _masked(setting: Setting, value: object) -> object:
    if not isinstance(value, str):
        return value
    mark = setting.mark(Masked)
    return _PASSWORD.sub("…@", mark.by(value) if mark else value)
