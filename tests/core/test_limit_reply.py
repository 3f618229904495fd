import math
from dataclasses import replace

import pytest

from rig.verdicts import judged
from sealgate.core.headers import sort_reply
from sealgate.core.limit_reply import counted, limit_reply
from sealgate.core.limits.claims import Fate, LimitReply
from sealgate.core.limits.quotas import Quota
from sealgate.core.venues.replies import Means, Verdict, Whose
from sealgate.core.venues.venue import Counter

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
            LimitReply(Fate.ACCEPTED, quotas=(Quota(100.0, 10.0),)),
            id="a stated quota",
        ),
    ],
)
def test_what_a_reply_says(status: int, fields: list[tuple[bytes, bytes]], reply: LimitReply) -> None:
    assert limit_reply(judged(status), sort_reply(fields).limit_fields, lambda: NOW) == reply


def test_of_several_lines_the_first_counts() -> None:
    fields = [(b"Retry-After", b"3600"), (b"Retry-After", b"0")]
    assert limit_reply(judged(429), sort_reply(fields).limit_fields, lambda: NOW).retry_after_s == 3600.0


BANNED = Verdict(Means.BANNED, "banned", Whose.UPSTREAM, "", {"until": "1790078460000"}, "Banned.\x07 Wait.")


def test_a_ban_lasts_as_long_as_its_words_or_the_header_say() -> None:
    assert limit_reply(BANNED, {}, lambda: NOW) == LimitReply(Fate.LIMITED, 60.0, 1.0, (), "Banned.  Wait.")
    assert limit_reply(BANNED, {"retry-after": "90"}, lambda: NOW).retry_after_s == 90.0
    assert limit_reply(BANNED, {"retry-after": "5"}, lambda: NOW).retry_after_s == 60.0
    assert limit_reply(BANNED, {}, lambda: NOW + 90.0).retry_after_s == 0.0


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
