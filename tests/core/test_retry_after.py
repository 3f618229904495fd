import math
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealgate.core.limit_reply import parse_retry_after

# Sun, 06 Nov 1994 08:49:37 GMT, the moment of RFC 9110 section 5.6.7.
RFC_MOMENT = 784_111_777.0


@pytest.mark.parametrize(
    ("value", "wait_s"),
    [
        pytest.param("3", 3.0, id="seconds"),
        pytest.param("0", 0.0, id="at once"),
        pytest.param("007", 7.0, id="zeros first"),
        pytest.param(" 3\t", 3.0, id="spaces around"),
        pytest.param("0.25", 0.25, id="fraction"),
        pytest.param("2.5e1", None, id="exponent"),
        pytest.param("1_0", None, id="underscore"),
        pytest.param("31622400", 366 * 86_400.0, id="a year is not shortened"),
        pytest.param("31622401", None, id="longer than a year"),
        pytest.param("784111777", None, id="the time of day in the place of a wait"),
        pytest.param("1" + "0" * 300, None, id="absurdly long"),
        pytest.param("Sun, 06 Nov 1994 08:49:37 GMT", 17.0, id="date"),
        pytest.param("Sun, 06 Nov 1994 08:49:37 +0000", 17.0, id="date with a zone"),
        pytest.param("Sun, 06 Nov 1994 08:49:37 -0000", 17.0, id="date of an unknown zone"),
        pytest.param("Sunday, 06-Nov-94 08:49:37 GMT", 17.0, id="date as RFC 850 wrote it"),
        pytest.param("Sun Nov  6 08:49:37 1994", 17.0, id="date as asctime writes it"),
        pytest.param("Sun, 06 Nov 1994 09:49:20 +0100", 0.0, id="date that is now"),
        pytest.param("Sun, 06 Nov 1994 08:49:19 GMT", None, id="date in the past"),
        pytest.param("Wed, 06 Nov 2094 08:49:37 GMT", None, id="date beyond a year"),
        pytest.param("Sun, 31 Nov 1994 08:49:37 GMT", None, id="date of no day"),
        pytest.param("Sun, 06 Nov 99999 08:49:37 GMT", None, id="date of no year"),
        pytest.param("-1", None, id="negative"),
        pytest.param("-0.001", None, id="a little negative"),
        pytest.param("nan", None, id="not a number"),
        pytest.param("inf", None, id="infinite"),
        pytest.param("-Infinity", None, id="minus infinite"),
        pytest.param("9" * 400, None, id="more than a float holds"),
        pytest.param("", None, id="empty"),
        pytest.param("  ", None, id="blank"),
        pytest.param("soon", None, id="nonsense"),
        pytest.param("3 seconds", None, id="with a unit"),
        pytest.param("3, 4", None, id="two values"),
        pytest.param(None, None, id="absent"),
    ],
)
def test_the_wait(value: str | None, wait_s: float | None) -> None:
    assert parse_retry_after(value, RFC_MOMENT - 17) == wait_s


ELSEWHERE = """
from sealgate.core.limit_reply import parse_retry_after
print(parse_retry_after("Sun Nov  6 08:49:37 1994", 784111777.0 - 17))
"""


def test_a_date_without_a_zone_is_not_by_the_hosts_zone() -> None:
    """In a process of its own, which believes that it is in Japan."""
    program = [sys.executable, "-c", ELSEWHERE]
    done = subprocess.run(program, capture_output=True, text=True, check=True, env={"TZ": "JST-9"})
    assert done.stdout == "17.0\n"


@given(st.datetimes(datetime(1970, 1, 2), datetime(9999, 1, 1)), st.floats(0, 1e6))  # noqa: DTZ001 - Hypothesis wants them naive
def test_a_date_is_by_the_servers_clock(date: datetime, ahead_s: float) -> None:
    date = date.replace(microsecond=0, tzinfo=UTC)
    server_now = (date - timedelta(seconds=ahead_s)).timestamp()
    wait_s = parse_retry_after(format_datetime(date, usegmt=True), server_now)
    assert wait_s == pytest.approx(ahead_s, abs=1e-4)


fragments = st.sampled_from(
    ("Sun, ", "06 ", "Nov ", "1994 ", "08:49:37", ":", " GMT", "+9999", "-", "99", ",", " ")
)


@given(st.text() | st.lists(fragments).map("".join))
def test_any_text_is_a_wait_or_nothing(value: str) -> None:
    wait_s = parse_retry_after(value, RFC_MOMENT)
    assert wait_s is None or (math.isfinite(wait_s) and wait_s >= 0)
