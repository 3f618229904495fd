"""All settings as a flat list, from the model: what a person can write, its default and its parser.

Editors, the starter file, `config show` and suggestions read it, so that none of them lags behind the model.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, WithJsonSchema
from pydantic.fields import FieldInfo

from sealgate.config.addresses import parse_redis
from sealgate.config.files import (
    OFF,
    parse_admin_socket,
    parse_ca_file,
    parse_journal_file,
    parse_pem_file,
    parse_socket,
)
from sealgate.config.model import Config, Schema
from sealgate.config.names import SettingPath
from sealgate.config.quantities import parse_size
from sealgate.config.references import parse_reference
from sealgate.config.venues import is_file, parse_venue, venue_text
from sealgate.venues.venue import Venue

ANY = "*"  # stands for the name that a user gives a key or a bot, and for the index of a route

# What reads the name of a file. A reference has one behind "file:"; a venue may have a name instead.
FILE_PARSERS = frozenset(
    {
        *(parse_admin_socket, parse_ca_file, parse_journal_file, parse_pem_file, parse_socket),
        *(parse_redis, parse_reference, parse_venue),
    }
)
_BOOLEAN: Schema = {"type": "boolean"}
_FILE = re.compile(r"(file:)(?=.)(.*)", re.DOTALL)
_UNITS = ((1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"))


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting; `path` has ANY where the user chooses the name.

    `parser` reads its value, None where its type is enough; `choices` are its possible texts, () where it is
    free. `description` is one line, `schema` what the file may hold, `example` stands in for a default.
    """

    path: SettingPath
    default: object
    is_required: bool
    parser: Callable[..., object] | None
    choices: tuple[str, ...]
    description: str
    schema: Schema
    example: object

    @property
    def name(self) -> str:
        """How a manual writes it: `keys.*.secret`."""
        return ".".join(map(str, self.path))

    def at(self, names: SettingPath) -> SettingPath:
        """Return its path with the names that stand in another one where this one leaves them open."""
        return tuple(
            names[index] if part == ANY and index < len(names) else part
            for index, part in enumerate(self.path)
        )


@cache
def all_settings() -> tuple[Setting, ...]:
    """Return every setting, in the order of the model."""
    return tuple(_settings(Config, ()))


def find_setting(path: SettingPath) -> Setting:
    """Return the setting at a path of a real configuration, `keys.main.secret` say. Raises KeyError."""
    for setting in all_settings():
        if len(setting.path) == len(path) and setting.at(path) == path:
            return setting
    raise KeyError(path)


def anchored(tree: dict[str, object], folder: Path) -> dict[str, object]:
    """Return the settings of a configuration file, with its relative paths taken from its folder."""
    return {name: _anchored(value, (name,), folder) for name, value in tree.items()}


def _anchored(value: object, path: SettingPath, folder: Path) -> object:
    if isinstance(value, dict):
        return {name: _anchored(inner, (*path, name), folder) for name, inner in value.items()}
    if not isinstance(value, str):
        return value
    try:
        parser = find_setting(path).parser
    except KeyError:
        return value
    if parser in (parse_redis, parse_reference):
        found = _FILE.fullmatch(value)
        return f"{found[1]}{_from(folder, found[2])}" if found else value
    is_path = (
        parser in FILE_PARSERS and value not in ("", OFF) and (parser is not parse_venue or is_file(value))
    )
    return _from(folder, value) if is_path else value


def _from(folder: Path, path: str) -> str:
    return path if path.startswith("~") or folder == Path() else str(folder / path)


def model_in(annotation: object) -> type[BaseModel] | None:
    """Return the model that an annotation is, or holds."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for model in map(model_in, get_args(annotation)) if model), None)


def _settings(model: type[BaseModel], path: SettingPath) -> Iterator[Setting]:
    for name, field in model.model_fields.items():
        here = (*path, name)
        inner = model_in(field.annotation)
        if inner is None:
            yield _setting(here, field)
        else:
            yield from _settings(inner, here if inner is field.annotation else (*here, ANY))


def _setting(path: SettingPath, field: FieldInfo) -> Setting:
    marks = [*field.metadata, *_parts(field.annotation)]
    parsers = (mark.func for mark in marks if hasattr(mark, "func"))
    choices = tuple(mark for mark in marks if isinstance(mark, str))
    default = None if field.is_required() else field.get_default(call_default_factory=True)
    schema = next((mark.json_schema for mark in marks if isinstance(mark, WithJsonSchema)), _BOOLEAN)
    return Setting(
        path,
        default,
        field.is_required(),
        next(parsers, None),
        choices,
        field.description or "",
        schema or {},
        next(iter(field.examples or ()), None),
    )


def _parts(annotation: Any) -> Iterator[Any]:
    """Yield what an annotation is made of: the texts of a Literal, the marks of an Annotated."""
    inner = get_args(annotation)
    yield from (annotation,) if not inner else ()
    for part in inner:
        yield from _parts(part)


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
