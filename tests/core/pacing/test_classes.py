"""When reads and the rest are taken to be counted apart, and when not."""

from collections.abc import Sequence

import pytest

from sealgate.core.pacing.classes import read_apart, read_together
from sealgate.core.pacing.envelope import Envelope
from sealgate.core.pacing.episode import Episode
from sealgate.core.pacing.sent_log import LimitScope, SentLog

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
        (MIXED, 0.0, {LimitScope.READS: 10.0, LimitScope.OTHERS: 10.0}),
        (READS, 0.0, {LimitScope.READS: 10.0}),  # the others were never refused
        (MIXED[:2], 0.0, {}),  # too few
        (MIXED, 0.15, {}),  # too few where their ends are not known
        ((*MIXED, (2, 10), (10, 9)), 0.15, {}),
        ((*MIXED, (2, 10), (10, 9), (7, 10)), 0.15, {LimitScope.READS: 10.0, LimitScope.OTHERS: 10.0}),
        (((10, 3), (4, 10), (8, 4)), 0.0, {}),  # reads fit no count of reads either
        (((4, 1), (1, 4), (4, 2)), 0.0, {}),  # so little that anything fits
        (((10, 3), (2, 4), (10, 1)), 0.0, {}),  # so little of one class
        (((10, 3), (9, 4), (10, 3)), 0.0, {}),  # 13 together explain it
    ],
)
def test_apart_is_what_no_common_count_explains(
    rounds: Sequence[tuple[int, int]], blur_s: float, expected: dict[LimitScope, float]
) -> None:
    found = read_apart(*story(rounds, blur_s), 0.005)
    assert {scope: reading.n for scope, reading in found.items()} == expected


def test_all_ends_have_to_be_known_or_there_are_too_few() -> None:
    episodes, log = story(MIXED, 0.15)
    sharp, _ = story(MIXED)
    assert read_apart([sharp[0], *episodes[1:]], log, 0.005) == {}


@pytest.mark.parametrize(
    ("rounds", "windows"),
    [
        pytest.param(MIXED, {}, id="once, which proves nothing"),
        pytest.param((*MIXED, (2, 10)), {LimitScope.READS: 1.0, LimitScope.OTHERS: 5.0}, id="twice"),
    ],
)
def test_others_that_are_refused_for_another_window(
    rounds: Sequence[tuple[int, int]], windows: dict[LimitScope, float]
) -> None:
    episodes, log = story(rounds)
    for at, one in enumerate(episodes):
        if not one.is_read:
            episodes[at] = Episode(one.began, one.earliest + 4, one.latest + 4, resumed=one.resumed + 4)
    found = read_apart(episodes, log, 0.005)
    assert {scope: reading.window for scope, reading in found.items()} == windows


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param(0, {}, id="sixteen go between two refusals, always"),
        pytest.param(4, {LimitScope.READS: 5.0}, id="once there are more"),
    ],
)
def test_what_a_bucket_explains_is_not_split(more: int, expected: dict[LimitScope, float]) -> None:
    """Five reads go in the fifth of a second before each refusal, and others before and beside them."""
    sends, episodes = [], []
    for end, late, extra in ((1.0, 0, 0), (1.8, 2, more), (2.6, 4, 0)):
        early = 11 - late + extra
        sends += [(end - 0.75 + 0.5 * index / early, False) for index in range(early)]
        sends += [(end - 0.19 + 0.03 * index, True) for index in range(5)]
        sends += [(end - 0.18 + 0.03 * index, False) for index in range(late)]
        episodes.append(Episode(end - 0.02, end, end, is_read=True, resumed=end + 0.01))
    log = SentLog(3600.0)
    for at, is_read in sorted(sends):
        log.add(at, 1.0, is_read=is_read)
    found = read_apart(episodes, log, 0.005)
    assert {scope: reading.n for scope, reading in found.items()} == expected


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


def test_the_latest_eight_episodes_are_looked_at() -> None:
    envelope = Envelope()
    for second in range(1, 10):
        envelope._end(Episode(second, second + 0.5, second + 0.5), second + 0.6)
    assert [one.began for one in envelope._recent] == [2, 3, 4, 5, 6, 7, 8, 9]
