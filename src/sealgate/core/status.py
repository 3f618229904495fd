"""The gateway's state at one moment, for those who look at it: metrics, readiness, status page, demo."""

from dataclasses import dataclass


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
    """One key: how long its pause still lasts, and how many requests wait in each lane."""

    alias: str
    pause_s: float
    waiting: dict[str, int]


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
