"""All settings as a flat list, from the model: what a person can write, its default and its parser.

Editors, the starter file, `config show` and suggestions read it, so that none of them lags behind the model.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from sealgate.config.model import Config
from sealgate.config.paths import SettingPath

ANY = "*"  # stands for the name that a user gives a key or a bot, and for the index of a route


@dataclass(frozen=True, slots=True)
class Setting:
    """One of them; `path` has ANY where the user chooses the name.

    `parser` reads it, None where the type says all; `choices` are the texts that it can be, () where it is
    free.
    """

    path: SettingPath
    default: object
    is_required: bool
    parser: Callable[..., object] | None
    choices: tuple[str, ...]

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
    return Setting(path, default, field.is_required(), next(parsers, None), choices)


def _parts(annotation: Any) -> Iterator[Any]:
    """Yield what an annotation is made of: the texts of a Literal, the marks of an Annotated."""
    inner = get_args(annotation)
    yield from (annotation,) if not inner else ()
    for part in inner:
        yield from _parts(part)
