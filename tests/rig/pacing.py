"""Settings of a pacer whose only pool is `all`."""

from sealgate.limits.pool import PoolSettings
from sealgate.limits.pools import PacerSettings
from sealgate.limits.quotas import Quota


def settings_of(*known: Quota, queue: int = 1000, headers: bool = True) -> PacerSettings:
    """Return settings with these published limits."""
    return PacerSettings(queue, headers, {"all": PoolSettings(known)})
