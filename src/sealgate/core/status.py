"""The gateway's state at one moment, for those who look at it: metrics, readiness, status page, demo."""

from collections import Counter
from dataclasses import dataclass

from sealgate.core.doubts import JournalStatus
from sealgate.core.pacing.status import LimitStatus, PacerStatus
from sealgate.core.routes import Lane


@dataclass(frozen=True, slots=True)
class ClockStatus:
    """The clock, in seconds, None until the first sample; `offset_s` is upstream minus wall clock here."""

    offset_s: float | None
    error_s: float | None
    age_s: float | None
    steps: int
    refusals: int
    trouble: str | None


@dataclass(frozen=True, slots=True)
class KeyStatus:
    """One key: what is left of its pause, how many wait by lane and by bot, and what is known of its limits.

    `at_a_time` is the most requests that may be under way, None where no such limit was met.
    """

    alias: str
    pause_s: float
    waiting: dict[str, int]
    waiting_by_bot: dict[str, int]
    limits: tuple[LimitStatus, ...]
    at_a_time: int | None


def key_status(alias: str, pacer: PacerStatus) -> KeyStatus:
    """Return a key's state as its readers want it."""
    by_lane: Counter[str] = Counter({lane.value: 0 for lane in Lane})
    by_bot: Counter[str] = Counter()
    for (lane, bot), count in pacer.waiting.items():
        by_lane[lane.value] += count
        by_bot[bot] += count
    return KeyStatus(alias, pacer.pause_s, dict(by_lane), dict(by_bot), pacer.limits, pacer.at_a_time)


@dataclass(frozen=True, slots=True)
class Status:
    """Everything at once. `not_ready` is empty when the gateway is ready, else the reasons in words."""

    version: str
    base_url: str
    uptime_s: float
    not_ready: tuple[str, ...]
    is_draining: bool
    inflight: int
    connections: int
    clock: ClockStatus
    keys: tuple[KeyStatus, ...]
    journal: JournalStatus
