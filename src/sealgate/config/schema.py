"""The configuration file as a JSON Schema, for editors: completion, descriptions, and errors underlined.

Draft 4, because Taplo (and so Even Better TOML) reads no later one; nothing is referred to, so that every
editor finds everything in its place. The schema is stricter than the program in one point: a number is a
number here, while the program also takes it as text.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from sealgate.config.addresses import parse_base_url, parse_optional_address, parse_redis
from sealgate.config.files import (
    parse_admin_socket,
    parse_ca_file,
    parse_group,
    parse_journal_file,
    parse_pem_file,
    parse_socket,
)
from sealgate.config.names import (
    SettingPath,
    parse_api_key,
    parse_header_prefix,
    parse_key_uid,
    parse_match,
    parse_name,
    parse_optional_path,
    parse_pointer,
    parse_prefix,
)
from sealgate.config.quantities import (
    PERMISSIONS,
    parse_aliases,
    parse_amount,
    parse_amounts,
    parse_count,
    parse_hosts,
    parse_known_limits,
    parse_permissions,
    parse_seconds,
    parse_seconds_or_zero,
    parse_size,
    parse_symbols,
    parse_uid,
    parse_weight,
)
from sealgate.config.references import parse_reference
from sealgate.config.settings import ANY, Setting, all_settings, plain_value
from sealgate.config.starter import MANUAL
from sealgate.config.venues import parse_venue

Schema = dict[str, Any]

DRAFT = "http://json-schema.org/draft-04/schema#"
_NAME = "^[A-Za-z0-9_-]{1,32}$"
_TEXT: Schema = {"type": "string"}


def _text(pattern: str) -> Schema:
    return {"type": "string", "pattern": pattern}


def _list(member: Schema, **more: object) -> Schema:
    return {"type": "array", "items": member, "uniqueItems": True, **more}


_PATH = _text("^(/[A-Za-z0-9._~-]+)*$")
_POSITIVE: Schema = {"type": "number", "minimum": 0, "exclusiveMinimum": True}
_COUNT: Schema = {"type": "integer", "minimum": 1}
_AMOUNT: Schema = {"anyOf": [_text(r"^[0-9]{1,40}(\.[0-9]{1,40})?$"), _COUNT]}

# Each parser, and what it takes.
_FORMS: dict[Callable[..., object] | None, Schema] = {
    None: {"type": "boolean"},
    parse_base_url: _text("^https?://[^@?#\\s]+$"),
    parse_optional_address: _text(r"^$|^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+):[0-9]{1,5}$"),
    parse_socket: _TEXT,
    parse_admin_socket: _TEXT,
    parse_group: {"type": ["string", "integer"]},
    parse_hosts: _list(_TEXT, minItems=1),
    parse_size: {
        "anyOf": [_COUNT, _text("^[0-9]{1,15} *([KkMmGg][Ii]?)?[Bb]?$")],
    },
    parse_seconds: _POSITIVE,
    parse_seconds_or_zero: {"type": "number", "minimum": 0},
    parse_count: _COUNT,
    parse_amount: _AMOUNT,
    parse_amounts: {"anyOf": [*_AMOUNT["anyOf"], {"type": "object", "additionalProperties": _AMOUNT}]},
    parse_symbols: _list(_TEXT, minItems=1),
    parse_weight: {**_POSITIVE, "maximum": 100},
    parse_uid: {"type": "integer", "minimum": 0},
    parse_pem_file: _TEXT,
    parse_ca_file: _TEXT,
    parse_journal_file: _TEXT,
    parse_prefix: _text("^/([A-Za-z0-9._~-]+(/[A-Za-z0-9._~-]+)*/*)?$"),
    parse_header_prefix: _text(r"^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$"),
    parse_optional_path: _PATH,
    parse_venue: _TEXT,
    parse_key_uid: {"type": ["string", "integer"]},
    parse_pointer: _text("^(/([^~/]|~[01])*)*$"),
    parse_known_limits: _list(_text(r"^ *[0-9]{1,9} */ *([0-9]{1,6}(\.[0-9]{1,3})?)? *(ms|s|m|h) *$")),
    parse_api_key: _text("^[!-~]{1,512}$"),
    parse_redis: _text("^$|^(rediss?|unix)://[^ ]+$|^(file|env|cmd|systemd|keyring):."),
    parse_reference: _text("^(file|env|cmd|systemd|keyring):."),
    parse_name: _text(_NAME),
    parse_aliases: _list(_text(_NAME), minItems=1),
    parse_permissions: _list({"type": "string", "enum": list(PERMISSIONS)}, minItems=1),
    parse_match: _text(r"^(GET|POST|PUT|PATCH|DELETE) (/([A-Za-z0-9._~-]+|\{[A-Za-z0-9_]+\}))+$"),
}


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
            node = node["items"] if "items" in node else node["patternProperties"][_NAME]
    return node


def _holder(name: str) -> Schema:
    """Return a list of tables for [[routes]], else tables by names that the user chooses."""
    if name == "routes":
        return {"type": "array", "items": _table()}
    return {"type": "object", "patternProperties": {_NAME: _table()}, "additionalProperties": False}


def _leaf(setting: Setting) -> Schema:
    choices: Schema = {"type": "string", "enum": list(setting.choices)}
    about: Schema = {"description": MANUAL[setting.name]}
    if setting.default not in (None, "", ()):
        about["default"] = plain_value(setting, setting.default)
    return {**(choices if setting.choices else _FORMS[setting.parser]), **about}
