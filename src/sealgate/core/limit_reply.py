"""What a reply says about the limit, as the pacer takes it."""

from collections.abc import Callable, Mapping

from sealgate.core.error_words import in_one_line
from sealgate.core.pacing.claims import Fate, LimitReply
from sealgate.core.pacing.stated import parse_quota_fields
from sealgate.core.retry_after import parse_retry_after
from sealgate.core.server_time import stated_time
from sealgate.core.venues.replies import Means, Verdict

_ACCEPTED = LimitReply(Fate.ACCEPTED)


def limit_reply(verdict: Verdict, told: Mapping[str, str], server_now: Callable[[], float]) -> LimitReply:
    """Read what a reply and its fields tell of the limit (`ReplyHead.limit_fields`).

    `server_now` returns epoch seconds by the server's clock; it is asked only where a field needs it.

    `Retry-After` counts on a refusal for the limit alone: on others (301, 503) it does not speak of it. Where
    the exchange says in words until when it shuts somebody out, that counts, too; the longer one holds.
    """
    if not told and not verdict.is_limited:
        return _ACCEPTED
    now = server_now()
    quotas = parse_quota_fields(told, now)
    if not verdict.is_limited:
        return LimitReply(Fate.ACCEPTED, quotas=quotas)
    stated = told.get("retry-after")
    resolution_s = 0.0 if stated is not None and "." in stated else 1.0
    waits = (parse_retry_after(stated, now), _left_s(verdict, now))
    wait_s = max((wait for wait in waits if wait is not None), default=None)
    ban = in_one_line(verdict.words) if verdict.means is Means.BANNED else ""
    return LimitReply(Fate.LIMITED, wait_s, resolution_s, quotas, ban)


def _left_s(verdict: Verdict, now: float) -> float | None:
    until = stated_time(verdict.found.get("until", ""))
    return None if until is None else max(0.0, until - now)
