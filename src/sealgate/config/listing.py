"""All settings as a flat list, from the model: name, default, example, choices.

The editors' schema, the starter file, `config show` and suggestions use it, so none lags behind the model.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, ByteSize
from pydantic.fields import FieldInfo

from sealgate.config.names import SettingPath
from sealgate.config.tree import Config
from sealgate.config.values import Anchored
from sealgate.config.venues import venue_text
from sealgate.venues.venue import Venue

ANY = "*"  # in place of the user's name for a key or a bot, and of the index of a route

_UNITS = ((1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"))
_Mark = TypeVar("_Mark")


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of the model; `path` has ANY in place of names that the user chooses."""

    path: SettingPath
    field: FieldInfo

    @property
    def name(self) -> str:
        """The name as written in manuals: `keys.*.secret`."""
        return ".".join(map(str, self.path))

    @property
    def default(self) -> object:
        """The default, or None if the setting is required."""
        is_required = self.field.is_required()
        return None if is_required else self.field.get_default(call_default_factory=True)

    @property
    def description(self) -> str:
        """One line of description."""
        return self.field.description or ""

    @property
    def example(self) -> object:
        """An example value, or None if the default serves as one."""
        return next(iter(self.field.examples or ()), None)

    @property
    def choices(self) -> tuple[str, ...]:
        """The accepted texts; () if the setting is free text or a set."""
        whole = self.field.annotation
        forms = () if get_origin(whole) is frozenset else (whole, *get_args(whole))
        return next((get_args(form) for form in forms if get_origin(form) is Literal), ())

    def mark(self, kind: type[_Mark]) -> _Mark | None:
        """Return its type's mark of this class, if any."""
        marks = (*self.field.metadata, *_parts(self.field.annotation))
        return next((mark for mark in marks if isinstance(mark, kind)), None)

    def at(self, names: SettingPath) -> SettingPath:
        """Return its path with ANY replaced by the names in `names`."""
        return tuple(
            names[index] if part == ANY and index < len(names) else part
            for index, part in enumerate(self.path)
        )


def _parts(annotation: Any) -> Iterator[Any]:
    """Yield the parts of an annotation, such as the marks of an Annotated in it."""
    for part in get_args(annotation):
        yield part
        yield from _parts(part)


@cache
def all_settings() -> tuple[Setting, ...]:
    """Return every setting, in the order of the model."""
    return tuple(_settings(Config, ()))


def _settings(model: type[BaseModel], path: SettingPath) -> Iterator[Setting]:
    for name, field in model.model_fields.items():
        here = (*path, name)
        inner = model_in(field.annotation)
        if inner is None:
            yield Setting(here, field)
        else:
            yield from _settings(inner, here if inner is field.annotation else (*here, ANY))


def model_in(annotation: object) -> type[BaseModel] | None:
    """Return the model that an annotation is or contains, if any."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for model in map(model_in, get_args(annotation)) if model), None)


def find_setting(path: SettingPath) -> Setting:
    """Return the setting at a path of a real configuration, such as `keys.main.secret`. Raises KeyError."""
    for setting in all_settings():
        if len(setting.path) == len(path) and setting.at(path) == path:
            return setting
    raise KeyError(path)


def anchored(tree: dict[str, object], folder: Path) -> dict[str, object]:
    """Return the settings of a configuration file, with relative paths resolved from its folder."""
    return {name: _anchored(value, (name,), folder) for name, value in tree.items()}


def _anchored(value: object, path: SettingPath, folder: Path) -> object:
    if isinstance(value, dict):
        return {name: _anchored(inner, (*path, name), folder) for name, inner in value.items()}
    if not isinstance(value, str):
        return value
    try:
        mark = find_setting(path).mark(Anchored)
    except KeyError:
        return value
    return mark.at(value, folder) if mark else value


def plain_value(value: object) -> object:  # noqa: PLR0911 - one for each kind of value
    """Return a value as text, number, boolean or list of these; None becomes ""."""
    match value:
        case ByteSize():
            units = (f"{value // size} {unit}" for size, unit in _UNITS if value % size == 0)
            return next(units, int(value))
        case bool() | int() | float():
            return value
        case Mapping():
            return {name: str(member) for name, member in value.items()}
        case frozenset():
            return sorted(map(str, value))
        case tuple():
            return [str(member) for member in value]
        case Venue():
            return venue_text(value)
        case _:
            return "" if value is None else str(value)


def toml_text(value: object) -> str:
    """Return a plain value in TOML, which for these types is the same as JSON."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{json.dumps(name)} = {toml_text(one)}' for name, one in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml_text, value))}]"
    return json.dumps(value, ensure_ascii=False)
