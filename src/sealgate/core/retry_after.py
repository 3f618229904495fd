"""`Retry-After` (RFC 9110 section 10.2.3): seconds, here also with a fraction, or an HTTP-date.

What it says is never shortened. What it cannot mean (negative, not a number, a date in the past, more than a
year, as where the time of day stands in the place of a wait) counts as absent, so that the backoff decides.
"""

import re

from sealgate.core.server_time import parse_http_date

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")  # stricter than float(), which takes "1_0" and "nan"
LONGEST_S = 366 * 86_400.0


def parse_retry_after(value: str | None, server_now: float) -> float | None:
    """Return the seconds to wait, None where nothing usable is said.

    `server_now` is the server's time in epoch seconds, because a date is by the server's clock.
    """
    if value is None:
        return None
    seconds = _seconds(value.strip())
    if seconds is None:
        seconds = _until_date(value, server_now)
    return seconds if seconds is not None and 0 <= seconds <= LONGEST_S else None


def _seconds(value: str) -> float | None:
    return float(value) if _NUMBER.fullmatch(value) else None


def _until_date(value: str, server_now: float) -> float | None:
    date = parse_http_date(value)
    return None if date is None else date - server_now
