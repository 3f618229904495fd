"""A record of a request, for tests of what reads such records."""

from sealgate.core.outcome import Conclusion, Outcome

ANSWERED = Outcome(
    request_id="r-1",
    bot="grid",
    key="main",
    method="GET",
    route="/symbols/list",
    lane=None,
    status=200,
    conclusion=Conclusion.DONE,
    reason=None,
    detail=None,
    broken=None,
    attempts=1,
    resends=(),
    queue_s=0.0,
    upstream_s=0.0,
    bot_s=0.0,
    total_s=0.0,
    has_hung_up=False,
)
