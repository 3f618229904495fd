"""The exchange's clock: this machine's, ahead by a skew and running away by a drift."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import lru_cache

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Moment:
    """One instant as three clocks see it."""

    wall_ms: int
    """This machine's clock, for the journal."""
    server_ms: int
    """The exchange's clock: all that spec.md calls server time."""
    steady_s: float
    """Never runs backwards: for limits and windows."""


@dataclass(frozen=True, slots=True)
class ServerClock:
    """`skew_ms` at `since_s` of the steady clock, growing by `drift_ppm` millionths from there."""

    skew_ms: float
    drift_ppm: float
    since_s: float

    def moment(self, wall_ms: int, steady_s: float) -> Moment:
        """Read this clock, given this machine's two."""
        drift_ms = (steady_s - self.since_s) * self.drift_ppm / 1000
        return Moment(wall_ms, wall_ms + round(self.skew_ms + drift_ms), steady_s)


def iso(at_ms: int) -> str:
    """ISO 8601 UTC with milliseconds, as in `2030-01-31T12:00:00.000Z`."""
    return (EPOCH + timedelta(milliseconds=at_ms)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@lru_cache(maxsize=16)
def http_date(at_s: int) -> str:
    """RFC 9110 §5.6.7, from whole seconds."""
    return format_datetime(datetime.fromtimestamp(at_s, UTC), usegmt=True)
