"""The gateway's own replies in an exchange's shape: `[errors]` of a venue's file. Pure.

A client library knows the errors of its exchange and no others. Each reason of the gateway belongs to one
class, and the file says how the exchange itself would state an error of that class.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sealgate.machine.nearest import did_you_mean
from sealgate.venues.document import Table


class ErrorClass(StrEnum):
    """What a client can make of a reply that the gateway makes itself."""

    AUTHENTICATION = "authentication"
    PERMISSION = "permission"
    LIMITED = "limited"
    UNKNOWN = "unknown"
    UNAVAILABLE = "unavailable"
    OTHER = "other"


# The reasons of each class, as in errors.py; all others are OTHER: the same request is refused each time.
_REASONS = {
    ErrorClass.AUTHENTICATION: ("bot_unauthenticated",),
    ErrorClass.PERMISSION: ("app_only", "bot_forbidden", "browser_refused", "halted", "policy_refused"),
    ErrorClass.LIMITED: ("queue_full", "rate_limited"),
    ErrorClass.UNAVAILABLE: (
        *("body_timeout", "clock_unsynced", "deadline_exceeded", "draining", "internal_error"),
        *("key_disabled", "upstream_broken", "upstream_timeout", "upstream_unreachable"),
    ),
}
# What clients know that go by the status. Without [errors] each reason has its own.
_STATUSES = {
    ErrorClass.PERMISSION: 403,
    ErrorClass.LIMITED: 429,
    ErrorClass.UNKNOWN: 504,
    ErrorClass.UNAVAILABLE: 503,
}
_CLASSES = {slug: one for one, slugs in _REASONS.items() for slug in slugs}

ERRORS_KEYS = ("members", "codes", "status", "type")
_CODE = "{code}"
_FIELD = re.compile(r"\{(\w*)\}")
_FIELDS = ("reason", "detail")
_TYPE = re.compile(r"application/([a-z.\-]+\+)?json")
_SUCCESS, _ERRORS = 200, range(400, 600)


def class_of(slug: str, *, is_unknown: bool) -> ErrorClass:
    """Return the class of a reason; `is_unknown` says that the request may have executed."""
    return ErrorClass.UNKNOWN if is_unknown else _CLASSES.get(slug, ErrorClass.OTHER)


@dataclass(frozen=True)
class ErrorShape:
    """How one exchange states errors.

    `templates` have what a reply of each class holds, as JSON, with `{reason}` and `{detail}` to fill in. A
    class without one has no such error. `statuses` are those of the reply; a class without one keeps its
    reason's.
    `content_type` is "" for the usual one.
    """

    templates: Mapping[ErrorClass, Any]
    statuses: Mapping[ErrorClass, int]
    content_type: str

    def document(self, error: ErrorClass, reason: str, detail: str) -> Any:
        """Return what the reply holds as JSON, a table or a list; None if the exchange has no such error."""
        return _filled(self.templates.get(error), {"reason": reason, "detail": detail})


def read_errors(table: Table) -> ErrorShape | None:
    """Read `[errors]`, None for an empty one. Raises VenueError."""
    if not table.data:
        return None
    members, codes = table.data.get("members", {}), table.table("codes", list(ErrorClass))
    _check_template(table, "members", members, ("code", *_FIELDS))
    templates: dict[ErrorClass, Any] = {}
    for name, code in codes.data.items():
        # There are two cases: a code, which the members state, and the members of this class alone.
        if isinstance(code, dict | list):
            _check_template(codes, name, code, _FIELDS)
            templates[ErrorClass(name)] = code
        elif isinstance(code, str) or type(code) is int:
            templates[ErrorClass(name)] = _filled(members, {"code": code})
        else:
            raise codes.error(name, f"{name} must be a text, a whole number, or members of its own")
    return ErrorShape(
        templates,
        _statuses(table),
        table.checked("type", _TYPE, "a type such as application/json", ""),
    )


def _statuses(table: Table) -> Mapping[ErrorClass, int]:
    """Read `status`: one for all classes, or those that differ from the usual ones."""
    value = table.data.get("status", {})
    listed = value if isinstance(value, dict) else dict.fromkeys(ErrorClass, value)
    for name, status in listed.items():
        if name not in list(ErrorClass):
            raise table.error("status", f"unknown class {name}; {did_you_mean(name, list(ErrorClass))}")
        if type(status) is not int or (status != _SUCCESS and status not in _ERRORS):
            raise table.error("status", "status must be 200 or one of 400 to 599")
    return {**_STATUSES, **{ErrorClass(name): status for name, status in listed.items()}}


def _filled(template: Any, values: Mapping[str, str | int]) -> Any:
    """Return a template with values in its fields; what is a code alone keeps the type of the code."""
    if isinstance(template, dict):
        return {name: _filled(value, values) for name, value in template.items()}
    if isinstance(template, list):
        return [_filled(value, values) for value in template]
    if not isinstance(template, str):
        return template
    if template == _CODE and "code" in values:
        return values["code"]
    return _FIELD.sub(lambda found: str(values.get(found[1], found[0])), template)


def _check_template(table: Table, key: str, template: Any, fields: tuple[str, ...]) -> None:
    """Check that a template is a table or a list, and can be written as JSON with its fields filled in."""
    if not isinstance(template, dict | list):
        raise table.error(key, f"{key} must be a table or a list")
    for value in template.values() if isinstance(template, dict) else template:
        if isinstance(value, dict | list):
            _check_template(table, key, value, fields)
        elif isinstance(value, str):
            for unknown in set(_FIELD.findall(value)) - set(fields):
                raise table.error(key, f"unknown name {{{unknown}}}; {did_you_mean(unknown, fields)}")
        elif not isinstance(value, int | float) or not math.isfinite(value):
            raise table.error(key, f"{key} has {value!r}, which JSON has no word for")
