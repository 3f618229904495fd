"""The settings as they hold, each with where it was set: what `config show` and `check --explain` print.

Values that may hold a secret in spite of all are masked: the arguments of a `cmd:`, a password in a URL, and
all but the beginning of an API key, in whose place people paste the secret.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import BaseModel

from sealgate.config.load import Loaded
from sealgate.config.names import SettingPath, dotted
from sealgate.config.settings import Setting, find_setting, plain_value
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
    """Return every setting, in the order of the model."""
    return [
        Effective(dotted(path), _masked(setting, plain_value(value)), _source(loaded, setting, path))
        for path, value in _leaves(loaded.config, ())
        for setting in _setting_at(path)
    ]


def _leaves(node: object, path: SettingPath) -> Iterator[tuple[SettingPath, object]]:
    inner = _inner(node)
    if inner is None or (isinstance(node, Mapping) and _setting_at(path)):
        yield path, node
        return
    for name, value in inner:
        yield from _leaves(value, (*path, name))


def _inner(node: object) -> list[tuple[str | int, object]] | None:
    if isinstance(node, BaseModel):
        return [(name, getattr(node, name)) for name in type(node).model_fields]
    if isinstance(node, Mapping):
        return list(node.items())
    is_tables = isinstance(node, tuple) and any(isinstance(member, BaseModel) for member in node)
    return list(enumerate(node)) if is_tables and isinstance(node, tuple) else None


def _setting_at(path: SettingPath) -> list[Setting]:
    try:
        return [find_setting(path)]
    except KeyError:  # a list of tables without any
        return []


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
