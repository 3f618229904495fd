"""Where each venue says its time, against where ccxt asks and what it reads."""

import json
import subprocess
import sys
from pathlib import Path

from venues.calls import GONE
from venues.through import FILES, venue_of

HERE = Path(__file__).parent


def test_the_time_is_asked_and_read_where_ccxt_does() -> None:
    venues = [venue_of(file) for file in FILES if file.stem != "service" and file.stem not in GONE]
    timed = {venue.name: venue for venue in venues if venue.clock_path}
    assert len(timed) > 25
    asked = [f"{name}={venue.clock_field}" for name, venue in timed.items()]
    oracle = [sys.executable, "-m", "venues.oracle", "times", *asked]
    printed = subprocess.run(oracle, cwd=HERE.parent, check=True, capture_output=True, text=True).stdout
    found = {row["venue"]: row for row in map(json.loads, printed.splitlines())}
    assert [name for name in timed if not found[name]["is_read"]] == []
    paths = {name: found[name]["path"] for name in timed}
    # ccxt asks the spot exchange, whose clock need not be that of the futures.
    assert paths.pop("bitrue-futures") == "/api/v1/time"
    assert paths == {name: venue.clock_path for name, venue in timed.items() if name != "bitrue-futures"}
