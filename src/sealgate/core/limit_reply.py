"""What a reply says about the limit, as the pacer takes it."""

from collections.abc import Callable, Mapping

from sealgate.core.pacing.claims import Fate, LimitReply
from sealgate.core.pacing.stated import parse_quota_fields
from sealgate.core.retry_after import parse_retry_after
from sealgate.core.statuses import TOO_MANY_REQUESTS

_ACCEPTED = LimitReply(Fate.ACCEPTED)


def limit_reply(status: int, told: Mapping[str, str], server_now: Callable[[], float]) -> LimitReply:
    """Read what a reply's status and fields tell of the limit (`ReplyHead.limit_fields`).

    `server_now` returns epoch seconds by the server's clock; it is asked only where a field needs it.

    `Retry-After` counts on a 429 alone: on others (301, 503) it does not speak of the limit.
    """
    if not told and status != TOO_MANY_REQUESTS:
        return _ACCEPTED
    now = server_now()
    quotas = parse_quota_fields(told, now)
    if status != TOO_MANY_REQUESTS:
        return LimitReply(Fate.ACCEPTED, quotas=quotas)
    stated = told.get("retry-after")
    resolution_s = 0.0 if stated is not None and "." in stated else 1.0
    return LimitReply(Fate.LIMITED, parse_retry_after(stated, now), resolution_s, quotas)
