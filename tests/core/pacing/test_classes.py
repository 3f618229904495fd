"""When reads and the rest are taken to be counted apart, and when not."""

from collections.abc import Sequence

import pytest

from sealgate.core.pacing.classes import read_apart, read_together
from sealgate.core.pacing.episode import Episode
from sealgate.core.pacing.sent_log import Scope, SentLog

READS = (10, 3), (10, 6), (10, 1)  # reads and others sent before the refusal of a read
MIXED = (10, 3), (4, 10), (10, 6)


def story(
    rounds: Sequence[tuple[int, int]], blur_s: float = 0.0, window: float = 1.0
) -> tuple[list[Episode], SentLog]:
    """Return a flood per round, of so many reads and others, whose fuller class was refused."""
    log, episodes = SentLog(3600.0), []
    for number, (reads, others) in enumerate(rounds):
        start = 10.0 * number
        for index in range(max(reads, others)):
            if index < reads:
                log.add(start + 0.25 + index / 500, 1.0, is_read=True)
            if index < others:
                log.add(start + 0.25 + index / 500, 1.0)
        end = start + window
        episodes.append(
            Episode(start + 0.55, end - blur_s, end + blur_s, is_read=reads > others, resumed=end + blur_s)
        )
    return episodes, log


@pytest.mark.parametrize(
    ("rounds", "blur_s", "expected"),
    [
        (MIXED, 0.0, {Scope.READS: 10.0, Scope.OTHERS: 10.0}),
        (READS, 0.0, {Scope.READS: 10.0}),  # the others were never refused
        (MIXED[:2], 0.0, {}),  # too few
        (MIXED, 0.15, {}),  # too few where their ends are not known
        ((*MIXED, (2, 10), (10, 9), (7, 10)), 0.15, {Scope.READS: 10.0, Scope.OTHERS: 10.0}),
        (((10, 3), (4, 10), (8, 4)), 0.0, {}),  # reads fit no count of reads either
        (((4, 1), (1, 4), (4, 2)), 0.0, {}),  # so little that anything fits
        (((10, 3), (9, 4), (10, 3)), 0.0, {}),  # 13 together explain it
    ],
)
def test_apart_is_what_no_common_count_explains(
    rounds: Sequence[tuple[int, int]], blur_s: float, expected: dict[Scope, float]
) -> None:
    found = read_apart(*story(rounds, blur_s), 0.005)
    assert {scope: reading.n for scope, reading in found.items()} == expected


def test_a_single_refusal_of_another_window_proves_nothing() -> None:
    episodes, log = story(MIXED)
    one = episodes[1]
    episodes[1] = Episode(one.began, one.earliest + 4, one.latest + 4, resumed=one.resumed + 4)
    assert read_apart(episodes, log, 0.005) == {}


def test_what_a_bucket_explains_is_not_split() -> None:
    log = SentLog(3600.0)
    for index in range(200):
        log.add(index / 20, 1.0, is_read=index % 3 == 0)
    episodes = [Episode(at, at + 0.01, at + 0.01, is_read=True, resumed=at + 0.05) for at in (2.0, 5.0, 9.0)]
    assert read_apart(episodes, log, 0.005) == {}


@pytest.mark.parametrize(
    ("rounds", "expected"),
    [
        (((4, 9), (10, 3), (2, 11)), 13.0),
        (MIXED, None),  # each class explains its own
        (((4, 9), (10, 3)), None),  # too few
    ],
)
def test_together_is_what_the_classes_do_not_explain(
    rounds: Sequence[tuple[int, int]], expected: float | None
) -> None:
    found = read_together(*story(rounds), 0.005)
    assert (found and found.n) == expected
