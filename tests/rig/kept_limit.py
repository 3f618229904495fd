"""A learned limit as the journal keeps it."""

from sealgate.limits import ALL, Limit, Weights
from sealgate.limits.snapshots import Snapshot, snapshot


def kept(n: float = 20.0, window: float = 1.0, weights: Weights = ALL, age_s: float = 180.0) -> Snapshot:
    """Return what the journal keeps of a limit that was learned from 14 refusals."""
    rate = n / window
    return snapshot([Limit(n, window, rate, rate, weights, seen=14, last_seen=-age_s)], 0.0)
