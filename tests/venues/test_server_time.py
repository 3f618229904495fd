import json
import math
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rig.verdicts import judged
from sealgate.http.headers import sort_reply
from sealgate.limits.claims import Fate, LimitReply
from sealgate.limits.limit_reply import counted, limit_reply, parse_retry_after
from sealgate.limits.quotas import Quota
from sealgate.venues.replies import Means, Verdict, WaitRule, Whose
from sealgate.venues.server_time import (
    UnreadableTimeError,
    epoch_seconds,
    parse_http_date,
    parse_server_time,
    stated_time,
)
from sealgate.venues.venue import Counter

T = 1_790_000_000
NOON = datetime(2026, 9, 22, 12, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("body", "seconds", "resolution"),
    [
        pytest.param("1790000000", T, 1, id="seconds"),
        pytest.param("1790000000123", T + 0.123, 1e-3, id="milliseconds"),
        pytest.param("1790000000123456", T + 0.123456, 1e-6, id="microseconds"),
        pytest.param("1790000000123456789", T + 0.123456789, 1e-6, id="nanoseconds"),
        pytest.param("1790000000.25", T + 0.25, 0.01, id="seconds with a fraction"),
        pytest.param("1790000000.123456", T + 0.123456, 1e-6, id="seconds to the microsecond"),
        pytest.param("1790000000.1234567", T + 0.1234567, 1e-6, id="seconds finer than that"),
        pytest.param("1790000000123.5", T + 0.1235, 1e-4, id="milliseconds with a fraction"),
        pytest.param("1790000000.0", T, 1, id="whole seconds as a float"),
        pytest.param("1790000000123.0", T + 0.123, 1e-3, id="whole milliseconds as a float"),
        pytest.param("1.79e9", T, 1, id="seconds with an exponent"),
        pytest.param('"1790000000"', T, 1, id="seconds as text"),
        pytest.param('"1790000000123"', T + 0.123, 1e-3, id="milliseconds as text"),
        pytest.param('"1790000000.500"', T + 0.5, 0.1, id="padded text"),
        pytest.param('"2026-09-22T12:00:00Z"', NOON, 1, id="ISO"),
        pytest.param('"2026-09-22T12:00:00.123Z"', NOON + 0.123, 1e-3, id="ISO to the millisecond"),
        pytest.param('"2026-09-22T12:00:00.000Z"', NOON, 1, id="ISO padded with zeros"),
        pytest.param('"2026-09-22T12:00:00,5Z"', NOON + 0.5, 0.1, id="ISO with a comma"),
        pytest.param('"2026-09-22T12:00:00.123456789Z"', NOON + 0.123456, 1e-6, id="ISO to the nanosecond"),
        pytest.param('"2026-09-22T12:00:00.5+00:00"', NOON + 0.5, 0.1, id="ISO with an offset"),
        pytest.param('"2026-09-22T14:00:00+02:00"', NOON, 1, id="ISO of elsewhere"),
        pytest.param('"2026-09-22T12:00:00"', NOON, 1, id="ISO without a zone is UTC"),
        pytest.param('"2026-09-22 12:00:00"', NOON, 1, id="ISO with a space"),
        pytest.param('"20260922T120000Z"', NOON, 1, id="ISO basic"),
        pytest.param('{"serverTime": 1790000000123}', T + 0.123, 1e-3, id="in an object"),
        pytest.param('{"data": {"iso": "2026-09-22T12:00:00Z"}}', NOON, 1, id="nested"),
        pytest.param('[{"a": []}, [[1790000000]]]', T, 1, id="in arrays"),
        pytest.param('{"deep": {"t": 1790000001}, "t": 1790000000}', T, 1, id="the nearest to the top"),
        pytest.param('{"limit": 20, "ok": true, "t": 1790000000}', T, 1, id="beside implausible values"),
        pytest.param('{"date": "2026-09-22", "t": 1790000000}', T, 1, id="beside a date alone"),
        pytest.param('{"date": "20260922", "t": 1790000000}', T, 1, id="beside a basic date alone"),
        pytest.param("1577836800", 1_577_836_800, 1, id="the earliest"),
        pytest.param("4102444799", 4_102_444_799, 1, id="the latest"),
    ],
)
def test_finds_the_time(body: str, seconds: float, resolution: float) -> None:
    found = parse_server_time(body.encode(), "")[:2]
    assert found[0] == pytest.approx(seconds, rel=0, abs=5e-7)
    assert found[1] == pytest.approx(resolution)


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        pytest.param({"a": {"b": T}}, "/a/b", id="nested"),
        pytest.param({"a": [1, {"b": T}]}, "/a/1/b", id="through an array"),
        pytest.param({"a/b": {"~c": T}}, "/a~1b/~0c", id="escaped"),
        pytest.param({"~1": T}, "/~01", id="escaped in the order of RFC 6901"),
        pytest.param({"": T}, "/", id="empty name"),
        pytest.param({"0": T}, "/0", id="digit as a name"),
        pytest.param({"t": T + 5, "u": T}, "/u", id="not the first"),
    ],
)
def test_a_pointer_picks_the_value(body: object, pointer: str) -> None:
    assert parse_server_time(json.dumps(body).encode(), pointer) == (T, 1.0, pointer)


@pytest.mark.parametrize(
    ("body", "pointer", "why"),
    [
        pytest.param(b"", "", "not JSON", id="empty"),
        pytest.param(b"<html>1790000000</html>", "", "not JSON", id="a page"),
        pytest.param(b'{"t": 179', "", "not JSON", id="cut"),
        pytest.param(b'"\xff\xfe"', "", "not JSON", id="not UTF-8"),
        pytest.param(b"[" * 100_000, "", "not JSON", id="too deep"),
        pytest.param(b"9" * 5000, "", "not JSON", id="too many digits"),
        pytest.param(b"{}", "", "any field", id="empty object"),
        pytest.param(b"[]", "", "any field", id="empty array"),
        pytest.param(b"null", "", "any field", id="null"),
        pytest.param(b"true", "", "any field", id="a boolean"),
        pytest.param(b"0", "", "any field", id="zero"),
        pytest.param(b"-1790000000", "", "any field", id="negative"),
        pytest.param(b"1577836799", "", "any field", id="before the earliest"),
        pytest.param(b"4102444800", "", "any field", id="after the latest"),
        pytest.param(b"NaN", "", "any field", id="not a number"),
        pytest.param(b"[Infinity, -Infinity, 1e999]", "", "any field", id="infinities"),
        pytest.param(b'"soon"', "", "any field", id="nonsense"),
        pytest.param(b'"9999-12-31T23:59:59Z"', "", "any field", id="ISO far in the future"),
        pytest.param(b'"0001-01-01T00:00:00+23:59"', "", "any field", id="ISO before all times"),
        pytest.param(b'"2026-13-45T12:00:00Z"', "", "any field", id="ISO of no day"),
        pytest.param(b'"2026-09-22T12:00Z"', "", "any field", id="ISO without seconds"),
        pytest.param(b'"2026-09-22"', "", "any field", id="a date alone"),
        pytest.param(b'{"t": 1790000000}', "/u", "at /u", id="pointer to nothing"),
        pytest.param(b'{"t": 1790000000}', "/t/u", "at /t/u", id="pointer below a value"),
        pytest.param(b"[1790000000]", "/1", "at /1", id="pointer past the end"),
        pytest.param(b"[1790000000]", "/-1", "at /-1", id="pointer from the end"),
        pytest.param(b'{"t": [1790000000]}', "/t", "at /t", id="pointer to an array"),
    ],
)
def test_says_where_it_looked(body: bytes, pointer: str, why: str) -> None:
    with pytest.raises(UnreadableTimeError, match=why):
        parse_server_time(body, pointer)


def test_a_pointer_to_nothing_is_answered_with_the_nearest_one_that_is_a_time() -> None:
    body = b'{"code": "0", "data": [{"ts": 1790000000123, "at": 1790000000}]}'
    with pytest.raises(UnreadableTimeError) as raised:
        parse_server_time(body, "/data/0/tss")
    assert str(raised.value) == "no plausible time at /data/0/tss; clock.field = '/data/0/ts' would be one"


moments = st.datetimes(datetime(2020, 1, 2), datetime(2099, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001 - Hypothesis wants them naive


@given(moments, st.sampled_from((1, 10**3, 10**6, 10**9)))
def test_the_time_lies_within_the_resolution_of_a_number(moment: datetime, per_second: int) -> None:
    microseconds = round(moment.timestamp() * 10**6)
    body = str(microseconds * per_second // 10**6).encode()
    seconds, resolution, _ = parse_server_time(body, "")
    assert seconds - 5e-7 <= microseconds / 10**6 <= seconds + resolution + 5e-7


@given(moments, st.sampled_from(("seconds", "milliseconds", "microseconds")))
def test_the_time_lies_within_the_resolution_of_a_text(moment: datetime, unit: str) -> None:
    seconds, resolution, _ = parse_server_time(json.dumps(moment.isoformat(timespec=unit)).encode(), "")
    assert seconds - 5e-7 <= moment.timestamp() <= seconds + resolution + 5e-7


values = st.text() | st.integers() | st.floats() | st.none() | st.booleans()
documents = st.recursive(
    values, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5
)


@given(st.binary() | documents.map(json.dumps).map(str.encode))
def test_any_reply_is_read_or_refused(body: bytes) -> None:
    try:
        seconds, resolution, _ = parse_server_time(body, "")
    except UnreadableTimeError:
        return
    assert T - 1e9 < seconds < T + 1e10
    assert 1e-6 <= resolution <= 1


def test_it_says_where_it_found_the_time() -> None:
    """What it found is logged; the pointer can be pasted into clock.field as it is."""
    body = json.dumps({"a": 1, "data": [{"x/y~z": T}]}).encode()
    found = parse_server_time(body, "")
    assert found.field == "/data/0/x~1y~0z"
    assert parse_server_time(body, found.field) == found


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        pytest.param("Tue, 22 Sep 2026 12:00:00 GMT", 1790078400.0, id="IMF-fixdate"),
        pytest.param("Tuesday, 22-Sep-26 12:00:00 GMT", 1790078400.0, id="RFC 850"),
        pytest.param("Tue Sep 22 12:00:00 2026", 1790078400.0, id="asctime, which is UTC"),
        pytest.param("yesterday", None, id="no date"),
        pytest.param("", None, id="absent"),
    ],
)
def test_http_dates(value: str, seconds: float | None) -> None:
    assert parse_http_date(value) == seconds


@pytest.mark.parametrize(
    ("detail", "seconds"),
    [
        (b"Timestamp outside recv_window (5000ms). Server time: 1790000000123", 1_790_000_000.123),
        (b"timestamp outside recv_window (5000ms). server time: 1790000000123", 1_790_000_000.123),
        (b"Timestamp outside recv_window (5000ms). Server time: 17900000001234", None),
        (b"Timestamp outside recv_window (5000ms). Server time: 0000000000000", None),
        (b"Invalid timestamp", None),
    ],
)
def test_what_a_refused_timestamp_states(detail: bytes, seconds: float | None) -> None:
    stated = judged(401, b'{"detail": "%b"}' % detail).found.get("server_time", "")
    assert stated_time(stated) == (None if seconds is None else pytest.approx(seconds, abs=1e-6))
    elsewhere = judged(401, b'{"detail": "Invalid timestamp", "path": "%b"}' % detail)
    assert elsewhere.found == {}


@pytest.mark.parametrize(("number", "expected"), [(1.7e9, 1.7e9), (1.7e12, 1.7e9), (5.0, None)])
def test_a_number_is_read_in_the_unit_that_gives_a_time_of_our_days(
    number: float, expected: float | None
) -> None:
    assert epoch_seconds(number) == expected


# Sun, 06 Nov 1994 08:49:37 GMT, the moment of RFC 9110 section 5.6.7.
RFC_MOMENT = 784_111_777.0


WAITS: dict[float | None, list[str | None]] = {
    3.0: ["3", " 3\t"],
    0.0: ["0", "Sun, 06 Nov 1994 09:49:20 +0100"],
    7.0: ["007"],
    0.25: ["0.25"],
    None: [
        *("2.5e1", "1_0", "31622401", "784111777", "1" + "0" * 300, "Sun, 06 Nov 1994 08:49:19 GMT"),
        *("Wed, 06 Nov 2094 08:49:37 GMT", "Sun, 31 Nov 1994 08:49:37 GMT"),
        *("Sun, 06 Nov 99999 08:49:37 GMT", "-1", "-0.001", "nan", "inf", "-Infinity", "9" * 400, "", "  "),
        *("soon", "3 seconds", "3, 4", None),
    ],
    366 * 86_400.0: ["31622400"],
    17.0: [
        *("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 +0000"),
        *("Sun, 06 Nov 1994 08:49:37 -0000", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"),
    ],
}


@pytest.mark.parametrize(
    ("wait_s", "value"), [(wait_s, one) for wait_s, all_of in WAITS.items() for one in all_of]
)
def test_the_wait(value: str | None, wait_s: float | None) -> None:
    assert parse_retry_after(value, RFC_MOMENT - 17) == wait_s


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


NOW = 1_790_078_400.0  # Tue, 22 Sep 2026 12:00:00 GMT
TYPE = (b"Content-Type", b"application/json")


@pytest.mark.parametrize(
    ("status", "fields", "reply"),
    [
        pytest.param(200, [TYPE], LimitReply(Fate.ACCEPTED), id="accepted"),
        pytest.param(
            503, [(b"Retry-After", b"5")], LimitReply(Fate.ACCEPTED), id="Retry-After without a 429"
        ),
        pytest.param(429, [TYPE], LimitReply(Fate.LIMITED), id="limited, nothing stated"),
        pytest.param(429, [(b"retry-after", b"2")], LimitReply(Fate.LIMITED, 2.0, 1.0), id="whole seconds"),
        pytest.param(
            429,
            [(b"Retry-After", b"1"), (b"Retry-After", b"3"), (b"Retry-After", b"soon")],
            LimitReply(Fate.LIMITED, 3.0, 1.0),
            id="several lines",
        ),
        pytest.param(429, [(b"RETRY-AFTER", b"0.25")], LimitReply(Fate.LIMITED, 0.25, 0.0), id="a fraction"),
        pytest.param(
            429,
            [(b"Retry-After", b"Tue, 22 Sep 2026 12:00:07 GMT")],
            LimitReply(Fate.LIMITED, 7.0, 1.0),
            id="a date",
        ),
        pytest.param(429, [(b"Retry-After", b"soon")], LimitReply(Fate.LIMITED), id="nonsense"),
        pytest.param(
            200,
            [(b"RateLimit-Policy", b'"default";q=100;w=10')],
            LimitReply(Fate.ACCEPTED, quotas=(Quota(100.0, 10.0, name='"default"'),)),
            id="a stated quota",
        ),
    ],
)
def test_what_a_reply_says(status: int, fields: list[tuple[bytes, bytes]], reply: LimitReply) -> None:
    assert limit_reply(judged(status), sort_reply(fields).limit_fields, lambda: NOW) == reply


def test_a_limit_is_written_as_the_configuration_has_it() -> None:
    assert str(Quota(0.5, 60.0)) == "0.5/60s"


def test_of_several_lines_the_first_counts() -> None:
    fields = [(b"Retry-After", b"3600"), (b"Retry-After", b"0")]
    assert limit_reply(judged(429), sort_reply(fields).limit_fields, lambda: NOW).retry_after_s == 3600.0


BANNED = Verdict(Means.BANNED, "banned", Whose.UPSTREAM, "", {"until": "1790078460000"}, "Banned.\x07 Wait.")


def test_a_ban_lasts_as_long_as_its_words_or_the_header_say() -> None:
    assert limit_reply(BANNED, {}, lambda: NOW) == LimitReply(Fate.BANNED, 60.0, 1.0, (), "Banned.  Wait.")
    assert limit_reply(BANNED, {"retry-after": "90"}, lambda: NOW).retry_after_s == 90.0
    assert limit_reply(BANNED, {"retry-after": "5"}, lambda: NOW).retry_after_s == 60.0
    assert limit_reply(BANNED, {}, lambda: NOW + 90.0).retry_after_s is None


THEN = 1_790_000_015.0
USED = Counter("X-Used", "used", 60.0, 6000.0, "", "")
LEFT = Counter("X-Left", "left", 10.0, 0.0, "X-Most", "X-Reset", "epoch_s")
ASKED = replace(USED, most=0.0, most_header="X-Most")


@pytest.mark.parametrize(
    ("counter", "fields", "quotas"),
    [
        (USED, [(b"x-used", b"5990")], [(10.0, 60.0 - THEN % 60.0)]),
        (USED, [(b"X-USED", b"7000")], [(0.0, 60.0 - THEN % 60.0)]),
        (USED, [(b"X-Used", b"many")], []),
        (USED, [(b"X-Other", b"1")], []),
        (replace(USED, per_route=True), [(b"X-Used", b"1")], []),
        (ASKED, [(b"X-Used", b"1")], []),
        (ASKED, [(b"X-Used", b"1"), (b"X-Most", b"3")], [(2.0, 60.0 - THEN % 60.0)]),
        (LEFT, [(b"X-Left", b"3"), (b"X-Reset", b"%d" % (THEN + 4))], [(3.0, 4.0)]),
        (
            replace(LEFT, resets="epoch_ms"),
            [(b"X-Left", b"3"), (b"X-Reset", b"%d" % (THEN * 1000 + 4000))],
            [(3.0, 4.0)],
        ),
        (
            LEFT,
            [(b"X-Left", b"3"), (b"X-Reset", b"%d" % (THEN * 1000 + 4000))],
            [(3.0, 10.0 - THEN % 10.0)],
        ),
        (replace(LEFT, resets="in_s"), [(b"X-Left", b"3"), (b"X-Reset", b"7")], [(3.0, 7.0)]),
        (replace(LEFT, resets="in_s"), [(b"X-Left", b"3"), (b"X-Reset", b"70")], [(3.0, 10.0)]),
        (replace(LEFT, resets="in_ms"), [(b"X-Left", b"3"), (b"X-Reset", b"7000")], [(3.0, 7.0)]),
        (replace(LEFT, resets="in_ms"), [(b"X-Left", b"3")], [(3.0, 10.0 - THEN % 10.0)]),
        (LEFT, [(b"X-Left", b"9"), (b"X-Most", b"5")], [(5.0, 10.0 - THEN % 10.0)]),
        (LEFT, [(b"X-Left", b"9"), (b"X-Most", b"50")], [(9.0, 10.0 - THEN % 10.0)]),
        (LEFT, [(b"X-Left", b"3"), (b"X-Reset", b"%d" % (THEN - 4))], [(3.0, 0.0)]),
        (LEFT, [(b"X-Left", b"3"), (b"X-Reset", b"%d" % (THEN + 4000))], [(3.0, 10.0)]),
        (LEFT, [(b"X-Left", b"3"), (b"X-Reset", b"14000")], [(3.0, 10.0 - THEN % 10.0)]),
    ],
)
def test_a_venues_counters_say_what_is_left(
    counter: Counter, fields: list[tuple[bytes, bytes]], quotas: list[tuple[float, float]]
) -> None:
    found = counted([counter], fields, THEN)
    assert [one.left for one in found] == [left for left, _ in quotas]
    assert [one.reset_s for one in found] == pytest.approx([reset_s for _, reset_s in quotas])
    assert {one.n for one in found} <= {math.inf}


def test_what_is_counted_is_taken_in_with_a_reply_that_says_no_more() -> None:
    counts = counted([USED], [(b"X-Used", b"1")], THEN)
    assert limit_reply(judged(200), {}, lambda: THEN, counts).quotas == counts
    assert limit_reply(judged(200), {}, lambda: THEN).quotas == ()


def rule(moment: str, documented_s: float | None = None) -> Verdict:
    return replace(LIMITED_BY_RULE, wait=WaitRule("x-reset", moment, documented_s))


LIMITED_BY_RULE = Verdict(Means.LIMITED, "rate_limited", Whose.UPSTREAM, "")


@pytest.mark.parametrize(
    ("moment", "text", "wait_s"),
    [
        ("epoch_s", b"1790078405", 5.25),
        ("epoch_ms", b"1790078401500", 1.75),
        ("in_s", b"7", 7.25),
        ("in_ms", b"700", 0.95),
        ("epoch_ms", b"1790078400000", None),  # exchanges write "now" where nothing is exceeded
        ("epoch_s", b"1790078399", None),
        ("in_ms", b"0", None),
        ("epoch_s", b"1790078405000", None),  # in another unit than the file says: no wait of a year
        ("in_s", b"soon", None),
    ],
)
def test_the_header_that_a_rule_names_states_the_wait(moment: str, text: bytes, wait_s: float | None) -> None:
    """It ends when the exchange's clock certainly says so: `error_s` is added, and nothing is taken off."""
    fields = [(b"X-Reset", text)]
    taught = limit_reply(rule(moment), {}, lambda: NOW, fields=fields, error_s=0.25)
    assert taught.retry_after_s == (None if wait_s is None else pytest.approx(wait_s))
    assert not taught.is_documented


def test_the_longest_wait_that_is_stated_counts_and_documents_only_without_one() -> None:
    fields = [(b"X-Reset", b"7")]
    both = limit_reply(rule("in_s", 900.0), {"retry-after": "9"}, lambda: NOW, fields=fields)
    assert both == LimitReply(Fate.LIMITED, 9.0)
    assert limit_reply(rule("in_s", 900.0), {}, lambda: NOW, fields=fields) == LimitReply(Fate.LIMITED, 7.0)
    documented = LimitReply(Fate.LIMITED, 900.0, is_documented=True)
    assert limit_reply(rule("in_s", 900.0), {}, lambda: NOW) == documented
    assert limit_reply(rule("in_s", 900.0), {"retry-after": "0"}, lambda: NOW) == documented
