"""What replies of the default venue mean, for tests of what goes by that."""

from sealgate.config.venues import default_venue
from sealgate.orders.outcome import UpstreamError
from sealgate.venues.replies import Verdict

ERRORS = default_venue().replies.errors()


def judged(status: int, body: bytes = b"") -> Verdict:
    return default_venue().replies.judge(status, body)


def verdict(kind: str) -> Verdict:
    """Return the verdict of a kind of error, without what a reply says besides."""
    return ERRORS[kind].verdict


def upstream_error(
    kind: str,
    at: float,
    retry_after_s: float | None = None,
    clock_error_s: float | None = None,
    step_s: float | None = None,
) -> UpstreamError:
    return UpstreamError(verdict(kind), at, retry_after_s, clock_error_s, step_s)
