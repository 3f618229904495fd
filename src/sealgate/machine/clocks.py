"""One reading of the clocks of this machine."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SystemClocks:
    """One reading, in seconds: `boot` counts suspend, `mono` does not, `wall` can be set."""

    boot: float
    mono: float
    wall: float
