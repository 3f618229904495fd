"""Numbers as people read them, and the moods of what is shown."""

from sealgate.machine.findings import span

GOOD, CALM, WARN, BAD = "good", "calm", "warn", "bad"
ALMOST_FULL = 0.95
_MINUS = "\u2212"
_NO_DIGITS_MS, _ONE_DIGIT_S = 10, 100  # from where so many digits are enough


def counted(count: int, one: str) -> str:
    """Return "1 order" or "1,200 orders"."""
    return f"{count:,} {one if count == 1 else one + 's'}"


def number(value: float, digits: int = 0) -> str:
    """Return a number with at most so many digits after the point."""
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if digits else text


def percent(part: float) -> str:
    """Return a part of one in percent."""
    return f"{part:.0%}".replace("%", " %")


def ms(value: float) -> str:
    """Return milliseconds with as many digits as matter; long times in seconds."""
    size = abs(value)
    if size >= _NO_DIGITS_MS * 1000:
        return f"{number(value / 1000, 1 if size < _ONE_DIGIT_S * 1000 else 0)} s"
    return f"{number(value, 2 if size < 1 else 1 if size < _NO_DIGITS_MS else 0)} ms"


def signed_ms(value: float) -> str:
    """Return milliseconds with their sign, which nothing has none of."""
    text = ms(abs(value))
    if not any(digit in text for digit in "123456789"):
        return text
    return f"{'+' if value > 0 else _MINUS}{text}"


def window(seconds: float) -> str:
    """Return a window to three digits if it is short: 0.815 s is not 1 s."""
    return f"{seconds:.3g} s" if seconds <= 60 else span(seconds)  # noqa: PLR2004 - a minute
