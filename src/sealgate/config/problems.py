"""Problems of a configuration, one line each: place, cause, fix. Values are never repeated."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from pydantic import ValidationError

from sealgate.config.listing import ANY, all_settings
from sealgate.config.names import PREFIX, SettingPath, variable
from sealgate.machine.nearest import nearest

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


UNKNOWN = "unknown setting"
MISSING = "missing; write it in the file"
_ALIKE = 0.8  # all variables begin alike, so a lower similarity means nothing


class ConfigError(Exception):
    """The configuration cannot be used. `str()` has one line per problem: place, cause and fix."""

    def __init__(self, lines: Iterable[str]) -> None:
        super().__init__("\n".join(lines))


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem: the setting's path, the cause with its fix, and a setting that was probably meant."""

    path: SettingPath
    text: str
    meant: SettingPath | None = None


def problems_of(error: ValidationError) -> list[Problem]:
    """Translate the library's errors into problems."""
    found = error.errors(include_url=False, include_input=False, include_context=True)
    # If a member of a list is wrong, pydantic also calls the list too short.
    lists = {one["loc"][:-1] for one in found if one["type"] != "too_short"}
    return [_problem(one) for one in found if one["type"] != "too_short" or one["loc"] not in lists]


# Pydantic's errors in our words; types with their own words are in values.py.
_NOT_A_BOOLEAN = "is not a boolean; write true or false"
_NOT_A_LIST = "is not a list; write its members in [ ]"
_NOT_A_TABLE = "is not a table; set its members one by one"
_TEXTS = {
    "literal_error": "is not one of the choices; write {expected}",
    "value_error": "{error}",
    "bool_parsing": _NOT_A_BOOLEAN,
    "bool_type": _NOT_A_BOOLEAN,
    "string_type": "is not text; write it in quotes",
    "path_type": "is not a file name; write it in quotes",
    "model_type": _NOT_A_TABLE,
    "dict_type": _NOT_A_TABLE,
    "tuple_type": _NOT_A_LIST,
    "frozen_set_type": _NOT_A_LIST,
    "too_short": "is empty; write at least one",
}


def _problem(details: "ErrorDetails") -> Problem:
    # Pydantic marks a mapping's invalid key with an extra last element.
    path = tuple(part for part in details["loc"] if part != "[key]")
    match details["type"]:
        case "extra_forbidden":
            return Problem(path, UNKNOWN, nearest_setting(path))
        case "missing":  # members of a list have no variable
            is_in_list = any(isinstance(part, int) for part in path)
            return Problem(path, MISSING if is_in_list else f"{MISSING}, or set {variable(path)}")
        case "dict_type" if path and path[-1] in _named_by_users():
            return Problem(
                path, f"is not a table of tables; write [{'.'.join(map(str, path))}.NAME] for each"
            )
        case kind:
            words = _TEXTS[kind].format_map(details.get("ctx", {})) if kind in _TEXTS else details["msg"]
            return Problem(path, words)


def _named_by_users() -> set[str | int]:
    """Return the tables whose members are tables with names that users choose."""
    return {table for one in all_settings() for table, of in pairwise(one.path) if of == ANY}


def nearest_setting(path: SettingPath) -> SettingPath | None:
    """Return the setting that an unknown one probably means, from its own table, else from another."""
    *table, written = path
    name = str(written).lower()
    named_alike = [setting.at(path)[: len(path)] for setting in all_settings()]
    close = nearest(name, [str(one[-1]) for one in named_alike if [*one[:-1]] == table])
    if close:
        return (*table, close)
    # Another table of the same exchange is a better guess than the common tables.
    near = [setting.at(path[:2]) for setting in all_settings() if path[0] == setting.path[0] == "exchanges"]
    elsewhere = (other for other in (*near, *(one.path for one in all_settings())) if ANY not in other)
    return next((other for other in elsewhere if other[-1] == name), None)


def nearest_variable(name: str) -> str | None:
    """Return the variable that an unknown one of the environment probably means."""
    if (spaced := _with_two_underscores(name.upper())) is not None:
        return spaced
    parts = tuple(name.removeprefix(PREFIX).lower().split("__"))
    valid = [variable(setting.at(parts)) for setting in all_settings()]
    close = nearest(name.upper(), valid, _ALIKE)
    return close.replace(ANY, "NAME") if close else None


def _with_two_underscores(name: str) -> str | None:
    """Return a variable that was written with `_` between its levels with `__`; user-chosen names stay."""
    for path in (setting.path for setting in all_settings()):
        parts = ("([A-Z0-9_-]+?)" if part == ANY else str(part).upper() for part in path)
        if found := re.fullmatch(PREFIX + "_{1,2}".join(parts), name):
            chosen = iter(found.groups())
            return variable(tuple(next(chosen) if part == ANY else part for part in path))
    return None
