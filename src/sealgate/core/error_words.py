"""An error reply of the exchange in a few words, fit for one line of a terminal.

Source: spec.md, Errors: the message is in the `detail` field, for 422 as an array of field-level errors.
"""

import json
from collections.abc import Iterable

_LONGEST = 100
_LONGEST_BODY = 65_536  # bytes; an error is short, and what is longer would take long to parse


def error_words(status: int, body: bytes, hidden: Iterable[str] = ()) -> str:
    """Return the status and what the body says, if it says it as the specification has it.

    What was sent and nobody is to read, `hidden`, is left out, should the exchange repeat it.
    """
    detail = detail_of(body)
    # Before anything is cut: a part of a token is too much, too. The longest first, as one may be in another.
    for one in sorted(filter(None, hidden), key=len, reverse=True):
        detail = detail.replace(one, "…")
    printable = "".join(letter if letter.isprintable() else " " for letter in detail)
    if len(printable) > _LONGEST:
        printable = f"{printable[:_LONGEST]}…"
    return f"{status} {printable}".strip()


def detail_of(body: bytes) -> str:
    """Return the message of an error reply, "" where it has none as the specification has it.

    Whatever else stands in the body may be the text of whoever sent the request, and says nothing.
    """
    if len(body) > _LONGEST_BODY:
        return ""
    try:
        document = json.loads(body.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return ""
    detail = document.get("detail") if isinstance(document, dict) else None
    if isinstance(detail, list):
        return "; ".join(str(one.get("msg", "")) for one in detail if isinstance(one, dict))
    return detail if isinstance(detail, str) else ""
