import re

import pytest

from sealgate.errors import REASONS, Fault


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
