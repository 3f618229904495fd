"""Several pools in one pacer: what closes one holds up nobody who does not need it."""

from collections import Counter

import pytest

from sealgate.limits.claims import Claim, Fate, LimitReply
from sealgate.limits.pacer import Pacer
from sealgate.limits.pool import PoolSettings
from sealgate.limits.pools import PacerSettings
from sealgate.limits.quotas import Quota
from sealgate.venues.routes import Lane

ACCEPTED = LimitReply(Fate.ACCEPTED)
WEIGHT, ORDERS, OTHER_ORDERS = "here | weight", "one | orders", "two | orders"
OF_READ, OF_ORDER, OF_OTHERS_ORDER = (WEIGHT,), (ORDERS, WEIGHT), (OTHER_ORDERS, WEIGHT)


def refused(pool: str = "", wait_s: float | None = 10.0, **more: object) -> LimitReply:
    return LimitReply(Fate.LIMITED, wait_s, 0.0, pools=tuple(filter(None, [pool])), **more)  # type: ignore[arg-type] # of any field


class Desk:
    """A pacer of an exchange that counts weight by address, and orders by account."""

    def __init__(self, queue: int = 1000, **known: Quota) -> None:
        orders = (known["orders"],) if "orders" in known else ()
        weight = (known["weight"],) if "weight" in known else ()
        pools = {"orders": PoolSettings(orders, counts_requests=True), "weight": PoolSettings(weight)}
        self.pacer = Pacer(PacerSettings(queue, pools=pools), lambda: 0.5)
        self.made = 0
        self.waits: list[Claim] = []

    def claim(  # noqa: PLR0913 - what a claim may be
        self,
        pools: tuple[str, ...] = OF_READ,
        lane: Lane = Lane.READ,
        bot: str = "a",
        *,
        cost: float = 1.0,
        give_up_at: float = 1000.0,
        subjects: tuple[str, ...] = (),
    ) -> Claim:
        self.made += 1
        is_read, id_ = lane is Lane.READ, f"{lane}{self.made}"
        return Claim(
            id_, bot, lane, give_up_at, cost=cost, is_read=is_read, pools=pools, subjects=subjects, key=bot
        )

    def goes(self, claim: Claim, now: float) -> bool:
        """Ask for a claim; return whether it goes now. If not, it waits."""
        if self.pacer.goes_at_once(claim, now):
            return True
        assert self.pacer.enter(claim, now) is None
        return claim in self.released(now)

    def released(self, now: float) -> list[Claim]:
        return [*self.pacer.release(now).go]

    def answer(self, claim: Claim, now: float, reply: LimitReply = ACCEPTED) -> None:
        self.pacer.answered(claim, now, reply)

    def meets(self, claim: Claim, now: float, reply: LimitReply = ACCEPTED) -> None:
        assert self.goes(claim, now)
        self.answer(claim, now + 0.02, reply)


def test_a_refusal_that_names_a_pool_stops_what_passes_it_and_nothing_else() -> None:
    desk = Desk()
    desk.meets(desk.claim(OF_ORDER, Lane.ORDER), 0.0, refused("orders"))
    waits = [desk.claim(OF_ORDER, Lane.ORDER) for _ in range(3)]
    assert not any(desk.goes(one, 0.1) for one in waits)
    assert desk.goes(desk.claim(OF_READ, Lane.CANCEL), 0.2), "a cancel is in no pool of orders"
    assert desk.goes(desk.claim(OF_READ), 0.2), "a read"
    assert desk.goes(desk.claim(OF_OTHERS_ORDER, Lane.ORDER), 0.2), "an order of another account"
    assert desk.released(10.0) == []
    [scout] = desk.released(10.1)
    assert scout is waits[0]
    assert desk.goes(desk.claim(OF_READ), 10.1)
    desk.answer(scout, 10.12)
    assert desk.released(10.12) == waits[1:]


def test_one_that_names_no_pool_closes_all_that_the_request_passed() -> None:
    desk = Desk()
    desk.meets(desk.claim(OF_ORDER, Lane.ORDER), 0.0, refused())
    assert not desk.goes(desk.claim(OF_ORDER, Lane.ORDER), 1.0)
    assert not desk.goes(desk.claim(OF_READ), 1.0)
    assert not desk.goes(desk.claim(OF_OTHERS_ORDER, Lane.ORDER), 1.0), "it needs weight, too"


def test_one_that_names_a_pool_of_others_is_of_all_that_the_request_passed() -> None:
    """A file that is wrong there must not let everything go on."""
    desk = Desk()
    desk.meets(desk.claim(OF_READ), 0.0, refused("orders"))
    assert not desk.goes(desk.claim(OF_READ), 1.0)


@pytest.mark.parametrize("pool", ["", "orders"])
def test_nothing_of_a_subject_that_is_shut_out_goes_and_then_one_alone(pool: str) -> None:
    desk = Desk()
    mine, hers = ("key one", "one", "here"), ("key two", "two", "here")
    desk.meets(desk.claim(OF_ORDER, Lane.ORDER, subjects=mine), 0.0, refused(pool, 900.0, shuts_out="one"))
    waits = [desk.claim(OF_READ, subjects=mine), desk.claim(OF_READ, Lane.CANCEL, subjects=mine)]
    assert not any(desk.goes(one, 1.0) for one in waits)
    assert desk.goes(desk.claim(OF_READ, subjects=hers), 1.0)
    assert desk.goes(desk.claim(OF_OTHERS_ORDER, Lane.ORDER, subjects=hers), 1.0)
    assert desk.released(899.0) == []
    [scout] = desk.released(900.1)
    assert scout is waits[1], "cancels first"
    assert not desk.pacer.goes_at_once(desk.claim(("one | another",), subjects=mine), 900.1), "a new pool"
    desk.answer(scout, 900.2)
    assert desk.released(900.2) == waits[:1]
    assert desk.pacer.goes_at_once(desk.claim(("one | another",), subjects=mine), 900.3)


def test_a_scout_that_meets_the_ban_again_is_followed_by_another_pause() -> None:
    desk, mine = Desk(), ("one",)
    banned = LimitReply(Fate.BANNED, 600.0, shuts_out="one")
    desk.meets(desk.claim(subjects=mine), 0.0, banned)
    [first, second] = [desk.claim(subjects=mine, give_up_at=9000.0) for _ in range(2)]
    assert not desk.goes(first, 1.0)
    assert not desk.goes(second, 1.0)
    assert desk.released(600.1) == [first]
    desk.answer(first, 600.2, banned)
    assert desk.released(1200.1) == []
    assert desk.released(1200.3) == [second]


def test_a_ban_that_comes_while_the_scout_of_another_is_on_its_way_holds() -> None:
    desk, mine = Desk(), ("one",)
    first, second, scout = (desk.claim(subjects=mine) for _ in range(3))
    assert desk.goes(first, 0.0)
    assert desk.goes(second, 0.0)
    desk.answer(first, 0.1, LimitReply(Fate.BANNED, 1.0, shuts_out="one"))
    assert desk.goes(scout, 1.2)
    desk.answer(second, 1.3, LimitReply(Fate.BANNED, 600.0, shuts_out="one"))
    desk.answer(scout, 1.4)
    waits = [desk.claim(subjects=mine) for _ in range(2)]
    assert not any(desk.goes(one, 2.0) for one in waits)
    assert desk.released(601.0) == []
    assert desk.released(602.0) == waits[:1], "the next scout"


def test_what_must_wait_for_a_pool_goes_before_what_came_later_of_a_lower_rank() -> None:
    desk = Desk(weight=Quota(10, 1.0))
    assert sum(desk.goes(desk.claim(), 0.0) for _ in range(10)) == 10
    reads = [desk.claim() for _ in range(30)]
    order = desk.claim(OF_ORDER, Lane.ORDER)
    assert not any(desk.goes(one, 0.1) for one in (*reads, order))
    now = 0.1
    while not (gone := desk.released(now)):
        again_at = desk.pacer.release(now).look_again_at
        assert again_at is not None
        now = again_at
    assert gone[0] is order


def test_what_waits_for_a_closed_pool_keeps_no_room_of_another_one() -> None:
    """Orders are paused for a minute while more reads come than the weight allows."""
    desk = Desk(weight=Quota(10, 1.0))
    desk.meets(desk.claim(OF_ORDER, Lane.ORDER), 0.0, refused("orders", 60.0))
    reads = [desk.claim(bot="b") for _ in range(100)]
    orders = [desk.claim(OF_ORDER, Lane.ORDER) for _ in range(5)]
    assert shares_of(desk, orders + reads, 10.0)["b"] >= 85


def test_cancels_go_before_orders_that_another_pool_slows() -> None:
    """Of ten a second the orders may be five; by the order of the pools they would take half."""
    desk = Desk(weight=Quota(10, 1.0), orders=Quota(5, 1.0))
    narrow_orders = (WEIGHT, ORDERS)  # the wider one is that of orders alone
    orders = [desk.claim(narrow_orders, Lane.ORDER, "a", give_up_at=1e9) for _ in range(100)]
    cancels = [desk.claim(OF_READ, Lane.CANCEL, "b", give_up_at=1e9) for _ in range(200)]
    went = shares_of(desk, orders + cancels, 10.0)
    assert went["b"] == pytest.approx(0.9 * went.total(), rel=0.1), "orders keep a tenth"


def test_a_dear_request_counts_as_one_where_requests_are_counted() -> None:
    desk = Desk(orders=Quota(3, 1.0))
    orders = [desk.claim(OF_ORDER, Lane.ORDER, cost=20.0) for _ in range(4)]
    assert [desk.goes(one, 0.0) for one in orders] == [True, True, True, False]


def shares_of(desk: Desk, claims: list[Claim], seconds: float) -> Counter[str]:
    """Return how many claims of each bot go within that time, if they all wait now."""
    for one in claims:
        desk.goes(one, 0.0)
    went: Counter[str] = Counter()
    now = 0.0
    while now < seconds:
        release = desk.pacer.release(now)
        went.update(one.bot for one in release.go)
        for one in release.go:
            desk.answer(one, now)
        now = seconds if release.look_again_at is None else max(now + 1e-6, release.look_again_at)
    return went


def test_who_sends_much_in_one_pool_owes_nothing_in_another() -> None:
    desk = Desk(orders=Quota(20, 1.0))
    for number in range(500):
        desk.meets(desk.claim(("here | other",), bot="a"), number / 1000)
    claims = [
        desk.claim((ORDERS,), Lane.ORDER, bot, give_up_at=1e9) for _ in range(200) for bot in ("a", "b")
    ]
    went = shares_of(desk, claims, 5.0)
    assert abs(went["a"] - went["b"]) <= 2


def test_accounts_that_share_a_pool_have_equal_parts_of_it_by_bot() -> None:
    """Two bots of one account and one of another: a third each, though the pools of orders differ."""
    desk = Desk(weight=Quota(30, 1.0))
    pools = {"a": OF_ORDER, "b": OF_ORDER, "c": OF_OTHERS_ORDER}
    claims = [desk.claim(pools[bot], Lane.ORDER, bot, give_up_at=1e9) for _ in range(300) for bot in pools]
    went = shares_of(desk, claims, 10.0)
    assert min(went.values()) >= 0.95 * max(went.values())


def test_reads_keep_a_tenth_of_the_pool_that_orders_fill() -> None:
    desk = Desk(weight=Quota(50, 1.0))
    orders = [desk.claim(OF_ORDER, Lane.ORDER, "a", give_up_at=1e9) for _ in range(900)]
    reads = [desk.claim(OF_READ, Lane.READ, "b", give_up_at=1e9) for _ in range(900)]
    went = shares_of(desk, orders + reads, 10.0)
    assert went["b"] == pytest.approx(0.1 * went.total(), rel=0.2)


def test_what_replies_state_holds_in_its_own_pool() -> None:
    desk = Desk()
    nothing_left = Quota(float("inf"), left=0.0, reset_s=6.0, name="count", pool="orders")
    desk.meets(desk.claim(OF_ORDER, Lane.ORDER), 0.0, LimitReply(Fate.ACCEPTED, quotas=(nothing_left,)))
    assert desk.goes(desk.claim(OF_READ), 1.0)
    order = desk.claim(OF_ORDER, Lane.ORDER)
    assert not desk.goes(order, 1.0)
    assert desk.released(6.1) == [order], "without a scout"


def test_what_replies_state_of_a_wider_pool_is_not_of_the_narrowest() -> None:
    desk = Desk()
    nothing_left = Quota(float("inf"), left=0.0, reset_s=6.0, name="count", pool="weight")
    desk.meets(desk.claim(OF_ORDER, Lane.ORDER), 0.0, LimitReply(Fate.ACCEPTED, quotas=(nothing_left,)))
    assert not desk.goes(desk.claim(OF_READ), 1.0)
    assert desk.goes(desk.claim((ORDERS,), Lane.ORDER), 1.0)


def test_what_is_stated_of_no_pool_is_of_the_narrowest() -> None:
    desk = Desk()
    nothing_left = Quota(float("inf"), left=0.0, reset_s=6.0, name="ratelimit")
    desk.meets(desk.claim(OF_ORDER, Lane.ORDER), 0.0, LimitReply(Fate.ACCEPTED, quotas=(nothing_left,)))
    assert desk.goes(desk.claim(OF_READ), 1.0)
    assert not desk.goes(desk.claim(OF_ORDER, Lane.ORDER), 1.0)


def test_who_cannot_outlast_a_pause_is_told_of_which_pool() -> None:
    desk = Desk()
    desk.meets(desk.claim(OF_ORDER, Lane.ORDER), 0.0, refused("orders", 60.0))
    rejection = desk.pacer.enter(desk.claim(OF_ORDER, Lane.ORDER, give_up_at=30.0), 1.0)
    assert rejection is not None
    assert rejection.slug == "rate_limited"
    assert rejection.detail == "The exchange closed the pool orders until after this request's deadline."


def test_who_cannot_outlast_a_ban_is_told_that_it_is_one() -> None:
    desk = Desk()
    assert desk.pacer.shut_out("here", 60.0, 0.0)
    rejection = desk.pacer.enter(desk.claim(give_up_at=30.0, subjects=("here",)), 1.0)
    assert rejection is not None
    assert rejection.detail == "This key or IP address is blocked until after this request's deadline."


def test_the_part_of_a_pool_that_is_closed_is_named() -> None:
    desk, path = Desk(), ("one | path | POST /v5/order/create", WEIGHT)
    for now in (0.0, 10.0):  # the exchange states no wait
        desk.meets(desk.claim(path), now, refused("path", None))
    rejection = desk.pacer.enter(desk.claim(path, give_up_at=10.2), 10.1)
    assert rejection is not None
    assert rejection.detail == (
        "The exchange refused requests of the pool path POST /v5/order/create 2 times in a row; "
        "the gateway closes it until after this request's deadline."
    )


def test_each_key_has_a_queue_of_its_own() -> None:
    desk = Desk(queue=2)
    desk.meets(desk.claim(), 0.0, refused("weight"))
    for bot in ("a", "b"):
        assert [desk.pacer.enter(desk.claim(bot=bot), 1.0) for _ in range(2)] == [None, None]
        rejection = desk.pacer.enter(desk.claim(bot=bot), 1.0)
        assert rejection is not None
        assert rejection.slug == "queue_full"


def test_pools_that_bots_make_are_forgotten_and_those_that_matter_are_not() -> None:
    desk = Desk()
    desk.meets(desk.claim(OF_ORDER, Lane.ORDER), 0.0, refused("orders", 1000.0))
    for number in range(5000):
        desk.meets(desk.claim((f"one | pair | {number}", WEIGHT)), 1.0)
    assert len(desk.pacer.pools.by_place) <= 2001
    assert not desk.goes(desk.claim(OF_ORDER, Lane.ORDER, give_up_at=1e9), 2.0)


def test_what_bots_make_costs_other_pools_no_memory() -> None:
    """They name so many pairs that pools must be forgotten, and none of their requests is on its way."""
    desk = Desk(weight=Quota(10, 60.0))
    for _ in range(10):
        desk.meets(desk.claim(), 0.0)
    for number in range(5000):
        claim = desk.claim((f"one | pair | {number}", WEIGHT), give_up_at=1.0)
        assert not desk.pacer.goes_at_once(claim, 1.0)
        assert desk.pacer.enter(claim, 1.0) is not None
    assert len(desk.pacer.pools.by_place) <= 2001
    assert not desk.goes(desk.claim(), 2.0)


def test_of_pools_that_bots_make_those_are_forgotten_that_were_not_used_for_longest() -> None:
    desk = Desk()
    for number in range(2500):
        for pair in (number, "mine"):
            desk.meets(desk.claim((f"one | pair | {pair}", WEIGHT), give_up_at=1e9), float(number))
    kept = desk.pacer.pools.by_place
    assert {"one | pair | mine", "one | pair | 2499", WEIGHT} <= kept.keys()
    assert "one | pair | 0" not in kept


def test_pauses_of_strangers_take_no_more_room_when_they_are_over() -> None:
    desk = Desk()
    desk.meets(desk.claim(OF_ORDER, Lane.ORDER), 0.0)
    for number in range(10_000):
        desk.pacer.shut_out(f"stranger {number}", number + 0.5, float(number))
    assert len(desk.pacer.pools.by_place) <= 2001
    assert {WEIGHT, ORDERS} <= desk.pacer.pools.by_place.keys()


@pytest.mark.parametrize("is_tight", [False, True])
def test_cancels_that_wait_for_another_pool_keep_no_deadline_from_being_met(is_tight: bool) -> None:
    desk = Desk(weight=Quota(6000, 60.0))
    desk.meets(desk.claim(OF_ORDER, Lane.CANCEL), 0.0, refused("orders", 1000.0))
    for _ in range(900):
        assert not desk.goes(desk.claim(OF_ORDER, Lane.CANCEL, "b", give_up_at=3600.0), 0.1)
    if is_tight:
        desk.pacer.pools.at(WEIGHT).pace(False)
    assert desk.goes(desk.claim(OF_OTHERS_ORDER, Lane.CANCEL, give_up_at=1.0), 0.2)


def test_who_fills_the_line_of_a_key_leaves_the_others_their_part() -> None:
    desk = Desk(queue=8)
    desk.meets(desk.claim(), 0.0, refused("weight"))

    def enters(bot: str) -> bool:
        claim = desk.claim(bot=bot)
        claim.key = "one"
        return desk.pacer.enter(claim, 1.0) is None

    assert [enters("flood") for _ in range(9)] == [True] * 8 + [False]
    assert [enters("other") for _ in range(5)] == [True] * 4 + [False]
    assert [enters("third") for _ in range(3)] == [True] * 2 + [False]
    assert not enters("flood")
    assert len(desk.released(100.0)) == 1, "the scout"


def test_who_waits_for_too_many_pools_waits_for_no_more() -> None:
    desk = Desk()
    desk.meets(desk.claim(), 0.0, refused("weight"))
    claims = [desk.claim((f"one | pair | {number}", WEIGHT)) for number in range(201)]
    *taken, last = (desk.pacer.enter(claim, 1.0) for claim in claims)
    assert taken == [None] * 200
    assert last is not None
    assert last.slug == "queue_full"
    assert desk.pacer.enter(desk.claim(claims[0].pools), 1.0) is None
    assert desk.pacer.enter(desk.claim(claims[200].pools, bot="b"), 1.0) is None
    desk.pacer.leave(claims[1])
    assert desk.pacer.enter(desk.claim(claims[200].pools), 1.0) is None


def test_a_pool_counts_as_the_latest_settings_say() -> None:
    desk, known = Desk(orders=Quota(3, 1.0)), (Quota(3, 1.0),)
    assert all(desk.goes(desk.claim(OF_ORDER, Lane.ORDER, cost=3.0), 0.0) for _ in range(2))
    desk.pacer.pools.adopt(PacerSettings(pools={"orders": PoolSettings(known)}))
    orders = [desk.claim(OF_ORDER, Lane.ORDER, cost=3.0) for _ in range(2)]
    assert [desk.goes(one, 5.0) for one in orders] == [True, False]


def test_a_refusal_for_which_nobody_waited_makes_nobody_wait_once_a_scout_was_accepted() -> None:
    desk = Desk(weight=Quota(10, 1.0))
    desk.meets(desk.claim(), 0.0, refused("weight", 1.0))
    desk.meets(desk.claim(), 5.0)
    assert all(desk.pacer.goes_at_once(desk.claim(), 6.0) for _ in range(5))


def test_a_pause_and_what_was_learned_are_kept_by_pool() -> None:
    desk = Desk()
    desk.meets(desk.claim(OF_ORDER, Lane.ORDER), 0.0, refused("orders", 60.0, shuts_out="one"))
    kept = desk.pacer.pools.snapshot(10.0)
    later = Desk()
    assert later.pacer.pools.restore(kept, 0.0) == pytest.approx(50.0, abs=0.1)
    assert later.goes(later.claim(OF_READ, subjects=("two",)), 1.0)
    for pools, subjects in ((OF_ORDER, ()), (OF_READ, ("one",))):
        assert not later.goes(later.claim(pools, Lane.ORDER, subjects=subjects), 1.0)
    assert later.pacer.pools.paused_until((ORDERS,)) == pytest.approx(50.0, abs=0.1)
    assert later.pacer.pools.reopens_at((), ("one",)) == pytest.approx(50.0, abs=0.1)


def test_of_pools_that_bots_make_those_that_are_closed_or_were_used_last_are_shown() -> None:
    desk = Desk()
    places = [f"here | path | {number}" for number in range(300)]
    for at, place in enumerate(places):
        claim = desk.claim(pools=(place, WEIGHT))
        assert desk.goes(claim, float(at))
        desk.answer(claim, float(at), refused("path", 1000.0) if at == 7 else ACCEPTED)
    shown = desk.pacer.status(300.0).pools
    assert shown.keys() == {WEIGHT, places[7], *places[-99:]}
    assert round(shown[places[7]].pause_s) == 707
    assert shown[places[299]].pause_s == 0.0


def test_a_ban_shows_as_one_and_what_is_sent_as_the_limit_counts_it() -> None:
    desk = Desk()
    first, second = desk.claim(cost=30.0), desk.claim(OF_ORDER, cost=10.0)
    for claim in (first, second):
        assert desk.goes(claim, 0.0)
    desk.answer(first, 0.1)
    desk.answer(second, 0.1, LimitReply(Fate.BANNED, 60.0, 0.0, pools=("orders",)))
    shown = desk.pacer.status(1.0).pools
    assert (shown[ORDERS].is_banned, shown[WEIGHT].is_banned) == (True, False)
    assert shown[WEIGHT].cost_per_s == 4.0
    assert not desk.pacer.status(61.0).pools[ORDERS].is_banned


def orders_of_the_day() -> Desk:
    """Return a desk whose orders are counted per 10 s and per day, by the exchange's clock."""
    desk = Desk()
    known = (Quota(100, 10.0), Quota(200, 86_400.0))
    pools = {"orders": PoolSettings(known, counts_requests=True, is_aligned=True)}
    desk.pacer = Pacer(PacerSettings(pools=pools), lambda: 0.0)
    return desk


def test_a_refusal_without_a_wait_lasts_to_the_end_of_an_aligned_window() -> None:
    desk = orders_of_the_day()
    desk.meets(desk.claim((ORDERS,), Lane.ORDER), 50.0, refused("orders", None, server_now=1_000_003.5))
    assert desk.pacer.pools.paused_until((ORDERS,)) == pytest.approx(50.02 + 6.5)


def test_of_two_aligned_windows_the_one_that_is_nearly_full_counts() -> None:
    desk = orders_of_the_day()
    for number in range(190):
        desk.meets(desk.claim((ORDERS,), Lane.ORDER, give_up_at=1e9), 30.0 * number)
    desk.meets(
        desk.claim((ORDERS,), Lane.ORDER, give_up_at=1e9),
        5700.0,
        refused("orders", None, server_now=86_400.0 + 6000.0),
    )
    assert desk.pacer.pools.paused_until((ORDERS,)) == pytest.approx(5700.02 + 80_400.0)


@pytest.mark.parametrize(("window_s", "wait_s"), [(2.0, 2.0), (60.0, 0.375)])
def test_of_a_window_that_began_nobody_knows_when_a_short_one_is_waited_for(
    window_s: float, wait_s: float
) -> None:
    desk = Desk(orders=Quota(60, window_s))
    desk.meets(desk.claim((ORDERS,), Lane.ORDER), 0.0, refused("orders", None, server_now=1_000_003.5))
    assert desk.pacer.pools.paused_until((ORDERS,)) == pytest.approx(0.02 + wait_s, abs=0.01)
