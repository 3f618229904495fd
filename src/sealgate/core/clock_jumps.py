"""Jumps of this host's clocks, seen by holding three of them against each other.

All three run at one rate. So when, between two readings, one has advanced otherwise than the others,
something happened to it: a suspend (the clock that counts it is ahead of the one that does not), or somebody
set the wall clock. The server's time is kept on the clock that counts suspend, so neither harms a signature
by itself; both are reasons to take a fresh sample at once.
"""

from dataclasses import dataclass
from enum import StrEnum

_LEAST_S = 0.1  # well over what reading three clocks in turn can differ by


@dataclass(frozen=True, slots=True)
class SystemClocks:
    """One reading, in seconds: `boot` counts suspend, `mono` does not, `wall` can be set."""

    boot: float
    mono: float
    wall: float


class Jump(StrEnum):
    """What happened to a clock between two readings."""

    SUSPEND = "suspend"
    WALL_STEP = "wall_step"


def find_jump(before: SystemClocks, after: SystemClocks) -> Jump | None:
    """Return what happened between two readings, None if nothing did."""
    elapsed = after.boot - before.boot
    if elapsed - (after.mono - before.mono) > _LEAST_S:
        return Jump.SUSPEND
    if abs(after.wall - before.wall - elapsed) > _LEAST_S:
        return Jump.WALL_STEP
    return None
