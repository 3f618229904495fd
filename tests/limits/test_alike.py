"""Reads that are alike wait in places of their own and go as one."""

from collections import Counter

from rig.pacing import settings_of
from sealgate.limits.claims import Claim, Fate, LimitReply, Rejection
from sealgate.limits.pacer import Pacer
from sealgate.limits.quotas import Quota
from sealgate.venues.routes import Lane

LIMIT = 10.0  # per second


def pacer(n: float = 1.0, window_s: float = 1.0) -> Pacer:
    """Return one whose limit was just used up."""
    paced = Pacer(settings_of(Quota(n, window_s)), lambda: 0.0)
    for number in range(int(n)):
        assert paced.goes_at_once(read(f"before {number}", "earlier", None), 0.0)
    return paced


def read(name: str, bot: str, alike: str | None = "positions", until: float = 100.0) -> Claim:
    return Claim(name, bot, Lane.READ, until, is_read=True, alike=alike)


def why(refused: Rejection | None) -> str:
    return refused.slug if refused else ""


def went(paced: Pacer, now: float) -> tuple[list[str], list[tuple[str, str]]]:
    release = paced.release(now)
    return [one.id for one in release.go], [(one.id, other.id) for one, other in release.shared]


def test_the_first_whose_turn_comes_takes_the_others_along() -> None:
    paced = pacer()
    for claim in (read("1", "a"), read("2", "b"), read("other", "b", "orders"), read("3", "a")):
        assert paced.enter(claim, 0.0) is None
    assert went(paced, 1.5) == (["1"], [("2", "1"), ("3", "1")])
    assert went(paced, 3.0) == (["other"], [])
    assert paced.waiting() == ()


def test_a_bot_that_floods_does_not_hold_up_the_reads_of_others() -> None:
    """The flooding bot's own read is its last; that of the other bot, which is alike, keeps its place."""
    paced = pacer()
    for number in range(20):
        assert paced.enter(read(f"flood {number}", "flooder", f"{number}"), 0.0) is None
    assert paced.enter(read("late", "flooder"), 0.0) is None
    assert paced.enter(read("mine", "other"), 0.0) is None
    first, second = went(paced, 1.5), went(paced, 3.0)
    assert [("late", "mine")] in (first[1], second[1])


def test_one_that_leaves_takes_nothing_from_those_that_are_alike() -> None:
    paced = pacer()
    first, second = read("1", "a"), read("2", "b")
    for claim in (first, second):
        assert paced.enter(claim, 0.0) is None
    paced.leave(first)
    assert went(paced, 1.5) == (["2"], [])


def test_a_deadline_that_one_ahead_will_keep_is_not_refused() -> None:
    paced = pacer()
    assert paced.enter(read("1", "a"), 0.0) is None
    for number in range(10):
        assert paced.enter(read(f"flood {number}", "b", f"{number}"), 0.0) is None
    assert paced.enter(read("alike", "b", until=3.0), 0.0) is None
    assert why(paced.enter(read("another", "b", "another", until=3.0), 0.0)) == "deadline_exceeded"


def test_one_that_is_alike_and_passes_other_pools_since_a_reload_is_waited_for_there() -> None:
    paced = pacer()
    for name in ("first", "second"):
        claim = read(name, "a")
        claim.pools = ("pair", "all")
        assert paced.enter(claim, 0.0) is None
        assert went(paced, 0.0) == ([], [])
    assert paced.enter(read("mine", "b"), 0.0) is None
    assert went(paced, 1.5) == (["first"], [("second", "first"), ("mine", "first")])


def test_a_deadline_is_refused_where_the_one_ahead_that_would_have_kept_it_left() -> None:
    paced = pacer()
    first = read("1", "a")
    assert paced.enter(first, 0.0) is None
    for number in range(10):
        assert paced.enter(read(f"flood {number}", "b", f"{number}"), 0.0) is None
    assert paced.enter(read("2", "b"), 0.0) is None
    paced.leave(first)
    assert why(paced.enter(read("3", "b", until=3.0), 0.0)) == "deadline_exceeded"


def test_one_ahead_whose_own_time_will_end_before_its_turn_keeps_no_deadline() -> None:
    paced = pacer()
    assert paced.enter(read("1", "a", until=2.0), 0.0) is None
    for number in range(3):
        cancel = Claim(f"cancel {number}", "a", Lane.CANCEL, 100.0)
        assert paced.enter(cancel, 0.0) is None
    for number in range(10):
        assert paced.enter(read(f"flood {number}", "b", f"{number}"), 0.0) is None
    assert why(paced.enter(read("2", "b", until=8.0), 0.0)) == "deadline_exceeded"


def test_those_that_go_as_one_count_as_one_for_whoever_comes_after_them() -> None:
    paced = pacer()
    for number in range(10):
        assert paced.enter(read(f"{number}", "a"), 0.0) is None
    assert paced.enter(read("next", "a", "orders", until=5.0), 0.0) is None


def test_at_three_times_the_limit_pollers_are_served_three_times_what_is_sent_for_them() -> None:
    """Two bots poll the same three reads, and two trade."""
    paced = pacer(LIMIT)
    sent, served, refused = Counter[str](), Counter[str](), Counter[str]()
    steps = 60 * 100
    for step in range(steps):
        now = step / 100
        comes = [f"{bot} {kind}" for kind in ("polls", "trades") for bot in "ab" if step * 15 % 200 < 15]
        for who in comes:
            is_read = who.endswith("polls")
            alike = f"target {step // 13 % 3}" if is_read else None
            lane = Lane.READ if is_read else Lane.ORDER
            claim = Claim(f"{who} {step}", who, lane, now + 30.0, is_read=is_read, alike=alike)
            if paced.goes_at_once(claim, now):
                paced.answered(claim, now, LimitReply(Fate.ACCEPTED))
                sent[lane] += 1
                served[lane] += 1
            elif paced.enter(claim, now) is not None:
                refused[lane] += 1
        release = paced.release(now)
        for claim in release.go:
            paced.answered(claim, now, LimitReply(Fate.ACCEPTED))
            sent[claim.lane] += 1
            served[claim.lane] += 1
        served[Lane.READ] += len(release.shared)
    asked = served[Lane.READ] + refused[Lane.READ] + len(paced.waiting())
    assert served[Lane.READ] >= 3 * sent[Lane.READ] > 0, (sent, served, refused, asked)
    assert not refused[Lane.READ]
    assert sent.total() >= 0.97 * LIMIT * 60


def test_reads_that_go_as_one_and_come_again_at_once_do_not_use_up_the_limit_in_a_burst() -> None:
    """Each time one goes, nobody waits for the length of a trip; the next ones still keep the pace."""
    paced = pacer(20.0)
    names = [f"{number}" for number in range(8)]
    for name in names:
        assert paced.enter(read(name, "flooder"), 0.0) is None
    now = 1.0
    for turn in range(10):
        again_at = paced.release(now).look_again_at
        now = now if again_at is None else again_at
        release = paced.release(now)
        assert len(release.go) == 1
        assert len(release.shared) == 7
        paced.answered(release.go[0], now + 0.005, LimitReply(Fate.ACCEPTED))
        for name in names:
            again = read(f"{name} {turn}", "flooder")
            assert not paced.goes_at_once(again, now + 0.006)
            assert paced.enter(again, now + 0.006) is None
            assert not paced.release(now + 0.006).go
    assert now > 1.4
    cancel = Claim("cancel", "other", Lane.CANCEL, 100.0)
    assert not paced.goes_at_once(cancel, now + 0.01)
    assert paced.enter(cancel, now + 0.01) is None
    assert not paced.release(now + 0.01).go
    assert [one.id for one in paced.release(now + 0.051).go] == ["cancel"]


def test_whoever_comes_when_a_turn_is_free_ends_the_pace_and_a_burst_goes_at_once() -> None:
    paced = pacer(20.0)
    assert paced.enter(read("1", "a"), 0.0) is None
    assert went(paced, 0.0) == ([], [])
    assert went(paced, 1.1) == (["1"], [])
    assert not paced.goes_at_once(read("2", "a"), 1.11)
    assert all(paced.goes_at_once(read(f"burst {number}", "a", None), 1.2) for number in range(10))
