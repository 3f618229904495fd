"""What unmodified client libraries raise for orders that a running gateway refuses."""

from pathlib import Path

import pytest

from venues.client_errors import measured
from venues.client_record import CCXT, KINDS, recorded

NETWORK = ("RateLimitExceeded", "DDoSProtection", "RequestTimeout", "ExchangeNotAvailable", "OnMaintenance")


@pytest.mark.slow
async def test_what_they_raise_is_what_is_written_down(tmp_path: Path) -> None:
    """`PYTHONPATH=tests python -m venues.client_errors` writes it anew."""
    assert await measured(tmp_path) == recorded()


def test_ccxt_tells_what_may_be_sent_again_from_what_may_not() -> None:
    """It raises a NetworkError for the one, an AuthenticationError or PermissionDenied for the other."""
    for one in recorded():
        if one.library == CCXT:
            is_for_the_moment = one.kind not in ("authentication", "permission", "halt")
            raised = str(one.raised).removeprefix("ccxt.")
            assert (raised in NETWORK) is is_for_the_moment, one
            assert is_for_the_moment or raised in {"AuthenticationError", "PermissionDenied"}, one


def test_the_reason_is_in_the_text() -> None:
    """Except where the library shows the status alone."""
    without = [one for one in recorded() if KINDS[one.kind][0] not in one.text]
    assert {(one.library, one.raised) for one in without} == {
        ("binance-sdk-spot", "binance_common.ServerError")
    }
