"""Numbers, times and names as people read them, and the moods of what is shown."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from sealgate.machine.findings import span

GOOD, CALM, WARN, BAD = "good", "calm", "warn", "bad"
DASH = "\u2013"
_MINUS = "\u2212"
_A_DAY_MS = 86_400_000
_UNITS = {1.0: "s", 60.0: "min", 3600.0: "h", 86_400.0: "day"}
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


def rate(limit: Mapping[str, Any]) -> str:
    """Return how much a limit allows: "20/s", "about 4.9/s" if it was learned, "6,000/min", "600 per 5 s"."""
    low, high, window_s = limit["low"], limit["high"], limit["window_s"]
    least, most = _three_digits(low), _three_digits(low if high is None else high)
    how = "about " if least != most else ""
    if high is None:
        how = "about " if limit["seen"] else "at least "
    per = low if high is None else (low + high) / 2
    unit = _UNITS.get(window_s)
    if unit is None and (how or window_s < 1):
        unit, per = "s", per / window_s
    return f"{how}{_three_digits(per)}" + (f"/{unit}" if unit else f" per {window(window_s)}")


def _three_digits(value: float) -> str:
    return number(value, max(0, 2 - math.floor(math.log10(value))))


# Names and times in a picture.


def place(now: Mapping[str, Any], exchange: str) -> str:
    """Return " at perp" where there are several exchanges, else ""."""
    return f" at {exchange}" if exchange and len(now["exchanges"]) > 1 else ""


def alias_of(now: Mapping[str, Any], key: Mapping[str, Any]) -> str:
    """Return a key's name; of several exchanges, with that where it is valid."""
    return f"{key['alias']}{place(now, key['exchange'])}"


def ago(now: Mapping[str, Any], at_ms: int) -> str:
    """Return "3 min ago"."""
    return f"{span((now['at_ms'] - at_ms) / 1000)} ago"


def moment(now: Mapping[str, Any], at_ms: int) -> str:
    """Return "12:00:05 UTC, 3 min ago"."""
    return f"{time_of_day(now, at_ms)}, {ago(now, at_ms)}"


def time_of_day(now: Mapping[str, Any], at_ms: int) -> str:
    """Return "12:00:05 UTC", with the date if that was more than a day ago."""
    date = "%Y-%m-%d " if now["at_ms"] - at_ms > _A_DAY_MS else ""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):{date}%H:%M:%S} UTC"
