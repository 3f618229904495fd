"""Plain values as another gateway wrote them, or a stranger: each is checked before it is used.

Whatever is no value of the kind raises `MessageError`, so that a fault of this program is never taken for one
of the message.
"""

import contextlib
import math
from collections.abc import Iterator
from typing import Any

_LONGEST = 1000  # characters of a name; names of bots and requests are far shorter


class MessageError(Exception):
    """What came is no message of this version."""


@contextlib.contextmanager
def reading() -> Iterator[None]:
    """Raise MessageError for whatever reading raises. Nothing but reading belongs into the block."""
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        raise MessageError(repr(error)) from error


def number(value: Any, least: float = -math.inf) -> float:
    """Return a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < math.inf:
        raise MessageError(f"no number from {least:g}: {value!r:.100}")
    return float(value)


def positive(value: Any) -> float:
    """Return a finite number above 0."""
    if number(value) <= 0:
        raise MessageError(f"not above 0: {value!r:.100}")
    return float(value)


def whole(value: Any) -> int:
    """Return a whole number from 0 that is no longer than a float is exact."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**53:
        raise MessageError(f"no whole number from 0: {value!r:.100}")
    return value


def flag(value: Any) -> bool:
    """Return a truth value."""
    if not isinstance(value, bool):
        raise MessageError(f"no truth value: {value!r:.100}")
    return value


def text(value: Any) -> str:
    """Return a text of bounded length."""
    if not isinstance(value, str) or len(value) > _LONGEST:
        raise MessageError(f"no text: {value!r:.100}")
    return value
