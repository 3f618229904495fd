import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rig.verdicts import judged
from sealgate.venues.server_time import (
    UnreadableTimeError,
    epoch_seconds,
    parse_http_date,
    parse_server_time,
    stated_time,
)

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
