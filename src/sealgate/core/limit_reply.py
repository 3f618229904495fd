"""What a reply says about the limit, as the pacer takes it."""

from collections.abc import Iterable
from functools import lru_cache

from sealgate.core.attempts import TOO_MANY_REQUESTS
from sealgate.core.pacing.claims import Fate, Reply
from sealgate.core.pacing.stated import parse_quota_fields
from sealgate.core.retry_after import parse_retry_after

_ACCEPTED = Reply(Fate.ACCEPTED)
_TELLING = (b"retry-after", b"ratelimit", b"x-ratelimit")


def limit_reply(status: int, fields: Iterable[tuple[bytes, bytes]], server_now: float) -> Reply:
    """Read status and fields of a whole reply; `server_now` is epoch seconds by the server's clock.

    `Retry-After` counts on a 429 alone: on others (301, 503) it does not speak of the limit.
    """
    told: dict[str, str] = {}
    for name, value in fields:
        told_name = _told_name(name)
        if told_name is not None:
            # Of several lines the first counts: no later one may shorten what it says.
            told.setdefault(told_name, value.decode("latin-1"))
    if not told and status != TOO_MANY_REQUESTS:
        return _ACCEPTED
    quotas = parse_quota_fields(told, server_now)
    if status != TOO_MANY_REQUESTS:
        return Reply(Fate.ACCEPTED, quotas=quotas)
    stated = told.get("retry-after")
    resolution_s = 0.0 if stated is not None and "." in stated else 1.0
    return Reply(Fate.LIMITED, parse_retry_after(stated, server_now), resolution_s, quotas)


@lru_cache(maxsize=256)
def _told_name(name: bytes) -> str | None:
    """Return a field's name in lower case, None where it does not speak of the limit."""
    lower = name.lower()
    return lower.decode("latin-1") if lower.startswith(_TELLING) else None
