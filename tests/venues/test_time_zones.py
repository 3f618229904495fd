"""A time without a zone is UTC, whatever the zone of the host."""

import subprocess
import sys
from datetime import UTC, datetime

NOON = datetime(2026, 9, 22, 12, tzinfo=UTC).timestamp()
OTHER_ZONES = """
from sealgate.limits.limit_reply import parse_retry_after
from sealgate.venues.server_time import parse_server_time
found = parse_server_time(b'"2026-09-22T12:00:00"', "")
print(tuple(found[:2]), parse_retry_after("Sun Nov  6 08:49:37 1994", 784111777.0 - 17))
"""


def test_a_date_without_a_zone_is_not_by_the_hosts_zone() -> None:
    """In a process of its own, which believes that it is in Japan."""
    program = [sys.executable, "-c", OTHER_ZONES]
    done = subprocess.run(program, capture_output=True, text=True, check=True, env={"TZ": "JST-9"})
    assert done.stdout == f"({NOON}, 1.0) 17.0\n"
