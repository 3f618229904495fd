"""The leader's side: one line for all members, credits, and what becomes of a member that is gone."""

from collections.abc import Callable

import pytest

from sealgate.cluster.leader import LISTENS_S, Leader
from sealgate.cluster.messages import Completion, Grant, Note
from sealgate.limits import Limit
from sealgate.limits.claims import Claim, Fate, LimitReply
from sealgate.limits.pacer import PacerSettings
from sealgate.limits.round_trips import FIRST_S
from sealgate.venues.routes import Lane

ACCEPTED = LimitReply(Fate.ACCEPTED)


def claim(name: str, bot: str = "bot", lane: Lane = Lane.ORDER, give_up_at: float = 1000.0) -> Claim:
    return Claim(name, bot, lane, give_up_at)


def leader_of(*limits: Limit, opens_at: float = 0.0) -> Leader:
    return Leader(PacerSettings(), lambda: 0.5, list(limits), opens_at)


def ten() -> Leader:
    return leader_of(Limit(10.0, 1.0, 10.0, 10.0, most=10.0))


def asks(leader: Leader, member: str, *names: str, bot: str = "bot", now: float = 0.0) -> list[str]:
    """Let claims of a member wait, and return which of them may go."""
    leader.receive(member, Note(waits=[claim(name, bot) for name in names]), now)
    leader.advance(now)
    return leader.take_grant(member).go


def test_the_budget_is_one() -> None:
    leader = ten()
    assert len(asks(leader, "a", *"123456")) == 6
    assert len(asks(leader, "b", *"123456")) == 4
    leader.advance(1.5)
    assert leader.take_grant("b").go == ["5"]
    assert 1.5 < leader.look_at < 2.0


def test_a_pause_is_one() -> None:
    leader = ten()
    asks(leader, "a", "1")
    leader.receive(
        "a", Note(completed=[Completion("1", LimitReply(Fate.LIMITED, 3.0, 0.0), 0.0, 0.04)]), 0.05
    )
    assert leader.pacer.paused_until > 3.0
    assert asks(leader, "b", "1", now=0.1) == []
    assert not leader.goes_at_once("c", claim("1"), 0.1)


def test_a_bot_at_two_gateways_has_one_share() -> None:
    leader = leader_of(Limit(1.0, 1.0, 1.0, 1.0, most=1.0))
    asks(leader, "a", "first")
    for number in range(40):
        asks(leader, "a", f"x{number}", bot="x", now=0.1)
        asks(leader, "b", f"x{number}", bot="x", now=0.1)
        asks(leader, "b", f"y{number}", bot="y", now=0.1)
    went = []
    for number in range(1, 41):
        leader.advance(float(2 * number))
        went += leader.take_grant("a").go + leader.take_grant("b").go
    assert sum(name.startswith("y") for name in went) == pytest.approx(len(went) / 2, abs=1)


def test_before_it_opens_it_only_listens_and_counts() -> None:
    leader = leader_of(Limit(10.0, 1.0, 10.0, 10.0, most=10.0), opens_at=LISTENS_S)
    assert not leader.is_due(0.0)
    leader.receive("a", Note(is_new=True, spent=[(0.9, 1.0), (0.3, 3.0), (0.1, 3.0)]), 0.0)
    leader.receive("b", Note(is_new=True, spent=[(0.2, 2.0)], wants=5), 0.1)
    assert asks(leader, "a", "1", "2", "3", now=0.2) == []
    assert not leader.goes_at_once("b", claim("1"), 0.2)
    leader.advance(LISTENS_S)
    assert len(leader.take_grant("a").go) == 2


def test_what_a_late_comer_has_spent_counts_as_sent_now() -> None:
    leader = ten()
    leader.advance(0.0)
    leader.receive("late", Note(is_new=True, spent=[(0.5, 4.0), (0.1, 4.0)]), 1.0)
    assert len(asks(leader, "a", "1", "2", "3", now=1.0)) == 2


def test_credits_are_places_that_nobody_else_has() -> None:
    leader = leader_of(
        Limit(10.0, 1.0, 10.0, 10.0, most=10.0), Limit(1000.0, 60.0, 16.666667, 16.666667, most=16.666667)
    )
    leader.advance(0.0)
    leader.receive("a", Note(wants=20), 0.0)
    credits_lent = leader.take_grant("a").credits
    assert len(credits_lent) == 2  # a quarter of the smaller limit
    assert len(asks(leader, "b", *"123456789")) == 8
    leader.receive("a", Note(gone=credits_lent), 0.1)
    leader.advance(0.2)
    assert leader.take_grant("b").go == ["9"]


def test_a_credit_that_was_given_back_can_be_lent_anew() -> None:
    leader = ten()
    leader.advance(0.0)
    lent = []
    for now in (0.0, 0.1):
        leader.receive("a", Note(wants=20), now)
        lent.append(leader.take_grant("a").credits)
        leader.receive("a", Note(gone=lent[-1]), now)
    assert [len(names) for names in lent] == [2, 2]


def test_a_credit_that_is_used_counts_from_then_on() -> None:
    leader = ten()
    leader.advance(0.0)
    leader.receive("a", Note(wants=1), 0.0)
    [name] = leader.take_grant("a").credits
    leader.receive("a", Note(sent=[(name, 0.9)]), 0.91)
    leader.receive("a", Note(completed=[Completion(name, ACCEPTED, 0.9, 0.92)]), 0.95)
    assert len(asks(leader, "b", *(str(number) for number in range(12)), now=1.5)) == 9


def test_what_is_told_late_counts_from_when_it_was_sent() -> None:
    """Its connection took a while, and so did the note, which came after another was sent."""
    leader = ten()
    asks(leader, "a", "1")
    asks(leader, "b", *"123456789", now=0.05)
    leader.receive("a", Note(sent=[("1", 0.02)], completed=[Completion("1", ACCEPTED, 0.02, 0.03)]), 0.07)
    went = asks(leader, "b", "too early", now=1.02)
    assert went == []
    leader.advance(1.02 + FIRST_S + 0.001)
    assert leader.take_grant("b").go == ["too early"]


def test_no_credit_where_there_is_no_room() -> None:
    leader = leader_of(
        Limit(10.0, 1.0, 10.0, 10.0, most=10.0), Limit(10.0, 60.0, 0.166667, 0.166667, most=0.166667)
    )
    asks(leader, "b", *"123456789", "10")
    leader.receive("a", Note(wants=1), 0.5)
    assert leader.take_grant("a").credits == []


def test_where_no_limit_is_known_credits_are_many() -> None:
    leader = leader_of()
    leader.advance(0.0)
    leader.receive("a", Note(wants=1000), 0.0)
    assert len(leader.take_grant("a").credits) == 256


def test_a_member_that_is_gone_leaves_what_it_sent_counted() -> None:
    leader = ten()
    leader.advance(0.0)
    leader.receive("a", Note(wants=2), 0.0)
    asks(leader, "a", *"12345678")
    asks(leader, "b", "waits")
    leader.forget("a", 0.1)
    leader.forget("never seen", 0.1)
    assert leader.members() == ("b",)
    leader.advance(0.2)
    assert leader.take_grant("b").go == ["waits"]
    assert len(asks(leader, "b", "1", "2", "3", now=0.3)) == 1


def test_a_scout_whose_member_is_gone_is_followed_by_the_next_and_tells_nothing() -> None:
    leader = ten()
    asks(leader, "a", "1")
    leader.receive(
        "a", Note(completed=[Completion("1", LimitReply(Fate.LIMITED, 1.0, 0.0), 0.0, 0.04)]), 0.05
    )
    end = leader.pacer.paused_until
    asks(leader, "b", "1", "2", now=0.1)
    assert asks(leader, "a", "scout", now=end) == []
    assert leader.take_grant("b").go == ["1"]
    leader.forget("b", end + 0.1)
    leader.advance(end + 1.9)
    assert leader.take_grant("a").go == []
    leader.advance(end + 2.0)
    assert leader.take_grant("a").go == ["scout"]
    assert asks(leader, "a", "behind", now=end + 2.1) == []


@pytest.mark.parametrize(
    "note",
    [
        pytest.param(Note(is_new=True), id="it begins anew"),
        pytest.param(Note(gone=["1"]), id="it gave the first back"),
        pytest.param(
            Note(completed=[Completion("1", LimitReply(Fate.LIMITED, 9.0), 0.0, 0.0)]), id="it sends it again"
        ),
    ],
)
def test_a_name_that_comes_again_stands_for_who_waits_now(note: Note) -> None:
    leader = leader_of(Limit(1.0, 5.0, 0.2, 0.2, most=0.2))
    assert asks(leader, "a", "1") == ["1"]
    leader.pacer.hold(9.0)
    note.waits = [claim("1")]
    leader.receive("a", note, 0.1)
    assert leader.pacer.status(0.1).waiting == {(Lane.ORDER, "bot"): 1}
    leader.forget("a", 0.2)
    assert leader.pacer.status(0.2).waiting == {}


def test_what_a_member_wrote_before_it_began_anew_is_void() -> None:
    leader = ten()
    leader.advance(0.0)
    leader.receive("a", Note(waits=[claim(str(number)) for number in range(11)], wants=1), 0.0)
    leader.receive("a", Note(is_new=True), 0.1)
    assert leader.take_grant("a") == Grant()
    leader.advance(5.0)
    assert leader.take_grant("a") == Grant()


def test_what_was_answered_is_over_when_its_member_goes() -> None:
    leader = ten()
    asks(leader, "a", *"12345")
    leader.receive("a", Note(completed=[Completion(name, ACCEPTED, 0.0, 0.1) for name in "12345"]), 0.1)
    leader.forget("a", 0.2)
    assert len(asks(leader, "b", *"123456789", now=0.3)) == 5


def test_what_it_does_not_know_of_changes_nothing() -> None:
    leader = ten()
    asks(leader, "a", *(str(number) for number in range(11)))
    leader.receive(
        "a",
        Note(
            gone=["x"],
            sent=[("x", 0.1), ("10", 0.1)],
            completed=[Completion("x", ACCEPTED, 0.0, 0.1), Completion("10", ACCEPTED, 0.0, 0.1)],
        ),
        0.1,
    )
    assert len(leader.pacer.status(0.1).waiting) == 1


def test_what_cannot_go_in_time_is_declined_with_the_reason() -> None:
    leader = leader_of(Limit(1.0, 5.0, 0.2, 0.2, most=0.2))
    asks(leader, "a", "1")
    leader.receive("a", Note(waits=[claim("too late", give_up_at=5.5)]), 0.0)
    leader.receive("a", Note(waits=[claim("far too late", give_up_at=1.0)]), 0.0)
    leader.advance(0.0)
    [rejected] = leader.take_grant("a").rejected
    assert (rejected.name, rejected.slug) == ("far too late", "deadline_exceeded")
    assert rejected.retry_after_s == pytest.approx(10.0, abs=0.1)
    asks(leader, "a", "2")
    leader.pacer.hold(9.0)
    leader.advance(5.6)
    assert leader.members() == ("a",)
    [rejected] = leader.take_grant("a").rejected
    assert (rejected.name, rejected.slug) == ("too late", "deadline_exceeded")
    leader.advance(12.0)
    assert leader.take_grant("a").go == ["2"]


@pytest.mark.parametrize("is_under_way", [True, False])
def test_a_name_that_is_told_twice_stands_in_the_queue_once(*, is_under_way: bool) -> None:
    leader = leader_of(Limit(2.0, 5.0, 0.4, 0.4, most=0.4))
    assert asks(leader, "a", "1") == ["1"]
    name = "1" if is_under_way else "2"
    leader.pacer.hold(4.0)
    asks(leader, "a", name)
    asks(leader, "a", name)
    assert leader.pacer.status(0.0).waiting == {(Lane.ORDER, "bot"): 1}
    leader.receive("a", Note(gone=[name]), 0.0)
    assert leader.pacer.status(0.0).waiting == {}


def test_a_pause_found_in_its_own_process_is_obeyed() -> None:
    leader = ten()
    assert leader.goes_at_once("me", claim("1"), 0.0)
    leader.receive(
        "me", Note(completed=[Completion("1", LimitReply(Fate.LIMITED, 1.0, 0.0), 0.0, 0.01)]), 0.02
    )
    assert not leader.goes_at_once("me", claim("2"), 0.5)


@pytest.mark.parametrize(
    "tell",
    [
        pytest.param(lambda leader: leader.receive("a", Note(gone=["1"]), 0.5), id="what was heard"),
        pytest.param(lambda leader: leader.forget("a", 0.5), id="who is gone"),
    ],
)
def test_what_may_let_others_go(tell: Callable[[Leader], None]) -> None:
    leader = ten()
    leader.advance(0.0)
    assert not leader.is_due(0.5)
    tell(leader)
    assert leader.is_due(0.5)


@pytest.mark.parametrize(
    ("n", "asking", "lent"),
    [
        pytest.param(32.0, "aba", [4, 4, 0], id="the same to each"),
        pytest.param(10.0, "abc", [1, 1, 0], id="where there are few, one to each while there is one"),
    ],
)
def test_credits_are_shared_out_among_the_members(n: float, asking: str, lent: list[int]) -> None:
    leader = leader_of(Limit(n, 1.0, n, n, most=n))
    leader.advance(0.0)
    for member in asking:
        leader.receive(member, Note(), 0.0)
    for member, number in zip(asking, lent, strict=True):
        leader.receive(member, Note(wants=20), 0.0)
        assert len(leader.take_grant(member).credits) == number


def test_a_credit_that_is_used_makes_room_for_another() -> None:
    leader = ten()
    leader.advance(0.0)
    leader.receive("a", Note(wants=2), 0.0)
    name, _ = leader.take_grant("a").credits
    leader.receive("a", Note(wants=2), 0.1)
    assert leader.take_grant("a").credits == []
    leader.receive("a", Note(sent=[(name, 0.2)], wants=2), 0.2)
    assert len(leader.take_grant("a").credits) == 1


def test_it_is_due_when_somebody_may_go() -> None:
    leader = ten()
    asks(leader, "a", *(str(number) for number in range(11)))
    assert [leader.is_due(now) for now in (1.0, leader.look_at)] == [False, True]
