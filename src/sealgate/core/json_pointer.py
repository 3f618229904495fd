"""JSON pointers (RFC 6901): one value of a document, named by the way to it."""

import re

POINTER = re.compile(r"(/([^/~]|~[01])*)+")  # but for the whole document's


def pick(document: object, pointer: str) -> object:
    """Return what stands at a pointer, None where there is nothing; "" is the whole document."""
    for token in pointer.split("/")[1:]:
        document = _child(document, token.replace("~1", "/").replace("~0", "~"))
    return document


def pick_each(document: object, pointer: str) -> list[object]:
    """Return all that stands at a pointer, in which * means each value of a list."""
    found = [document]
    for step in pointer.split("/")[1:]:
        if step == "*":
            found = [value for one in found if isinstance(one, list) for value in one]
        else:
            found = [_child(one, step.replace("~1", "/").replace("~0", "~")) for one in found]
    return [value for value in found if value is not None]


def _child(document: object, name: str) -> object:
    if isinstance(document, dict):
        return document.get(name)
    if isinstance(document, list) and name.isdecimal() and int(name) < len(document):
        return document[int(name)]
    return None
