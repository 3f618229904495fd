"""Where each venue says its time, against where ccxt asks and what it reads."""

import json

from venues.calls import GONE
from venues.through import FILES, printed_by, venue_of


def test_the_time_is_asked_and_read_where_ccxt_does() -> None:
    venues = [venue_of(file) for file in FILES if file.stem != "service" and file.stem not in GONE]
    timed = {venue.name: venue for venue in venues if venue.clock_path}
    assert len(timed) > 25
    asked = [f"{name}={venue.clock_field or '/timestamp'}" for name, venue in timed.items()]
    printed = printed_by("venues.oracle", "times", *asked)
    found = {row["venue"]: row for row in map(json.loads, printed.splitlines())}
    assert [name for name in timed if not found[name]["is_read"]] == []
    paths = {name: found[name]["path"] for name in timed}
    # ccxt asks the spot exchange, whose clock need not be that of the futures or options.
    assert paths.pop("bitrue-futures") == "/api/v1/time"
    assert paths.pop("binance-options") == "/api/v3/time"
    assert paths == {name: timed[name].clock_path for name in paths}
