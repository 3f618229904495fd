"""Reading the server's time out of the reply of `/time`, whose shape spec.md does not show.

A number is epoch seconds, milliseconds, microseconds or nanoseconds by its size; a text is a number or ISO
8601. With a JSON pointer (RFC 6901) that one value is read; without, the first plausible value found is.
"""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from sealgate.machine.nearest import nearest
from sealgate.venues.document import pick

# Seconds per unit; the plausible range below makes the choice unique.
_UNITS = (1.0, 1e-3, 1e-6, 1e-9)
_EARLIEST, _LATEST = 1_577_836_800.0, 4_102_444_800.0  # 2020 to 2100
_FINEST = 1e-6  # what a float of that size can still tell apart
_FRACTION = re.compile(r"[.,](\d+)")
_TO_THE_SECOND = re.compile(r"[T ]\d\d:?\d\d:?\d\d")  # a date alone is no time


class UnreadableTimeError(ValueError):
    """The reply has no server time where it should; the message says where was looked."""


class ServerTime(NamedTuple):
    """Epoch seconds, cut off to `resolution` (seconds), and the JSON pointer of where it stands."""

    seconds: float
    resolution: float
    field: str


def parse_server_time(body: bytes, pointer: str) -> ServerTime:
    """Read the reply of `/time`. Raises UnreadableTimeError, which names the field."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise UnreadableTimeError("the reply is not JSON") from None
    leaves = [(pointer, pick(document, pointer))] if pointer else _leaves(document)
    for field, value in leaves:
        found = _plausible(value)
        if found is not None:
            return ServerTime(*found, field)
    raise UnreadableTimeError(_where_else(document, pointer))


def _where_else(document: object, pointer: str) -> str:
    """Say that no time was found, and at which pointer nearest to the one that was tried there is one."""
    if not pointer:
        return "no plausible time at any field; set clock.field"
    others = [field for field, value in _leaves(document) if _plausible(value) is not None]
    close = nearest(pointer, others, 0.0)
    hint = f"clock.field = {close!r} would be one" if close else "set clock.field"
    return f"no plausible time at {pointer}; {hint}"


def stated_time(text: str) -> float | None:
    """Return the epoch seconds of a time that a reply states in its words, None where it is none."""
    found = _plausible(text)
    return None if found is None else found[0]


def epoch_seconds(number: float) -> float | None:
    """Return a time of our days in epoch seconds, whichever unit it is in; None where it is none."""
    unit = _unit(number)
    return None if unit is None else number * unit


def is_plausible(seconds: float) -> bool:
    """Ask whether epoch seconds are of our days."""
    return _EARLIEST <= seconds < _LATEST


def parse_http_date(value: str) -> float | None:
    """Return the epoch seconds of a `Date` header (RFC 9110 section 5.6.7), None where it is none."""
    try:
        date = parsedate_to_datetime(value)
        # The asctime form names no zone and means UTC.
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _leaves(document: object) -> Iterator[tuple[str, object]]:
    """Yield (pointer, value) breadth first: the time stands near the top."""
    level = [("", document)]
    while level:
        children: list[tuple[str, object]] = []
        for pointer, node in level:
            if isinstance(node, dict):
                children.extend((f"{pointer}/{_escape(name)}", value) for name, value in node.items())
            elif isinstance(node, list):
                children.extend((f"{pointer}/{index}", value) for index, value in enumerate(node))
            else:
                yield pointer, node
        level = children


def _escape(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _plausible(value: object) -> tuple[float, float] | None:
    if isinstance(value, int | float):  # a boolean is one too, but reads as no number
        return _from_number(str(value))
    if isinstance(value, str):
        return _from_number(value) or _from_iso(value)
    return None


def _from_number(text: str) -> tuple[float, float] | None:
    try:
        number = float(text)
    except ValueError:
        return None
    unit = _unit(number)
    return None if unit is None else (number * unit, max(unit * _last_digit(text), _FINEST))


def _unit(number: float) -> float | None:
    return next((unit for unit in _UNITS if is_plausible(number * unit)), None)


def _from_iso(text: str) -> tuple[float, float] | None:
    if not _TO_THE_SECOND.search(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return (seconds, _last_digit(text)) if is_plausible(seconds) else None


def _last_digit(text: str) -> float:
    """Return what one step of the last digit is worth; zeros at the end may be padding."""
    fraction = _FRACTION.search(text)
    return max(10.0 ** -len(fraction[1].rstrip("0")), _FINEST) if fraction else 1.0
