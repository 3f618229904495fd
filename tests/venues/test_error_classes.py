"""What ccxt raises for each reason of the gateway, at each exchange whose file has `[errors]`."""

from typing import Any

import ccxt  # type: ignore[import-untyped]
import pytest

from sealgate.config.venues import built_in_venue
from sealgate.errors import REASONS, Refusal
from sealgate.request.replies import Reply, problem
from sealgate.venues.error_shapes import ErrorClass, class_of
from sealgate.venues.replies import Means
from sealgate.venues.venue import Venue
from venues.through import FILES

VENUES = {venue.name: venue for venue in (built_in_venue(file.stem) for file in FILES) if venue.errors}


def reply(venue: Venue, slug: str, *, is_unknown: bool) -> Reply:
    return problem(Refusal(slug, "So it is."), "id", 1_790_000_000.0, venue.errors, is_unknown=is_unknown)


IDS = {
    "binance-options": "binance",
    "binance-papi": "binance",
    "htx-swap": "htx",
    "mexc-contract": "mexc",
    "bitmart-futures": "bitmart",
}
# ccxt 4.5.0 had the others; their codes were tried with it once.
HELD = {name: venue for name, venue in VENUES.items() if hasattr(ccxt, IDS.get(name, name))}
RAISED = {
    ErrorClass.AUTHENTICATION: ccxt.AuthenticationError,
    ErrorClass.PERMISSION: ccxt.AuthenticationError,
    ErrorClass.LIMITED: (ccxt.RateLimitExceeded, ccxt.DDoSProtection),
    ErrorClass.UNKNOWN: (ccxt.RequestTimeout, ccxt.ExchangeNotAvailable),
    ErrorClass.UNAVAILABLE: (ccxt.ExchangeNotAvailable, ccxt.RequestTimeout),
    ErrorClass.OTHER: (ccxt.BadRequest, ccxt.AuthenticationError),
}
CASES = [(slug, is_unknown) for slug in REASONS for is_unknown in (False, True)]


def raised_by(exchange: Any, answer: Reply) -> Exception:
    """Return what ccxt raises for a reply, in the steps of its `fetch`."""
    text, address = answer.body.decode(), "http://127.0.0.1:8787/order"
    document = exchange.parse_json(text) if exchange.is_json_encoded_object(text) else None
    fields = {name.decode(): value.decode() for name, value in answer.fields}
    try:
        if not exchange.handle_errors(
            answer.status, answer.phrase, address, "POST", fields, text, document, {}, ""
        ):
            exchange.handle_http_status_code(answer.status, answer.phrase, address, "POST", text)
    except ccxt.BaseError as error:
        raised: Exception = error
        return raised
    return RuntimeError("ccxt raises a plain ExchangeError")


@pytest.mark.parametrize("venue", HELD.values(), ids=HELD)
def test_ccxt_raises_what_each_reason_is(venue: Venue) -> None:
    """Never a plain ExchangeError, and a NetworkError only where asking again may change something."""
    exchange = getattr(ccxt, IDS.get(venue.name, venue.name))()
    exchange.options["hasAlreadyAuthenticatedSuccessfully"] = True
    found = {}
    for slug, is_unknown in CASES:
        error, answer = class_of(slug, is_unknown=is_unknown), reply(venue, slug, is_unknown=is_unknown)
        raised = raised_by(exchange, answer)
        if not (isinstance(raised, RAISED[error]) and slug in str(raised)):
            found[slug, is_unknown] = raised
    assert found == {}


@pytest.mark.parametrize("venue", VENUES.values(), ids=VENUES)
def test_the_exchanges_own_rules_read_it_as_no_more_certain_than_it_is(venue: Venue) -> None:
    """What may have executed is told as what may have executed, and nothing as done."""
    found = {}
    for slug, is_unknown in CASES:
        answer = reply(venue, slug, is_unknown=is_unknown)
        means = venue.replies.judge(answer.status, answer.body, is_order=True).means
        if means is Means.DONE or (is_unknown and means is not Means.UNKNOWN):
            found[slug, is_unknown] = means
    assert found == {}
