"""What a reply states about the limit, in the form that the pacer takes."""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from sealgate.limits.claims import Fate, LimitReply
from sealgate.limits.quotas import Quota, parse_quota_fields
from sealgate.machine.findings import in_one_line
from sealgate.venues.limit_rules import Counter
from sealgate.venues.replies import Means, Verdict, WaitRule
from sealgate.venues.server_time import is_plausible, parse_http_date, stated_time

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")  # stricter than float(), which takes "1_0" and "nan"
LONGEST_S = 366 * 86_400.0
_COUNT = re.compile(rb"[0-9]{1,15}(?:\.[0-9]{1,9})?")
_ACCEPTED = LimitReply(Fate.ACCEPTED)


def parse_retry_after(value: str | None, server_now: float) -> float | None:
    """Return the seconds to wait, None if nothing usable is stated.

    `server_now` is the server's time in epoch seconds, because a date is by the server's clock.

    A wait is never shortened: of several lines the longest counts. A line that cannot be meant (negative, not
    a number, a date in the past, or more than a year, such as a time of day in place of a wait) counts as
    absent, so that the backoff decides.
    """
    if value is None:
        return None
    waits = (_wait_s(line.strip(), server_now) for line in value.split("\n"))
    return max((wait for wait in waits if wait is not None and 0 <= wait <= LONGEST_S), default=None)


def _wait_s(line: str, server_now: float) -> float | None:
    if _NUMBER.fullmatch(line):
        return float(line)
    date = parse_http_date(line)
    return None if date is None else date - server_now


def counted(
    counters: Iterable[Counter], fields: Iterable[tuple[bytes, bytes]], server_now: float
) -> tuple[Quota, ...]:
    """Return what is left, and until when, by a venue's counters in a reply's raw fields.

    A count that states no reset begins anew at whole multiples of its window.
    """
    texts = {name.lower(): value for name, value in fields}
    quotas = []
    for counter in counters:
        count = _number(texts, counter.header)
        most = counter.most or _number(texts, counter.most_header)
        if count is None or (counter.counts == "used" and most is None):
            continue
        whole = math.inf if most is None else most
        left = min(count, whole) if counter.counts == "left" else max(0.0, whole - count)
        reset_s = _reset_s(counter, _number(texts, counter.resets_header), server_now)
        quota = Quota(math.inf, left=left, reset_s=reset_s, name=counter.header.lower(), pool=counter.pool)
        # What was counted beyond the most is granted, unless the reply is a refusal.
        if counter.counts == "used" and count > whole:
            quota = replace(quota, n=count, window_s=counter.window_s, is_least=True)
        quotas.append(quota)
    return tuple(quotas)


def _reset_s(counter: Counter, stated: float | None, server_now: float) -> float:
    """Return the seconds until a count begins anew; it is stated as `Counter.resets` says."""
    seconds = None
    if stated is not None:
        seconds = stated / 1000 if counter.resets.endswith("_ms") else stated
        if counter.resets.startswith("epoch"):
            seconds = seconds - server_now if is_plausible(seconds) else None
    if seconds is None:
        return counter.window_s - server_now % counter.window_s
    return min(max(0.0, seconds), counter.window_s)


def _number(texts: Mapping[bytes, bytes], header: str) -> float | None:
    text = texts.get(header.lower().encode("ascii"))
    return float(text) if text is not None and _COUNT.fullmatch(text) else None


def limit_reply(  # noqa: PLR0913, PLR0917 - all that a reply may tell
    verdict: Verdict,
    told: Mapping[str, str],
    server_now: Callable[[], float],
    counts: tuple[Quota, ...] = (),
    fields: Iterable[tuple[bytes, bytes]] = (),
    error_s: float = 0.0,
) -> LimitReply:
    """Return what a reply states of the limit, in its fields (`ReplyHead.limit_fields`) and its `counts`.

    `server_now` returns epoch seconds by the server's clock, accurate to `error_s`; it is called only if a
    field needs it. `fields` are all of the reply, raw.
    """
    if counts and verdict.is_limited:
        counts = tuple(replace(one, n=math.inf, window_s=math.inf, is_least=False) for one in counts)
    elif counts:  # nobody knows what is left where more than the most was granted
        counts = tuple(replace(one, left=None) if one.is_least else one for one in counts)
    if not told and not verdict.is_limited:
        return LimitReply(Fate.ACCEPTED, quotas=counts) if counts else _ACCEPTED
    now = server_now()
    quotas = (*parse_quota_fields(told, now), *counts)
    # 1. `Retry-After` on other replies (301, 503) does not concern the limit.
    if not verdict.is_limited:
        return LimitReply(Fate.ACCEPTED, quotas=quotas)
    # 2. The exchange may state the wait in `Retry-After`, in its words, or in a header that the rule names.
    #    A moment that is not in the future states none: exchanges also write "now" if nothing is exceeded.
    stated, documented_s = told.get("retry-after"), verdict.wait.documented_s
    resolution_s = 0.0 if stated is not None and "." in stated else 1.0
    until = stated_time(verdict.found.get("until", ""))
    in_header = _moment_s(verdict.wait, {name.lower(): value for name, value in fields}, now)
    ends = (None if until is None else until - now, in_header)
    waits = [end_s + error_s for end_s in ends if end_s is not None and 0 < end_s <= LONGEST_S]
    if (retry_after_s := parse_retry_after(stated, now)) is not None:
        waits.append(retry_after_s)
    # 3. The longest counts; if none is stated, the wait that the exchange's documents ask for.
    wait_s = max(waits, default=None)
    is_documented = not wait_s and documented_s is not None
    wait_s = documented_s if is_documented else wait_s
    fate = Fate.BANNED if verdict.means is Means.BANNED else Fate.LIMITED
    words, pools = in_one_line(verdict.words), verdict.wait.pools
    return LimitReply(
        fate, wait_s, resolution_s, quotas, words, is_documented, pools, server_now=now - error_s
    )


def _moment_s(rule: WaitRule, texts: Mapping[bytes, bytes], now: float) -> float | None:
    """Return in how many seconds the moment in the header of a rule is, None if the header states none."""
    number = _number(texts, rule.header)
    if number is None:
        return None
    seconds = number / 1000 if rule.moment.endswith("_ms") else number
    return seconds - now if rule.moment.startswith("epoch") else seconds
