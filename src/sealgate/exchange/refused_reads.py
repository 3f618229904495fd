"""Why the exchange refuses a read that needs no key."""

from http import HTTPStatus

from sealgate.machine.findings import error_words
from sealgate.venues.replies import Means, Verdict

ASK_WHETHER_SERVED = "ask the exchange whether it serves your country and network"
NOT_SERVED = "the exchange does not serve this IP address (because of its country?)"


def refused_unsigned(status: int, verdict: Verdict) -> tuple[str, str]:
    """Return cause and fix of a read that was refused though it needs no key.

    The fix is "" if the settings may be wrong. Only the words of a lasting refusal are in the cause: others
    change from reply to reply, and each would be news in the log.
    """
    if verdict.means is Means.COUNTRY:
        return f"{NOT_SERVED}: {error_words(status, verdict.words).rstrip('.')}", ASK_WHETHER_SERVED
    if status == HTTPStatus.FORBIDDEN and not verdict.is_limited:
        return f"the answer was {status}", f"a firewall may refuse this IP address: {ASK_WHETHER_SERVED}"
    return f"the answer was {status}", verdict.advice if verdict.is_limited else ""
