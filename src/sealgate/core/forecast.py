"""When the next 429 is to be expected, for people who watch.

A limit of `n` per window that sees `rate` requests a second settles at `rate * window` used. Where that is
below `n`, it is never full; else the use grows by what comes in less what leaves the window.
"""

from typing import NamedTuple

_FULL = 0.999


class Use(NamedTuple):
    """One key at a moment: `used` of `n` per `window_s`, and `rate` requests per second.

    `n` is None as long as no limit is known; `pause_s` is what is left of a pause, `spent_s` for how long
    nothing is left of the limit, as the exchange said.
    """

    used: float
    n: float | None
    window_s: float
    rate: float
    waiting: int
    pause_s: float
    spent_s: float


class Forecast(NamedTuple):
    """Seconds to the next 429, None where none is in sight, and the same in words."""

    in_s: float | None
    words: str


def forecast(use: Use) -> Forecast:
    """Say when the next 429 is to be expected."""
    if use.pause_s > 0:
        return Forecast(None, f"paused for {use.pause_s:.1f} s more")
    if use.spent_s > 0:
        return Forecast(None, f"held off: the exchange says nothing is left for {use.spent_s:.1f} s")
    if use.n is None:
        return Forecast(None, "no limit known yet")
    if use.waiting:
        return Forecast(None, "held off: requests wait instead")
    growth = use.rate - use.used / use.window_s
    if use.rate * use.window_s < use.n * _FULL or growth <= 0:
        return Forecast(None, "not at this pace")
    in_s = max(0.0, use.n - use.used) / growth
    return Forecast(in_s, f"in about {in_s:.0f} s at this pace")
