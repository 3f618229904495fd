"""The pacer as the shell sees it: transcripts of enter, release and answered, in virtual time."""

import json
import math
from dataclasses import replace
from itertools import pairwise

import pytest

from rig.kept_limit import kept
from rig.limits_world import Chance
from rig.pacing import settings_of
from sealgate.limits import OTHERS, READS, Limit
from sealgate.limits import snapshots as memory
from sealgate.limits.claims import Claim, Fate, LimitReply, Rejection
from sealgate.limits.pacer import Pacer
from sealgate.limits.pool import Pool
from sealgate.limits.pools import PacerSettings
from sealgate.limits.quotas import Quota
from sealgate.venues.routes import Lane

ALL = "all"
ACCEPTED = LimitReply(Fate.ACCEPTED)
LOST = LimitReply(Fate.LOST)


def limited(retry_after_s: float | None = None, resolution_s: float = 0.0) -> LimitReply:
    return LimitReply(Fate.LIMITED, retry_after_s, resolution_s)


class Desk:
    """A pacer and the claims made at it."""

    def __init__(self, *known: Quota, queue: int = 1000) -> None:
        settings = settings_of(*known, queue=queue)
        self.pacer = Pacer(settings, lambda: 0.5)
        self.count = 0

    @property
    def pool(self) -> Pool:
        return self.pacer.pools.at(ALL)

    def claim(self, lane: Lane = Lane.ORDER, *, give_up_at: float = 1e12, bot: str = "a") -> Claim:
        self.count += 1
        return Claim(f"{lane}{self.count}", bot, lane, give_up_at, is_read=lane is Lane.READ)

    def enter(
        self, now: float, count: int = 1, lane: Lane = Lane.ORDER, *, give_up_at: float = 1e12
    ) -> list[Claim]:
        claims = [self.claim(lane, give_up_at=give_up_at) for _ in range(count)]
        assert [self.pacer.enter(claim, now) for claim in claims] == [None] * count
        return claims

    def rejection(self, now: float, give_up_at: float = 1e12) -> Rejection:
        """Return why the next one is not taken."""
        rejection = self.pacer.enter(self.claim(give_up_at=give_up_at), now)
        assert rejection is not None
        return rejection

    def go(self, now: float) -> list[Claim]:
        return list(self.pacer.release(now).go)

    def send(self, now: float, count: int = 1, lane: Lane = Lane.ORDER) -> list[Claim]:
        self.enter(now, count, lane)
        return self.go(now)

    def answer(self, now: float, claims: list[Claim], reply: LimitReply = ACCEPTED) -> None:
        for claim in claims:
            self.pacer.answered(claim, now, reply)

    def paused(self, stated_s: float | None, now: float = 0.0) -> "Desk":
        self.answer(now, self.send(now), limited(stated_s))
        return self


def test_without_a_known_limit_all_go_at_once() -> None:
    desk = Desk()
    assert len(desk.send(0.0, 500)) == 500
    assert desk.pacer.release(0.0).look_again_at is None


def test_a_burst_inside_a_published_limit_goes_at_once_and_the_rest_is_spaced() -> None:
    desk = Desk(Quota(20, 1))
    assert len(desk.send(0.0, 25)) == 20
    first = desk.pacer.release(0.0).look_again_at
    assert first == pytest.approx(1.005, abs=1e-6)
    assert len(desk.go(1.0051)) == 1
    assert desk.pacer.release(1.0051).look_again_at == pytest.approx(1.0301, abs=1e-3)  # half a place later
    assert len(desk.go(1.0302)) == 1
    assert desk.pacer.release(1.0302).look_again_at == pytest.approx(1.0552, abs=1e-3)


def test_timers_that_are_late_by_less_than_a_place_cost_no_place() -> None:
    desk = Desk(Quota(20, 1))
    desk.send(0.0, 300)
    now, times = 0.0, list[float]()
    while now < 6.0:
        again_at = desk.pacer.release(now).look_again_at
        assert again_at is not None
        now = again_at + 0.01
        times += [now] * len(desk.go(now))
    went = [at for at in times if 1.5 <= at < 5.5]
    assert len(went) >= 78  # of 80
    assert min(after - before for before, after in pairwise(went)) >= 0.024  # and no two at once


def test_one_lone_refusal_after_rare_orders_holds_nobody_for_long() -> None:
    desk = Desk()
    for number in range(20):
        desk.answer(30.0 * number + 0.02, desk.send(30.0 * number))
    [order] = desk.send(600.0)
    desk.answer(600.02, [order], limited(1.0))
    desk.answer(601.1, desk.send(601.05))
    for second in range(602, 700, 7):
        desk.enter(float(second), 1, Lane.CANCEL, give_up_at=second + 30.0)
        again_at = desk.pacer.release(float(second)).look_again_at
        went = desk.go(again_at) if again_at is not None else []
        assert again_at is None or (again_at <= second + 2.0 and went)
        desk.answer(second + 2.0, went)


class Line(Desk):
    """All that waits from `now` on, beside a limiter that accepts everything; a round trip takes 40 ms."""

    def drained(self, now: float, until: float) -> list[list[float]]:
        """Return when requests were sent, those of one moment together."""
        sent, answers = list[list[float]](), list[tuple[float, list[Claim]]]()
        while now < until:
            if go := self.go(now):
                sent.append([now] * len(go))
                answers.append((now + 0.04, go))
            again_at = self.pacer.release(now).look_again_at
            now = min(again_at or until, *(at for at, _ in answers), until)
            for one in [one for one in answers if one[0] <= now]:
                answers.remove(one)
                self.answer(now, one[1])
        return sent


@pytest.mark.parametrize("before", [0, 1, 3, 9])
@pytest.mark.parametrize("stated_s", [5.0, 30.0])
def test_after_a_lone_refusal_of_few_requests_those_who_wait_go_by_doubling(
    before: int, stated_s: float
) -> None:
    desk = Line()
    for number in range(before):
        desk.answer(number + 0.04, desk.send(float(number)))
    desk.paused(stated_s, 20.0)
    desk.enter(20.1, 6)
    sent = desk.drained(20.1, 100.0)
    assert [len(together) for together in sent] == [1, 2, 3]
    assert 20.0 + stated_s <= sent[0][0]
    assert sent[-1][0] + 0.04 < 20.0 + stated_s + 0.5
    assert len(desk.send(100.0, 30)) == 30  # nobody waits any more


def test_who_waits_behind_slow_replies_after_a_lone_refusal_does_not_wait_for_them() -> None:
    desk = Desk().paused(5.0)
    desk.enter(0.1, 9)
    [scout] = desk.go(5.1)
    desk.answer(5.2, [scout])
    assert len(desk.go(5.2)) == 2
    assert desk.go(7.1) == []
    assert len(desk.go(7.3)) == 1


def test_a_second_refusal_ends_the_doubling() -> None:
    desk = Line()
    desk.answer(0.04, desk.send(0.0, 3))
    desk.paused(5.0, 1.0)
    desk.enter(1.1, 12)
    [scout] = desk.go(6.01)
    desk.answer(6.05, [scout])
    two = desk.go(6.05)
    desk.answer(6.09, two[:1], limited(5.0))
    desk.answer(6.09, two[1:])
    sent = desk.drained(6.09, 100.0)
    assert [len(together) for together in sent] == [1] * 9
    assert min(after[0] - before[0] for before, after in pairwise(sent)) > 0.5


def test_a_slow_limit_of_long_ago_holds_one_burst_for_a_round_trip_and_none_after_it() -> None:
    desk = Line()
    desk.pool.estimator.believe([Limit(3, 30, 0.1, 0.1, seen=3, last_seen=0.0)])
    desk.enter(1000.0, 10)
    assert [len(together) for together in desk.drained(1000.0, 1001.0)] == [4, 6]
    assert len(desk.send(1001.0, 10)) == 10
    assert desk.pool.status(1001.0).limits == ()


@pytest.mark.parametrize("gap_s", [3.0, 10.0])
@pytest.mark.parametrize("stated_s", [None, 5.0, 30.0])
def test_lone_refusals_of_rare_orders_hold_none_of_them_for_hours(
    stated_s: float | None, gap_s: float
) -> None:
    """Three chance refusals look like a limit as slow as the orders; what they cost must end soon."""
    desk, now, late = Desk(), 0.0, list[float]()
    for number in range(1000):
        now += gap_s * (number * 7919 % 41) ** 2 / 550  # up to three times the gap
        asked_at = now
        [claim] = desk.enter(now)
        while not desk.go(now):
            again_at = desk.pacer.release(now).look_again_at
            assert again_at is not None
            now = again_at
        if now > asked_at:
            late.append(asked_at)
        if number in {5, 25, 45}:
            refused_at = now
            desk.answer(now + 0.05, [claim], limited(stated_s, 1.0))
        else:
            desk.answer(now + 0.05, [claim])
        now += 0.05
    assert now - refused_at > 800 * gap_s
    assert all(at < refused_at + 700 for at in late)


def test_a_wait_beyond_any_deadline_names_none() -> None:
    desk = Desk(Quota(1, 86_400))
    desk.answer(0.1, desk.send(0.0))
    assert (
        desk.rejection(1.0, 31.0).detail
        == "The rate limit of this key leaves no room for this request before its deadline."
    )
    desk = Desk(Quota(1, 60))
    desk.answer(0.1, desk.send(0.0))
    assert "X-Gateway-Deadline-Ms: 1" in desk.rejection(1.0, 31.0).detail


def test_a_burst_may_take_a_long_window_whole() -> None:
    desk = Desk(Quota(1200, 60), queue=2000)
    assert len(desk.send(0.0, 1500)) == 1200


@pytest.mark.parametrize("quota", [Quota(1200, 60), Quota(300, 60), Quota(100, 10), Quota(40, 3)])
@pytest.mark.parametrize("seed", range(3))
def test_bursts_of_four_bots_that_meet_in_a_second_are_no_flood(quota: Quota, seed: int) -> None:
    chance, desk = Chance(seed), Desk(quota)
    begins = [chance.random() for _ in range(4)]
    sends = sorted(begin + chance.random() / 2 for begin in begins for _ in range(int(0.225 * quota.n)))
    for at in sends:
        desk.answer(at, desk.send(at))
    assert not desk.pacer.waiting()


def test_a_flood_is_spread_before_a_long_window_is_full() -> None:
    desk, went, tenth = Desk(Quota(1200, 60)), 0, 0
    while len(desk.send(tenth / 10, 6)) == 6:
        tenth += 1
        went += 6
    assert went == 960
    again_at = desk.pacer.release(tenth / 10).look_again_at
    assert again_at is not None
    assert again_at - tenth / 10 < 0.5


def test_no_cancel_waits_until_a_flooded_window_is_over() -> None:
    desk, entered, waits = Desk(Quota(1200, 60), queue=10_000), dict[str, float](), list[float]()
    for tenth in range(600):
        now = tenth / 10
        desk.enter(now, 6, Lane.READ)
        if tenth % 10 == 0:
            entered[desk.enter(now, 1, Lane.CANCEL)[0].id] = now
        waits += [now - entered[claim.id] for claim in desk.go(now) if claim.id in entered]
    assert len(waits) == 60
    assert max(waits) < 0.5


def test_all_bots_wait_while_the_key_is_paused_and_a_scout_goes_first() -> None:
    desk = Desk().paused(2.0)
    desk.enter(0.5, 3)
    assert desk.pacer.release(0.5).look_again_at == pytest.approx(2.0025)
    scout = desk.go(2.01)
    assert len(scout) == 1
    assert desk.pacer.release(2.02).go == ()
    desk.answer(2.05, scout)
    assert len(desk.go(2.2)) == 2


def test_a_scout_that_does_not_come_back_is_followed_by_another() -> None:
    desk = Desk().paused(1.0)
    desk.enter(0.5, 3)
    assert len(desk.go(1.1)) == 1
    assert desk.pacer.release(1.2).look_again_at == pytest.approx(3.1)
    assert len(desk.go(3.1)) == 1


def test_a_lost_scout_is_followed_when_it_would_have_been_answered() -> None:
    """Its bot may have had no more time: the exchange still has it, and one goes at a time."""
    desk = Desk().paused(1.0)
    desk.enter(0.5, 3)
    desk.answer(1.5, desk.go(1.1), LOST)
    assert desk.go(3.0) == []
    assert len(desk.go(3.2)) == 1


def test_a_refused_scout_lengthens_the_pause() -> None:
    desk = Desk().paused(1.0)
    desk.enter(0.5, 2)
    desk.answer(1.2, desk.go(1.1), limited(0.1))
    assert desk.pool.status(1.2).pause_s == pytest.approx(2.01, abs=0.01)


def test_an_answer_from_before_the_pause_does_not_end_it() -> None:
    desk = Desk()
    early, late = desk.send(0.0, 2)
    desk.answer(0.04, [late], limited(1.0))
    desk.answer(0.05, [early])
    assert desk.pool.status(0.05).pause_s > 0.9


def test_who_cannot_wait_for_the_end_of_the_pause_is_told_at_once() -> None:
    desk = Desk().paused(60.0)
    rejection = desk.rejection(0.0, 30.0)
    assert rejection.slug == "rate_limited"
    assert rejection.retry_after_s == pytest.approx(60.0, abs=0.01)


def test_who_can_wait_just_as_long_is_taken() -> None:
    desk = Desk().paused(60.0)
    assert desk.pacer.enter(desk.claim(give_up_at=desk.pacer.pools.paused_until()), 0.0) is None
    desk = Desk(Quota(10, 10))
    desk.send(0.0, 40)
    rejection = desk.rejection(0.0, 5.0)
    assert rejection.retry_after_s is not None
    assert desk.pacer.enter(desk.claim(give_up_at=rejection.retry_after_s), 0.0) is None


def test_a_pause_that_comes_refuses_those_who_wait_already() -> None:
    desk = Desk(Quota(1, 1))
    under_way = desk.send(0.0, 3)
    waiting = desk.enter(0.0, 1, give_up_at=30.0)
    desk.answer(0.1, under_way, limited(60.0))
    assert [(one.claim, one.slug) for one in desk.pacer.release(0.1).rejected] == [
        (waiting[0], "rate_limited")
    ]


def test_who_cannot_wait_in_line_is_told_at_once() -> None:
    desk = Desk(Quota(10, 10))
    desk.send(0.0, 40)
    assert desk.rejection(0.0, 5.0).slug == "deadline_exceeded"


def test_who_waited_too_long_is_told() -> None:
    desk = Desk(Quota(1, 4))
    desk.send(0.0)
    (late,) = desk.enter(0.0, 1, give_up_at=5.0)
    desk.enter(0.0, 1, Lane.CANCEL)
    assert [claim.lane for claim in desk.go(4.05)] == [Lane.CANCEL]
    assert desk.pacer.release(4.05).look_again_at == 5.0
    assert [(one.claim, one.slug) for one in desk.pacer.release(5.0).rejected] == [
        (late, "deadline_exceeded")
    ]


def test_the_line_is_bounded() -> None:
    desk = Desk(Quota(1, 1), queue=3)
    desk.send(0.0, 1)
    desk.enter(0.0, 3)
    assert desk.rejection(0.0).slug == "queue_full"


def test_a_bot_that_leaves_leaves_no_trace() -> None:
    desk = Desk(Quota(1, 1))
    gone, staying = desk.enter(0.0, 2)
    desk.pacer.leave(gone)
    assert desk.go(0.0) == [staying]
    desk.pacer.leave(staying)
    desk.pacer.leave(staying)
    assert len(desk.send(0.0)) == 1


def test_a_pause_that_the_exchange_stated_is_called_its_own() -> None:
    desk = Desk().paused(5.0)
    assert (
        desk.rejection(1.0, 2.0).detail == "The exchange paused this key until after this request's deadline."
    )
    desk.pacer.hold(ALL, 4.0, 0.0)  # another gateway was told so, too
    assert "The exchange paused" in desk.rejection(1.0, 2.0).detail


def test_a_pause_that_the_gateway_chose_is_not_laid_at_the_door_of_the_exchange() -> None:
    desk = Desk().paused(None)
    once = desk.rejection(0.1, 0.2)
    assert (
        once.detail
        == "The exchange refused this key; the gateway pauses it until after this request's deadline."
    )
    for now in (1.0, 3.0, 7.0):  # it states a second each time, and refuses whoever comes then
        desk.paused(1.0, now)
    again = desk.rejection(7.0, 9.0)
    assert "4 times in a row; the gateway pauses" in again.detail
    assert again.retry_after_s == pytest.approx(4.0, abs=0.01)
    desk.answer(12.0, desk.send(12.0))
    desk.paused(None, 12.5)
    assert desk.rejection(12.6, 12.7).detail == once.detail


def test_a_refusal_in_a_pause_that_ends_sooner_does_not_change_who_chose_its_end() -> None:
    desk = Desk()
    first, second = desk.send(0.0, 2)
    desk.answer(0.1, [first], limited(5.0))
    desk.answer(0.2, [second], limited(1.0))
    assert "The exchange paused" in desk.rejection(1.0, 2.0).detail
    desk.pacer.hold(ALL, 9.0, 0.0)
    assert desk.rejection(1.0, 2.0).detail == "This key is paused until after this request's deadline."


def test_a_ban_is_quoted_to_whoever_cannot_wait_for_its_end() -> None:
    desk = Desk()
    ban = LimitReply(Fate.LIMITED, 60.0, 0.0, words="IP banned")
    desk.answer(0.0, desk.send(0.0), ban)
    assert desk.rejection(1.0, give_up_at=5.0).detail.endswith('The exchange says: "IP banned".')
    desk.answer(100.0, desk.send(100.0), limited(60.0))
    assert "IP banned" not in desk.rejection(101.0, give_up_at=105.0).detail


def test_after_a_pause_that_was_met_elsewhere_one_goes_alone_too() -> None:
    desk = Desk()
    [early] = desk.send(0.0)
    desk.pacer.hold(ALL, 10.0, 0.0)
    desk.answer(0.1, [early])  # it says nothing of what happens after the pause
    desk.enter(1.0, 3)
    assert desk.go(9.9) == []
    [scout] = desk.go(10.0)
    assert desk.go(11.0) == []
    desk.answer(11.5, [scout])
    assert len(desk.go(11.5)) == 2
    desk.pacer.hold(ALL, 9.0, 0.0)  # that is over
    assert len(desk.send(12.0, 2)) == 2


def test_a_documented_wait_is_kept_whole_and_is_named_as_one() -> None:
    desk = Desk()
    ban = LimitReply(Fate.BANNED, 900.0, words="Temporary lockout", is_documented=True)
    desk.answer(0.0, desk.send(0.0), ban)
    assert desk.rejection(1.0, give_up_at=5.0).detail == (
        "This key is paused, as the exchange documents it, until after this request's deadline. "
        'The exchange says: "Temporary lockout".'
    )
    assert desk.pacer.pools.paused_until() > 899.9
    scout = desk.send(901.0)
    desk.answer(901.1, scout, ban)  # the same once more, and not twice as long
    assert desk.pacer.pools.paused_until() == pytest.approx(1801.1, abs=0.01)


def test_what_was_let_go_before_a_pause_can_see_it() -> None:
    desk = Desk()
    early, late = desk.send(0.0, 2)
    assert desk.pacer.pools.paused_until() <= 0.1
    desk.answer(0.1, [early], limited(1.0))
    assert desk.pacer.pools.paused_until() > 0.1
    desk.pacer.leave(late)
    assert desk.pacer.pools.paused_until() <= 1.2


def test_a_scout_that_leaves_unsent_is_followed_at_once() -> None:
    desk = Desk().paused(1.0)
    desk.enter(0.5, 2)
    desk.pacer.leave(desk.go(1.1)[0])
    assert len(desk.go(1.1)) == 1


@pytest.mark.parametrize("hostile", [-1.0, math.nan, math.inf, -math.inf, None])
def test_a_wait_that_means_nothing_neither_hangs_nor_unpauses(hostile: float | None) -> None:
    desk = Desk().paused(hostile)
    assert desk.send(0.0) == []
    assert 0.2 < desk.pool.status(0.0).pause_s <= 0.5
    assert len(desk.go(1.0)) == 1


def test_a_limit_learned_shows_in_words_and_survives_a_restart() -> None:
    desk = Desk()
    for index in range(20):
        desk.answer(0.03 * index + 0.02, desk.send(0.03 * index))
    desk.answer(0.62, desk.send(0.6), limited(0.4))
    desk.enter(0.7)
    desk.answer(1.1, desk.go(1.03))
    (limit,) = desk.pool.status(2.1).limits
    assert limit.words == "20 per 1 s, from 1 refusal; last 1 s ago"
    assert limit.used_ratio < 0.06
    kept = json.loads(json.dumps(memory.snapshot(desk.pool.estimator.limits, 2.0)))
    other = Desk()
    other.pacer.pools.restore({ALL: kept}, 0.0)
    assert len(other.send(0.0, 30)) == 16


def test_published_limits_are_not_overwritten_by_memory() -> None:
    desk = Desk(Quota(5, 1))
    desk.pacer.pools.restore({ALL: kept(100.0, 1.0)}, 0.0)
    assert len(desk.send(0.0, 9)) == 5


def test_the_fields_of_a_reply_beat_what_was_learned() -> None:
    desk = Desk()
    desk.pacer.pools.restore({ALL: kept(100.0, 1.0)}, 0.0)
    said = LimitReply(Fate.ACCEPTED, quotas=(Quota(5, 1.0),))
    desk.answer(0.1, desk.send(0.0, 2), said)
    assert [limit.words for limit in desk.pool.status(0.1).limits] == [
        "5 per 1 s, published, never refused yet"
    ]
    assert len(desk.send(0.2, 9)) == 3


def test_nothing_left_is_waited_for() -> None:
    desk = Desk()
    said = LimitReply(Fate.ACCEPTED, quotas=(Quota(math.inf, left=1.0, reset_s=10.0), Quota(math.inf)))
    desk.answer(0.1, desk.send(0.0), said)
    assert len(desk.send(0.2, 3)) == 1
    assert desk.pacer.release(0.2).look_again_at == pytest.approx(10.1)
    assert len(desk.go(10.1)) == 2


def test_what_the_exchange_says_is_used_up_is_shown_and_told() -> None:
    """As a pause is; while something is under way, its reply may say otherwise."""
    desk = Desk()
    said = LimitReply(Fate.ACCEPTED, quotas=(Quota(math.inf, left=1.0, reset_s=10.0),))
    desk.answer(0.1, desk.send(0.0), said)
    last = desk.send(0.2)
    (waiting,) = desk.enter(0.2, give_up_at=9.0)
    assert desk.pool.status(0.2).spent_s == 0
    assert desk.pacer.release(0.2).rejected == ()
    desk.answer(0.3, last)
    assert desk.pool.status(0.3).spent_s == pytest.approx(9.8)
    (rejection,) = desk.pacer.release(0.3).rejected
    assert (rejection.claim, rejection.slug) == (waiting, "rate_limited")
    assert rejection.retry_after_s == pytest.approx(9.8)
    at_once = desk.rejection(0.4, 9.0)
    assert at_once.slug == "rate_limited"
    assert at_once.retry_after_s == pytest.approx(9.7)
    assert desk.pacer.enter(desk.claim(give_up_at=11.0), 0.4) is None
    assert desk.pool.status(10.2).spent_s == 0
    assert len(desk.go(10.2)) == 1


def test_who_can_wait_just_until_something_is_left_is_taken() -> None:
    desk = Desk()
    said = LimitReply(Fate.ACCEPTED, quotas=(Quota(math.inf, left=0.0, reset_s=10.0),))
    desk.answer(1.0, desk.send(0.0), said)
    desk.enter(1.0, give_up_at=11.0)
    assert desk.pacer.enter(desk.claim(give_up_at=10.9), 1.0) is not None


def desk_of_four_at_a_time() -> Desk:
    """Return a desk at 3.1 that has learned, of five at once, that the fifth is too many."""
    desk = Desk()
    flood = desk.send(0.0, 5)
    desk.answer(0.1, flood[4:], limited(1.0, 1.0))
    desk.answer(0.1, flood[:4])
    desk.enter(0.2)
    desk.answer(3.1, desk.go(3.0))
    return desk


def test_a_limit_on_requests_at_a_time_is_learned_and_kept() -> None:
    desk = desk_of_four_at_a_time()
    status = desk.pool.status(3.1)
    assert status.at_a_time == 4
    assert status.limits == ()
    running = desk.send(10.0, 9)
    assert len(running) == 4
    assert desk.pacer.release(10.0).look_again_at == 1e12
    desk.answer(10.1, running[:1])
    assert len(desk.go(10.1)) == 1
    desk.answer(10.2, running[1:2], LOST)
    assert len(desk.go(10.2)) == 1


def test_who_waits_for_ever_for_a_place_is_not_looked_for() -> None:
    desk = desk_of_four_at_a_time()
    desk.enter(10.0, 9, give_up_at=math.inf)
    assert len(desk.go(10.0)) == 4
    assert desk.pacer.release(10.0).look_again_at is None


def test_what_is_written_later_counts_from_then() -> None:
    desk = Desk(Quota(2, 1.0))
    early, late = desk.send(0.0, 2)
    desk.pacer.sent(early, 0.0)
    desk.pacer.sent(late, 0.5)
    assert [len(desk.send(at)) for at in (1.1, 1.2)] == [1, 0]


@pytest.mark.parametrize(
    ("written_at", "room_at"),
    [
        pytest.param(10.0005, 11.005, id="at once: counts from when it was let go"),
        pytest.param(10.0015, 11.0065, id="a little later: counts from then"),
    ],
)
def test_from_when_it_counts(written_at: float, room_at: float) -> None:
    desk = Desk(Quota(1, 1.0))
    (first,) = desk.send(10.0)
    desk.pacer.sent(first, written_at)
    desk.enter(10.1)
    assert desk.pacer.release(10.1).look_again_at == pytest.approx(room_at, abs=1e-6)


def test_what_was_to_be_written_later_and_never_was_leaves_no_trace() -> None:
    desk = Desk(Quota(1, 1.0))
    (first,) = desk.send(0.0)
    desk.pacer.sent(first, 0.5)
    desk.pacer.leave(first)
    assert len(desk.send(0.6)) == 1


def test_what_waits_is_shown_by_lane_and_bot() -> None:
    desk = Desk(Quota(1, 1))
    desk.send(0.0)
    desk.enter(0.0, 2, Lane.READ)
    assert dict(desk.pacer.status(0.0).waiting) == {("", Lane.READ, "a"): 2}


def test_who_finds_nobody_waiting_and_room_goes_at_once() -> None:
    desk = Desk(Quota(2, 1.0))
    first, second, third = (desk.claim() for _ in range(3))
    assert [desk.pacer.goes_at_once(claim, 0.0) for claim in (first, second, third)] == [True, True, False]
    assert desk.pacer.enter(third, 0.0) is None
    assert desk.go(0.0) == []
    assert desk.pacer.goes_at_once(desk.claim(), 0.0) is False, "not past who waits"
    desk.answer(0.1, [first, second])
    assert desk.go(1.5) == [third]


def test_nobody_goes_at_once_inside_a_pause_or_after_its_time() -> None:
    assert not Desk().paused(1.0).pacer.goes_at_once(Desk().claim(), 0.5)
    assert not Desk().pacer.goes_at_once(Desk().claim(give_up_at=1.0), 2.0)


def test_what_went_at_once_can_be_given_back() -> None:
    desk = Desk(Quota(1, 1.0))
    claim = desk.claim()
    assert desk.pacer.goes_at_once(claim, 0.0)
    desk.pacer.leave(claim)
    assert desk.pacer.goes_at_once(desk.claim(), 0.0)


def apart() -> Desk:
    """Return a desk that learned a limit on reads and one on the rest, of ten a second each."""
    desk = Desk()
    desk.pool.estimator.believe(
        [Limit(10.0, 1.0, 10.0, 10.0, weights, seen=3) for weights in (READS, OTHERS)]
    )
    return desk


def test_reads_that_wait_hold_up_no_orders_where_they_count_apart() -> None:
    desk = apart()
    assert len(desk.send(0.0, 15, Lane.READ)) == 10
    assert len(desk.send(0.1, 10)) == 10
    assert dict(desk.pacer.status(0.1).waiting) == {("", Lane.READ, "a"): 5}
    desk.enter(0.1, 3)
    assert desk.pacer.release(0.1).look_again_at == pytest.approx(1.0)  # the reads' room
    assert {claim.lane for claim in desk.go(1.3)} == {Lane.READ, Lane.ORDER}


def test_who_waits_no_longer_is_not_paced_where_classes_count_apart() -> None:
    desk = apart()
    desk.send(0.0, 12, Lane.READ)
    desk.send(0.0, 11)
    assert len(desk.go(1.006)) == 2  # one of each, at the even pace
    assert dict(desk.pacer.status(1.006).waiting) == {("", Lane.READ, "a"): 1}
    assert len(desk.send(2.5, 5)) == 6  # five at once, and the read that waited


def test_a_read_waits_for_all_where_they_count_together() -> None:
    desk = Desk(Quota(10, 10))
    desk.send(0.0, 40, Lane.READ)
    assert desk.pacer.enter(desk.claim(Lane.READ, give_up_at=5.0), 0.0) is not None
    desk = Desk(Quota(10, 10))
    desk.send(0.0, 40)
    assert desk.pacer.enter(desk.claim(Lane.READ, give_up_at=5.0), 0.0) is not None


def test_reads_are_looked_at_behind_two_lanes_that_wait() -> None:
    desk = apart()
    desk.send(0.0, 12)
    desk.enter(0.1, 1, Lane.CANCEL)
    desk.enter(0.1, 1, Lane.READ)
    assert [claim.lane for claim in desk.go(0.1)] == [Lane.READ]


def test_a_cheap_one_does_not_pass_a_dear_one_that_waits() -> None:
    desk = Desk(Quota(10, 10))
    desk.send(0.0, 6)
    dear = replace(desk.claim(Lane.CANCEL), cost=5.0)
    assert [desk.pacer.enter(claim, 0.1) for claim in (dear, desk.claim())] == [None, None]
    assert desk.go(0.1) == []
    assert desk.go(2.0) == []  # when the cheap one alone could go


def test_the_end_of_a_pause_and_of_a_scout_leave_the_limit_in_force() -> None:
    desk = Desk(Quota(1, 10)).paused(1.0)
    desk.enter(0.5, 2)
    assert desk.go(desk.pacer.pools.paused_until()) == []
    assert len(desk.go(10.1)) == 1
    assert desk.go(12.1) == []


def test_a_read_waits_for_reads_only_where_they_count_apart() -> None:
    desk = apart()
    desk.enter(0.0, 300)
    desk.go(0.0)
    assert desk.pacer.enter(desk.claim(Lane.READ, give_up_at=2.0), 0.0) is None
    assert desk.rejection(0.0, 2.0).slug == "deadline_exceeded"


def test_who_comes_when_those_who_waited_have_left_is_not_paced() -> None:
    desk = Desk(Quota(10, 1.0))
    desk.send(0.0, 10)
    (waits,) = desk.enter(0.0)
    assert desk.go(0.0) == []
    desk.pacer.leave(waits)
    assert [desk.pacer.goes_at_once(desk.claim(), 1.2) for _ in range(3)] == [True, True, True]


def test_other_settings_leave_a_pause_and_the_line_as_they_are() -> None:
    desk = Desk().paused(2.0)
    desk.enter(0.5, 2)
    desk.pacer.pools.adopt(settings_of(Quota(1, 1), queue=2))
    assert desk.pacer.pools.paused_until() > 0.6
    assert desk.rejection(0.6).slug == "queue_full"
    assert len(desk.go(2.01)) == 1
    assert [(limit.n, limit.window) for limit in desk.pool.estimator.limits] == [(1, 1)]


def test_what_was_sent_counts_under_other_published_limits() -> None:
    desk = Desk(Quota(20, 1))
    assert len(desk.send(0.0, 15)) == 15
    desk.pacer.pools.adopt(settings_of(Quota(18, 1)))
    assert len(desk.send(0.1, 15)) == 3


def test_another_queue_leaves_what_was_learned() -> None:
    desk = Desk()
    desk.pool.estimator.believe([Limit(7.0, 1.0, 7.0)])
    desk.pacer.pools.adopt(PacerSettings(5))
    assert [limit.n for limit in desk.pool.estimator.limits] == [7.0]


def test_where_no_limit_is_published_any_more_what_was_learned_holds() -> None:
    desk = Desk(Quota(20, 1))
    desk.pool.estimator.believe([*desk.pool.estimator.limits, Limit(7.0, 60.0, 0.116667)])
    desk.pacer.pools.adopt(PacerSettings())
    assert [(limit.n, limit.window) for limit in desk.pool.estimator.limits] == [(7.0, 60.0)]


STATED = LimitReply(
    Fate.ACCEPTED, quotas=(Quota(3, 60.0, name="a"), Quota(math.inf, left=0.0, reset_s=50.0, name="a"))
)


def test_limits_that_header_fields_state_are_ignored_where_the_configuration_says_so() -> None:
    desk = Desk(Quota(20, 1))
    desk.pacer.pools.adopt(settings_of(Quota(20, 1), headers=False))
    desk.answer(0.0, desk.send(0.0), STATED)
    assert len(desk.send(1.0, 15)) == 15


def test_retry_after_counts_whether_or_not_header_fields_are_ignored() -> None:
    desk = Desk()
    desk.pacer.pools.adopt(PacerSettings(headers=False))
    desk.paused(2.0)
    assert desk.pacer.pools.paused_until() > 1.9


def test_stated_limits_hold_nobody_any_more_once_a_reload_ignores_them() -> None:
    desk = Desk()
    desk.answer(0.0, desk.send(0.0), STATED)
    waiting = desk.enter(1.0, 15)
    assert desk.go(1.0) == []
    desk.pacer.pools.adopt(PacerSettings(headers=False))
    assert desk.go(1.0) == waiting


class Serial(Desk):
    """A pacer where all claims are of one serial, unless they say otherwise."""

    def claim(
        self,
        lane: Lane = Lane.ORDER,
        *,
        give_up_at: float = 1e12,
        bot: str = "a",
        serial: str = "k",
    ) -> Claim:
        claim = super().claim(lane, give_up_at=give_up_at, bot=bot)
        claim.serial = serial
        return claim


def test_of_one_serial_the_next_goes_when_the_one_before_is_over() -> None:
    desk = Serial()
    first = desk.claim()
    assert desk.pacer.goes_at_once(first, 0.0)
    assert not desk.pacer.goes_at_once(desk.claim(), 0.0)
    assert desk.pacer.goes_at_once(desk.claim(serial=""), 0.0)
    second, third, fourth = desk.enter(0.0, 3)
    assert desk.go(0.0) == []
    assert desk.pacer.release(0.0).look_again_at == pytest.approx(1e12)
    desk.answer(1.0, [first])
    assert desk.go(1.0) == [second]
    assert desk.go(1.0) == []
    desk.answer(1.5, [second], LOST)
    assert desk.go(1.5) == [third]
    desk.pacer.leave(third)
    assert desk.go(1.5) == [fourth]


def test_who_waits_for_a_reply_alone_is_not_paced_behind_it() -> None:
    desk = Serial(Quota(10, 10))
    now = 0.0
    under_way = desk.claim()
    assert desk.pacer.goes_at_once(under_way, now)
    waiting = desk.enter(now, 4)
    for claim in waiting:
        assert desk.go(now) == []
        now += 0.1
        desk.answer(now, [under_way])
        assert desk.go(now) == [claim]
        under_way = claim


def test_who_waits_for_a_reply_keeps_no_other_serial_and_the_pace_stays() -> None:
    desk = Serial(Quota(2, 1))
    first, other = desk.claim(), desk.claim(serial="other")
    assert desk.pacer.goes_at_once(first, 0.0)
    held = desk.claim(Lane.CANCEL)
    assert desk.pacer.enter(held, 0.0) is None
    assert desk.pacer.enter(other, 0.0) is None
    assert desk.go(0.0) == [other]
    desk.answer(0.1, [first])
    assert desk.go(0.1) == []
    assert desk.go(1.2) == [held]


def test_who_waits_for_a_reply_holds_up_none_of_another_serial_in_its_lane() -> None:
    desk = Serial()
    under_way = desk.claim()
    assert desk.pacer.goes_at_once(under_way, 0.0)
    held = desk.enter(0.0, 2)
    other, open_one = desk.claim(bot="b", serial="other"), desk.claim(serial="")
    for claim in (other, open_one):
        assert desk.pacer.enter(claim, 0.0) is None
        assert desk.go(0.0) == [claim]
    desk.answer(1.0, [under_way])
    assert desk.go(1.0) == [held[0]]


def test_a_short_window_goes_at_its_own_pace_beside_one_of_a_day() -> None:
    desk = Desk(Quota(100, 10.0), Quota(200_000, 86_400.0))
    desk.answer(0.02, desk.send(0.0, 400))
    now, went = 0.02, list[float]()
    while now < 29.0:
        gone = desk.go(now)
        went += [now] * len(gone)
        desk.answer(now + 0.001, gone)
        again_at = desk.pacer.release(now).look_again_at
        now = now + 0.01 if again_at is None else max(again_at, now + 0.001)
    assert len(went) >= 180, "of 200 that two more windows grant"


def test_a_refusal_of_a_published_limit_that_is_not_full_slows_the_day_by_nothing() -> None:
    """Orders that come after a refusal must not go at half of the pace of a day."""
    desk = Desk(Quota(100, 10.0), Quota(200_000, 86_400.0))
    desk.answer(0.02, desk.send(0.0, 3))
    desk.answer(30.02, desk.send(30.0), limited(5.0))
    waiting = desk.enter(31.0, 5)
    now = 35.1
    while waiting[-1] in desk.pacer.waiting():
        desk.answer(now + 0.001, desk.go(now))
        again_at = desk.pacer.release(now).look_again_at
        now = now + 0.01 if again_at is None else max(again_at, now + 0.001)
    assert now < 36.5
