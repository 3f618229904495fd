"""A time that passed, or passes, in words: one way to round, wherever people read it."""

_UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


def span(seconds: float) -> str:
    """Return "12 s", "10 min" or "3 h": the largest unit that there is more than one of, down to "0.05 s"."""
    seconds = max(0.0, seconds)
    size, unit = next((one for one in _UNITS if seconds > one[0]), _UNITS[-1])
    return f"{round(seconds / size, 2 if seconds < 1 else 0):g} {unit}"
