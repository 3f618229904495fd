"""What is known of a limit's refusals, and what a limit is read to be."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sealgate.core.pacing.episode import Episode
from sealgate.core.pacing.sent_log import Tally

RATE_TOLERANCE = 1.02  # between two rates that may be one: jitter moves them


class Kind(StrEnum):
    """What a limiter counts by; the values are for people, and for gateways that share a key."""

    UNKNOWN = "unknown"
    FIXED = "fixed"
    SLIDING = "sliding"
    BUCKET = "token bucket"


@dataclass(frozen=True, slots=True)
class Evidence:
    """Episodes of one limit, oldest first, and what was sent; times are true to `jitter_s`.

    A rate of `failed_rate` was refused although it was paced. Nothing before `since` speaks of this limit.
    """

    episodes: Sequence[Episode]
    log: Tally
    jitter_s: float
    failed_rate: float = math.inf
    since: float = -math.inf
    slow_until: float = -math.inf


@dataclass(frozen=True, slots=True)
class Reading:
    """A limit of `n` per `window` seconds."""

    kind: Kind
    n: float
    window: float

    @property
    def rate(self) -> float:
        """Per second."""
        return self.n / self.window
