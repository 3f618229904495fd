"""An error reply of the exchange in a few words, fit for one line of a terminal.

Source: spec.md, Errors: the message is in the `detail` field, for 422 as an array of field-level errors.
"""

import json

_LONGEST = 100


def error_words(status: int, body: bytes) -> str:
    """Return the status and what the body says, if it says it as the specification has it."""
    detail = "".join(letter if letter.isprintable() else " " for letter in _detail(body))
    if len(detail) > _LONGEST:
        detail = f"{detail[:_LONGEST]}…"
    return f"{status} {detail}".strip()


def _detail(body: bytes) -> str:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    detail = document.get("detail") if isinstance(document, dict) else None
    if isinstance(detail, list):
        return "; ".join(str(one.get("msg", "")) for one in detail if isinstance(one, dict))
    return detail if isinstance(detail, str) else ""
