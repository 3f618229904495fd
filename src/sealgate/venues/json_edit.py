"""A JSON text changed at places: members put in and taken out, while all other letters stay as they came.

A place is the steps of a JSON pointer. A step into a string reads that as JSON: some exchanges send it so.
"""

import json
from collections.abc import Iterator, Sequence

from sealgate.venues.json_bytes import cut_members, item_spans, member_spans
from sealgate.venues.unsignable import UnsignableError

_UNREADABLE = "the message is no JSON to which the gateway could add what is signed"


def text_at(text: str, steps: Sequence[str]) -> str:
    """Return what stands at a place, as it is written; a string without quotes and escapes; "" for nothing.

    Raises UnsignableError where the text is no JSON.
    """
    try:
        for step in steps:
            found = next(
                (text[start:end] for name, start, end in _children(_unquoted(text)) if name == step), ""
            )
            if not found:
                return ""
            text = found
        return _unquoted(text)
    except (ValueError, RecursionError):
        raise UnsignableError(_UNREADABLE) from None


def put(text: str, steps: Sequence[str], value: str, *, is_bare: bool = False) -> str:
    """Put a value at a place, in the place of what is there; parents that are missing are made.

    It is written as a number where one stood there or it `is_bare`, else as a string. Raises UnsignableError
    where there is no such place.
    """
    try:
        return _put(text, steps, value, is_bare=is_bare)
    except (ValueError, RecursionError):
        raise UnsignableError(_UNREADABLE) from None


def drop(text: str, steps: Sequence[str]) -> str:
    """Cut a member of an object, with one comma, if it is there. Raises UnsignableError as `put` does."""
    *way, name = steps
    try:
        return _dropped(text, way, name)
    except (ValueError, RecursionError):
        raise UnsignableError(_UNREADABLE) from None


def _dropped(text: str, way: Sequence[str], name: str) -> str:
    if not way:
        return cut_members(text.encode(), [name.encode()]).decode()
    inner = _unquoted(text)
    for step, start, end in _children(inner):
        if step == way[0]:
            changed = inner[:start] + _dropped(inner[start:end], way[1:], name) + inner[end:]
            return changed if inner == text else _quoted(changed)
    return text


def _put(text: str, steps: Sequence[str], value: str, *, is_bare: bool) -> str:
    # 1. The place itself.
    if not steps:
        is_number = value.isdecimal() and (text[:1].isdecimal() or text[:1] == "-")
        return value if is_number or (is_bare and text[:1] != '"') else _quoted(value)
    # 2. JSON within a string.
    if text.startswith('"'):
        return _quoted(_put(_unquoted(text), steps, value, is_bare=is_bare))
    # 3. What is there on the way.
    step, *rest = steps
    children = list(_children(text))
    for name, start, end in children:
        if name == step:
            return text[:start] + _put(text[start:end], rest, value, is_bare=is_bare) + text[end:]
    # 4. What is missing comes last.
    empty = "" if not rest else "[]" if rest[0].isdecimal() else "{}"
    made = _put(empty, rest, value, is_bare=is_bare)
    end = max(text.rfind("}"), text.rfind("]"))
    if text[end] == "]" and step != str(len(children)):
        raise UnsignableError(f"the message has no place {step} in a list that this venue signs")
    member = made if text[end] == "]" else f"{_quoted(step)}:{made}"
    comma = "," if children else ""
    return f"{text[:end].rstrip()}{comma}{member}{text[end:]}"


def _children(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the members of an object or a list: name or number, where its value begins and ends."""
    if text.lstrip()[:1] == "[":
        for place, (start, end) in enumerate(item_spans(text)):
            yield str(place), start, end
    else:
        for span in member_spans(text):
            yield span.name, span.value, span.end


def _unquoted(text: str) -> str:
    return str(json.loads(text)) if text.startswith('"') else text


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
