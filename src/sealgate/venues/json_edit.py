"""A JSON text changed at places: members put in and taken out, while all other letters stay as they came.

A place is the steps of a JSON pointer. A step into a string reads that as JSON: some exchanges send it so.
"""

import json
import re
from collections.abc import Callable, Sequence
from functools import wraps
from typing import ParamSpec

from sealgate.venues.json_bytes import item_spans, member_spans, without_members
from sealgate.venues.unsignable import UnsignableError

_UNREADABLE = "the message does not have, as JSON, the places at which this venue signs"
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?", re.ASCII)
_Taken = ParamSpec("_Taken")


def _refusing(edit: Callable[_Taken, str]) -> Callable[_Taken, str]:
    """Raise UnsignableError for a text without the place."""

    @wraps(edit)
    def edited(*args: _Taken.args, **kwargs: _Taken.kwargs) -> str:
        try:
            return edit(*args, **kwargs)
        except (ValueError, RecursionError):
            raise UnsignableError(_UNREADABLE) from None

    return edited


@_refusing
def text_at(text: str, steps: Sequence[str]) -> str:
    """Return what stands at a place, as it is written; a string without quotes and escapes; "" for nothing.

    Raises UnsignableError where something on the way is no object and no list, or has a name twice.
    """
    for step in steps:
        text = _unquoted(text)
        place = _child(text, step)
        if place is None:
            return ""
        text = text[slice(*place)]
    return _unquoted(text)


@_refusing
def put(text: str, steps: Sequence[str], value: str, *, is_bare: bool = False) -> str:
    """Put a value at a place, in the place of what is there; parents that are missing are made.

    It is written as a number where one stood there or it `is_bare`, else as a string. Raises UnsignableError
    as `text_at` does, and for a place in a list that is not the next.
    """
    return _put(text, steps, value, is_bare=is_bare)


@_refusing
def drop(text: str, steps: Sequence[str]) -> str:
    """Cut a member of an object, with one comma, if it is there. Raises UnsignableError as `text_at` does."""
    return _dropped(text, steps)


@_refusing
def change_texts(text: str, steps: Sequence[str], change: Callable[[str], str]) -> str:
    """Change each string at a place, in which the step * stands for each member of a list or an object.

    One that `change` returns as it was stays as it is written. Raises UnsignableError for what is no JSON.
    """
    return _changed(text, steps, change)


def _changed(text: str, steps: Sequence[str], change: Callable[[str], str]) -> str:
    if not steps:
        if not text.startswith('"'):
            return text
        found = _unquoted(text)
        changed = change(found)
        return text if changed == found else _quoted(changed)
    if text.lstrip()[:1] not in ("{", "["):
        return text
    pieces, behind = [], 0
    for name, start, end in _children(text):
        if steps[0] in (name, "*"):
            pieces += [text[behind:start], _changed(text[start:end], steps[1:], change)]
            behind = end
    return "".join((*pieces, text[behind:]))


def _dropped(text: str, steps: Sequence[str]) -> str:
    step, *rest = steps
    inner = changed = _unquoted(text)
    if not rest:
        changed = without_members(inner, [step])
    elif place := _child(inner, step):
        start, end = place
        changed = inner[:start] + _dropped(inner[start:end], rest) + inner[end:]
    if changed == inner:
        return text
    return _quoted(changed) if text.startswith('"') else changed


def _put(text: str, steps: Sequence[str], value: str, *, is_bare: bool) -> str:
    # 1. The place itself.
    if not steps:
        is_text = text.startswith('"')
        is_number = not is_text and _NUMBER.match(text) and _NUMBER.fullmatch(value)
        return value if is_number or (is_bare and not is_text) else _quoted(value)
    # 2. JSON within a string.
    if text.startswith('"'):
        return _quoted(_put(_unquoted(text), steps, value, is_bare=is_bare))
    # 3. What is there on the way.
    step, *rest = steps
    if place := _child(text, step):
        start, end = place
        return text[:start] + _put(text[start:end], rest, value, is_bare=is_bare) + text[end:]
    # 4. What is missing comes behind the last.
    empty = "" if not rest else "[]" if rest[0].isdecimal() else "{}"
    made = _put(empty, rest, value, is_bare=is_bare)
    children = _children(text)
    first = text.lstrip()[0]
    if first == "[" and step != str(len(children)):
        raise ValueError(step)
    member = made if first == "[" else f"{_quoted(step)}:{made}"
    at = children[-1][2] if children else text.index(first) + 1
    return f"{text[:at]}{',' if children else ''}{member}{text[at:]}"


def _child(text: str, step: str) -> tuple[int, int] | None:
    """Return where the value of a member begins and ends, None without it."""
    found = [(start, end) for name, start, end in _children(text) if name == step]
    if not found:
        return None
    [place] = found  # or a ValueError
    return place


def _children(text: str) -> list[tuple[str, int, int]]:
    """Return the members of an object or a list: name or number, where its value begins and ends."""
    if text.lstrip().startswith("["):
        return [(str(place), start, end) for place, (start, end) in enumerate(item_spans(text))]
    return [(span.name, span.value, span.end) for span in member_spans(text)]


def _unquoted(text: str) -> str:
    if not text.startswith('"'):
        return text
    inner = str(json.loads(text))
    inner.encode("utf-8")  # half of a letter is a ValueError
    return inner


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
