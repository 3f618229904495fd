import re

import pytest

from sealgate.errors import REASONS, Fault

# The closed list of docs/replies.md. Not every version knows all of them, and none knows others.
STATUSES = {
    "bad_request": 400,
    "ambiguous_target": 400,
    "bot_unauthenticated": 401,
    "bot_forbidden": 403,
    "policy_refused": 403,
    "app_only": 403,
    "browser_refused": 403,
    "outside_prefix": 404,
    "method_refused": 405,
    "body_timeout": 408,
    "in_flight": 409,
    "body_too_large": 413,
    "expectation_refused": 417,
    "host_refused": 421,
    "key_reused": 422,
    "rate_limited": 429,
    "headers_too_large": 431,
    "upgrade_refused": 501,
    "upstream_unreachable": 502,
    "upstream_broken": 502,
    "clock_unsynced": 503,
    "draining": 503,
    "halted": 503,
    "key_disabled": 503,
    "queue_full": 503,
    "deadline_exceeded": 504,
    "upstream_timeout": 504,
}
OURS = {"internal_error": 500, "coding_refused": 501}


@pytest.mark.parametrize("slug", REASONS)
def test_a_reason_has_the_status_of_the_contract(slug: str) -> None:
    assert REASONS[slug].status == (STATUSES | OURS)[slug]


@pytest.mark.parametrize("slug", REASONS)
def test_a_reason_says_what_and_what_to_do(slug: str) -> None:
    reason = REASONS[slug]
    assert reason.title
    assert not reason.title.endswith(".")
    assert reason.advice.endswith(".")


@pytest.mark.parametrize("slug", REASONS)
def test_the_fault_agrees_with_the_status(slug: str) -> None:
    """4xx is the bot's doing but for the upstream's limit; 5xx is not, but for what nobody offers."""
    exceptions = {"rate_limited": Fault.UPSTREAM, "upgrade_refused": Fault.BOT, "coding_refused": Fault.BOT}
    reason = REASONS[slug]
    is_the_bots = exceptions.get(slug, Fault.BOT if reason.status < 500 else None) is Fault.BOT
    assert (reason.fault is Fault.BOT) is is_the_bots
    assert (reason.fault is Fault.UPSTREAM) is (slug.startswith("upstream_") or slug == "rate_limited")


@pytest.mark.parametrize("slug", REASONS)
def test_an_advice_stands_in_the_detail_and_alone_in_the_documents(slug: str) -> None:
    """It speaks neither of the detail that goes before it nor of what only that names."""
    assert re.search(r"\bdetail\b|\bthat\b(,| bound| is over)", REASONS[slug].advice) is None
