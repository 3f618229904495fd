"""Which of the valid names somebody probably meant."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, valid: Iterable[str], least: float = 0.6) -> str | None:
    """Return the valid name that is most like a given one, None if none is; `least` is difflib's ratio."""
    close = get_close_matches(name, list(valid), n=1, cutoff=least)
    return close[0] if close else None


def did_you_mean(name: str, valid: Iterable[str]) -> str:
    """Return a hint at the nearest valid name, or at all of them if none is near."""
    names = list(valid)
    near = nearest(name, names, 0.5)
    return f"did you mean {near}?" if near else f"it may be {', '.join(names)}"
