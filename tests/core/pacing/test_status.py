import pytest

from sealgate.core.pacing.limit import Limit
from sealgate.core.pacing.sent_log import LimitScope
from sealgate.core.pacing.status import PacerStatus, in_words, limit_status


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (
            Limit(20.34, 1.0, seen=14, last_seen=820.0),
            "about 20.3 per 1 s, seen 14 times, last 429 3 min ago",
        ),
        (Limit(1200.0, 60.0, most=1200.0), "1200 per 60 s, published, not met yet"),
        (Limit(1.0, 0.05, seen=1, last_seen=999.5), "about 1 per 0.05 s, seen once, last 429 0.5 s ago"),
        (Limit(10.0, 1.0, scope=LimitScope.READS), "about 10 per 1 s, reads only, not met yet"),
        (Limit(10.0, 1.0, scope=LimitScope.OTHERS), "about 10 per 1 s, all but reads, not met yet"),
        (
            Limit(100.0, 3600.0, seen=2, last_seen=-9000.0),
            "about 100 per 60 min, seen 2 times, last 429 3 h ago",
        ),
    ],
)
def test_a_limit_in_words(limit: Limit, words: str) -> None:
    assert in_words(limit, 1000.0) == words


def test_a_recent_fall_is_shown_as_foreign_use() -> None:
    limit = Limit(20.0, 1.0, seen=1, last_seen=900.0, fell_at=900.0)
    assert limit_status(limit, 0.5, 1000.0).is_foreign_use
    assert not limit_status(limit, 0.5, 1600.0).is_foreign_use


def test_nothing_is_spent_unless_it_is_said() -> None:
    assert PacerStatus(0.0, {}, (), None).spent_s == 0
