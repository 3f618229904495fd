"""The configuration file as a JSON Schema, for editors: completion, descriptions, and errors underlined.

Draft 4, because Taplo (and so Even Better TOML) reads no later one; nothing is referred to, so that every
editor finds everything in its place. The schema is stricter than the program in one point: a number is a
number here, while the program also takes it as text.
"""

from itertools import pairwise

from sealgate.config.model import Schema
from sealgate.config.names import NAME, SettingPath
from sealgate.config.settings import ANY, Setting, all_settings, plain_value

_NAMED = f"^{NAME.pattern}$"
DRAFT = "http://json-schema.org/draft-04/schema#"


def json_schema() -> Schema:
    """Return the schema of the whole file."""
    root = {"$schema": DRAFT, "title": "Sealgate's configuration", **_table()}
    for setting in all_settings():
        _table_of(root, setting.path)["properties"][setting.path[-1]] = _leaf(setting)
    _table_of(root, ("routes", ANY, "match"))["required"] = ["match"]  # a list cannot be set elsewhere
    return root


def _table() -> Schema:
    return {"type": "object", "properties": {}, "additionalProperties": False}


def _table_of(root: Schema, path: SettingPath) -> Schema:
    """Return the table that a setting stands in, made where it is not there yet."""
    node = root
    for part, after in pairwise(path):
        if part != ANY:
            node = node["properties"].setdefault(part, _holder(str(part)) if after == ANY else _table())
        else:
            node = node["items"] if "items" in node else node["patternProperties"][_NAMED]
    return node


def _holder(name: str) -> Schema:
    """Return a list of tables for [[routes]], else tables by names that the user chooses."""
    if name == "routes":
        return {"type": "array", "items": _table()}
    return {
        "type": "object",
        "patternProperties": {_NAMED: _table()},
        "additionalProperties": False,
    }


def _leaf(setting: Setting) -> Schema:
    choices: Schema = {"type": "string", "enum": list(setting.choices)}
    about: Schema = {"description": setting.description}
    if setting.default not in (None, "", ()):
        about["default"] = plain_value(setting, setting.default)
    return {**(choices if setting.choices else setting.schema), **about}
