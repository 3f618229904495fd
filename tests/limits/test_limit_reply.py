"""What a reply says of the limit: the wait, the counts, and bans."""

import math
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
from sealgate.venues.limit_rules import Counter
from sealgate.venues.replies import Means, Verdict, WaitRule, Whose

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
    assert {one.n for one in found if not one.is_least} <= {math.inf}


def test_a_count_beyond_the_most_shows_that_more_is_granted_unless_it_was_refused() -> None:
    counts = counted([USED], [(b"X-Used", b"7000")], THEN)
    [granted] = limit_reply(judged(200), {}, lambda: THEN, counts).quotas
    assert (granted.n, granted.window_s, granted.left) == (7000, 60.0, None)
    [refused] = limit_reply(LIMITED_BY_RULE, {}, lambda: THEN, counts).quotas
    assert (refused.n, refused.window_s, refused.left) == (math.inf, math.inf, 0.0)


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
