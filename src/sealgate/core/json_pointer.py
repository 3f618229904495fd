"""JSON pointers (RFC 6901): one value of a document, named by the way to it."""


def pick(document: object, pointer: str) -> object:
    """Return what stands at a pointer, None where there is nothing; "" is the whole document."""
    for token in pointer.split("/")[1:]:
        document = _child(document, token.replace("~1", "/").replace("~0", "~"))
    return document


def _child(document: object, name: str) -> object:
    if isinstance(document, dict):
        return document.get(name)
    if isinstance(document, list) and name.isdecimal() and int(name) < len(document):
        return document[int(name)]
    return None
