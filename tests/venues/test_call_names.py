"""The names of calls that are signed, against ccxt's, and where it has none against the exchanges' pages."""

import json

from venues.through import FILES, named, printed_by, venue_of

# Names that the page of each request has (2026-11).
_OF_PAGES = {
    "backpack": {
        "POST /api/v1/account/convertDust": "convertDust",
        "POST /api/v1/rfq/refresh": "rfqRefresh",
        "GET /api/v1/strategy": "strategyQuery",
        "POST /api/v1/strategy": "strategyCreate",
        "DELETE /api/v1/strategy": "strategyCancel",
        "GET /api/v1/strategies": "strategyQueryAll",
        "DELETE /api/v1/strategies": "strategyCancelAll",
        "GET /wapi/v1/history/position": "positionHistoryQueryAll",
    },
    "pacifica": {
        "POST /orders/twap/cancel": "cancel_twap_order",
        "POST /orders/twap/create": "create_twap_order",
    },
}


def test_each_name_is_the_exchanges() -> None:
    known = {
        name: names | _OF_PAGES[name] for name, names in json.loads(printed_by("venues.call_names")).items()
    }
    files = {venue.name for venue in map(venue_of, FILES) if venue.signing.by_route}
    assert files == set(known)
    for venue, names in known.items():
        by_route = named(venue).signing.by_route
        assert {f"{method} {path}": text.decode() for (method, path), text in by_route.items()} == names
