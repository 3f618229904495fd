"""The settings in effect, each with its source, for `config show` and `check --explain`.

Values that may contain a secret by mistake are masked: the arguments of a `cmd:`, a password in a URL, and
all but the beginning of an API key, because people paste the secret in its place.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sealgate.config.listing import ANY, Setting, all_settings, plain_value
from sealgate.config.load import Loaded
from sealgate.config.names import COMMON, OF_EXCHANGE, SettingPath, dotted
from sealgate.config.sources import DEFAULT
from sealgate.config.values import Masked
from sealgate.config.venues import settings_of
from sealgate.venues.venue import Venue

COMMON_TABLE = "common table"  # the source of a setting that an exchange inherits
_PASSWORD = re.compile(r"(?<=://)[^/@\s]*@")


@dataclass(frozen=True, slots=True)
class Effective:
    """One setting in effect: its name, its masked value (as of `plain_value`), and its source."""

    name: str
    value: object
    source: str


def effective(loaded: Loaded) -> list[Effective]:
    """Return every setting in the order of the model, grouped by key, bot and exchange.

    If there are [exchanges], all settings of each are listed; of the common tables, only those that are set.
    """
    found = []
    for setting in all_settings():
        is_common = bool(loaded.config.exchanges) and setting.path[0] in OF_EXCHANGE
        for path, value in _values(loaded.config, setting.path, ()):
            row = path[:2] if ANY in setting.path else path[:1]
            source, shown = _written(loaded, path), _masked(setting, plain_value(value))
            is_unsaid = value is None and "pools" in setting.path  # the venue's file decides
            if source is None and (is_common or is_unsaid):
                continue
            if source is None and setting.name == "keys.*.recv_window_ms":
                source, shown = _window(loaded, str(path[1]))
            source = source or _inherited(loaded, setting, path)
            found.append((row, Effective(dotted(path), shown, source)))
    rows = list(dict.fromkeys(row for row, _ in found))
    return [one for _, one in sorted(found, key=lambda pair: rows.index(pair[0]))]


def _values(node: Any, path: SettingPath, at: SettingPath) -> Iterator[tuple[SettingPath, object]]:
    """Yield the values of a setting below a node, with their real paths."""
    if not path:
        yield at, node
        return
    part, *below = path
    if part != ANY:
        yield from _values(getattr(node, str(part)), tuple(below), (*at, part))
        return
    for name, value in node.items() if isinstance(node, Mapping) else enumerate(node):
        yield from _values(value, tuple(below), (*at, name))


def _written(loaded: Loaded, path: SettingPath) -> str | None:
    """Return the first source that sets a path, or None."""
    for layer in loaded.layers:
        if layer.depth(path) < len(path):
            continue
        if layer.variables is not None:
            return layer.name(path)
        return layer.origin.removesuffix(": ")
    return None


def _inherited(loaded: Loaded, setting: Setting, path: SettingPath) -> str:
    """Return the source of a setting that is not written: common table, venue's file, or default."""
    # There are two cases: a setting of one exchange among several, and one of the only exchange.
    if path[0] == "exchanges":
        own_path, setting_path = path[2:], setting.path[2:]
        exchange = loaded.config.exchanges[str(path[1])]
        venue, environment = exchange.venue, exchange.environment
        if own_path[0] in COMMON and _written(loaded, own_path) is not None:
            return COMMON_TABLE
        at: SettingPath = path[:2]
    else:
        setting_path, at = setting.path, ()
        venue, environment = loaded.config.venue, loaded.config.environment
    by_venue = settings_of(venue, environment)
    is_by_venue = _is_chosen(loaded, at) and (setting_path in by_venue or path[len(at) :] in by_venue)
    return _file_of(venue) if is_by_venue else DEFAULT


def _is_chosen(loaded: Loaded, at: SettingPath) -> bool:
    """Whether the configuration names the venue of the exchange at this path."""
    return _written(loaded, (*at, "venue")) is not None


def _file_of(venue: Venue) -> str:
    return f"venue {venue.name}"


def _window(loaded: Loaded, alias: str) -> tuple[str, object]:
    """Return source and value of a key's window that is not set: a table if its exchanges differ."""
    places = [one for one in loaded.config.served.values() if alias in one.keys]
    windows = {one.name: one.keys[alias].recv_window_ms for one in places}
    sources = dict.fromkeys(_file_of(one.venue) if _is_chosen(loaded, one.at) else DEFAULT for one in places)
    value = windows if len(set(windows.values())) > 1 else next(iter(windows.values()))
    return ", ".join(sources), value


def _masked(setting: Setting, value: object) -> object:
    if not isinstance(value, str):
        return value
    mark = setting.mark(Masked)
    return _PASSWORD.sub("…@", mark.by(value) if mark else value)
