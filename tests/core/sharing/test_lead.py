"""The lead's side: one line for all members, credits, and what becomes of a member that is gone."""

from collections.abc import Callable

import pytest

from sealgate.core.limits import Limit
from sealgate.core.limits.claims import Claim, Fate, LimitReply
from sealgate.core.limits.pacer import PacerSettings
from sealgate.core.limits.round_trips import FIRST_S
from sealgate.core.routes import Lane
from sealgate.core.sharing.lead import LISTENS_S, Lead
from sealgate.core.sharing.notes import Grant, Note, Over

ACCEPTED = LimitReply(Fate.ACCEPTED)


def claim(name: str, bot: str = "bot", lane: Lane = Lane.ORDER, give_up_at: float = 1000.0) -> Claim:
    return Claim(name, bot, lane, give_up_at)


def lead_of(*limits: Limit, opens_at: float = 0.0) -> Lead:
    return Lead(PacerSettings(), lambda: 0.5, list(limits), opens_at)


def ten() -> Lead:
    return lead_of(Limit(10.0, 1.0, 10.0, 10.0, most=10.0))


def asks(lead: Lead, member: str, *names: str, bot: str = "bot", now: float = 0.0) -> list[str]:
    """Let claims of a member wait, and return which of them may go."""
    lead.hear(member, Note(waits=[claim(name, bot) for name in names]), now)
    lead.advance(now)
    return lead.take_grant(member).go


def test_the_budget_is_one() -> None:
    lead = ten()
    assert len(asks(lead, "a", *"123456")) == 6
    assert len(asks(lead, "b", *"123456")) == 4
    lead.advance(1.5)
    assert lead.take_grant("b").go == ["5"]
    assert 1.5 < lead.look_at < 2.0


def test_a_pause_is_one() -> None:
    lead = ten()
    asks(lead, "a", "1")
    lead.hear("a", Note(over=[Over("1", LimitReply(Fate.LIMITED, 3.0, 0.0), 0.0, 0.04)]), 0.05)
    assert lead.pacer.paused_until > 3.0
    assert asks(lead, "b", "1", now=0.1) == []
    assert not lead.goes_at_once("c", claim("1"), 0.1)


def test_a_bot_at_two_gateways_has_one_share() -> None:
    lead = lead_of(Limit(1.0, 1.0, 1.0, 1.0, most=1.0))
    asks(lead, "a", "first")
    for number in range(40):
        asks(lead, "a", f"x{number}", bot="x", now=0.1)
        asks(lead, "b", f"x{number}", bot="x", now=0.1)
        asks(lead, "b", f"y{number}", bot="y", now=0.1)
    went = []
    for number in range(1, 41):
        lead.advance(float(2 * number))
        went += lead.take_grant("a").go + lead.take_grant("b").go
    assert sum(name.startswith("y") for name in went) == pytest.approx(len(went) / 2, abs=1)


def test_before_it_opens_it_only_listens_and_counts() -> None:
    lead = lead_of(Limit(10.0, 1.0, 10.0, 10.0, most=10.0), opens_at=LISTENS_S)
    assert not lead.is_due(0.0)
    lead.hear("a", Note(is_new=True, spent=[(0.9, 1.0), (0.3, 3.0), (0.1, 3.0)]), 0.0)
    lead.hear("b", Note(is_new=True, spent=[(0.2, 2.0)], wants=5), 0.1)
    assert asks(lead, "a", "1", "2", "3", now=0.2) == []
    assert not lead.goes_at_once("b", claim("1"), 0.2)
    lead.advance(LISTENS_S)
    assert len(lead.take_grant("a").go) == 2


def test_what_a_late_comer_has_spent_counts_as_sent_now() -> None:
    lead = ten()
    lead.advance(0.0)
    lead.hear("late", Note(is_new=True, spent=[(0.5, 4.0), (0.1, 4.0)]), 1.0)
    assert len(asks(lead, "a", "1", "2", "3", now=1.0)) == 2


def test_credits_are_places_that_nobody_else_has() -> None:
    lead = lead_of(
        Limit(10.0, 1.0, 10.0, 10.0, most=10.0), Limit(1000.0, 60.0, 16.666667, 16.666667, most=16.666667)
    )
    lead.advance(0.0)
    lead.hear("a", Note(wants=20), 0.0)
    credits_lent = lead.take_grant("a").credits
    assert len(credits_lent) == 2  # a quarter of the smaller limit
    assert len(asks(lead, "b", *"123456789")) == 8
    lead.hear("a", Note(gone=credits_lent), 0.1)
    lead.advance(0.2)
    assert lead.take_grant("b").go == ["9"]


def test_a_credit_that_was_given_back_can_be_lent_anew() -> None:
    lead = ten()
    lead.advance(0.0)
    lent = []
    for now in (0.0, 0.1):
        lead.hear("a", Note(wants=20), now)
        lent.append(lead.take_grant("a").credits)
        lead.hear("a", Note(gone=lent[-1]), now)
    assert [len(names) for names in lent] == [2, 2]


def test_a_credit_that_is_used_counts_from_then_on() -> None:
    lead = ten()
    lead.advance(0.0)
    lead.hear("a", Note(wants=1), 0.0)
    [name] = lead.take_grant("a").credits
    lead.hear("a", Note(sent=[(name, 0.9)]), 0.91)
    lead.hear("a", Note(over=[Over(name, ACCEPTED, 0.9, 0.92)]), 0.95)
    assert len(asks(lead, "b", *(str(number) for number in range(12)), now=1.5)) == 9


def test_what_is_told_late_counts_from_when_it_was_sent() -> None:
    """Its connection took a while, and so did the note, which came after another was sent."""
    lead = ten()
    asks(lead, "a", "1")
    asks(lead, "b", *"123456789", now=0.05)
    lead.hear("a", Note(sent=[("1", 0.02)], over=[Over("1", ACCEPTED, 0.02, 0.03)]), 0.07)
    went = asks(lead, "b", "too early", now=1.02)
    assert went == []
    lead.advance(1.02 + FIRST_S + 0.001)
    assert lead.take_grant("b").go == ["too early"]


def test_no_credit_where_there_is_no_room() -> None:
    lead = lead_of(
        Limit(10.0, 1.0, 10.0, 10.0, most=10.0), Limit(10.0, 60.0, 0.166667, 0.166667, most=0.166667)
    )
    asks(lead, "b", *"123456789", "10")
    lead.hear("a", Note(wants=1), 0.5)
    assert lead.take_grant("a").credits == []


def test_where_no_limit_is_known_credits_are_many() -> None:
    lead = lead_of()
    lead.advance(0.0)
    lead.hear("a", Note(wants=1000), 0.0)
    assert len(lead.take_grant("a").credits) == 256


def test_a_member_that_is_gone_leaves_what_it_sent_counted() -> None:
    lead = ten()
    lead.advance(0.0)
    lead.hear("a", Note(wants=2), 0.0)
    asks(lead, "a", *"12345678")
    asks(lead, "b", "waits")
    lead.forget("a", 0.1)
    lead.forget("never seen", 0.1)
    assert lead.members() == ("b",)
    lead.advance(0.2)
    assert lead.take_grant("b").go == ["waits"]
    assert len(asks(lead, "b", "1", "2", "3", now=0.3)) == 1


def test_a_scout_whose_member_is_gone_is_followed_by_the_next_and_tells_nothing() -> None:
    lead = ten()
    asks(lead, "a", "1")
    lead.hear("a", Note(over=[Over("1", LimitReply(Fate.LIMITED, 1.0, 0.0), 0.0, 0.04)]), 0.05)
    end = lead.pacer.paused_until
    asks(lead, "b", "1", "2", now=0.1)
    assert asks(lead, "a", "scout", now=end) == []
    assert lead.take_grant("b").go == ["1"]
    lead.forget("b", end + 0.1)
    lead.advance(end + 0.1)
    assert lead.take_grant("a").go == ["scout"]
    assert asks(lead, "a", "behind", now=end + 0.1) == []
    lead.advance(end + 2.0)
    assert lead.take_grant("a").go == []


@pytest.mark.parametrize(
    "note",
    [
        pytest.param(Note(is_new=True), id="it begins anew"),
        pytest.param(Note(gone=["1"]), id="it gave the first back"),
        pytest.param(Note(over=[Over("1", LimitReply(Fate.LIMITED, 9.0), 0.0, 0.0)]), id="it sends it again"),
    ],
)
def test_a_name_that_comes_again_stands_for_who_waits_now(note: Note) -> None:
    lead = lead_of(Limit(1.0, 5.0, 0.2, 0.2, most=0.2))
    assert asks(lead, "a", "1") == ["1"]
    lead.pacer.hold(9.0)
    note.waits = [claim("1")]
    lead.hear("a", note, 0.1)
    assert lead.pacer.status(0.1).waiting == {(Lane.ORDER, "bot"): 1}
    lead.forget("a", 0.2)
    assert lead.pacer.status(0.2).waiting == {}


def test_what_a_member_wrote_before_it_began_anew_is_void() -> None:
    lead = ten()
    lead.advance(0.0)
    lead.hear("a", Note(waits=[claim(str(number)) for number in range(11)], wants=1), 0.0)
    lead.hear("a", Note(is_new=True), 0.1)
    assert lead.take_grant("a") == Grant()
    lead.advance(5.0)
    assert lead.take_grant("a") == Grant()


def test_what_was_answered_is_over_when_its_member_goes() -> None:
    lead = ten()
    asks(lead, "a", *"12345")
    lead.hear("a", Note(over=[Over(name, ACCEPTED, 0.0, 0.1) for name in "12345"]), 0.1)
    lead.forget("a", 0.2)
    assert len(asks(lead, "b", *"123456789", now=0.3)) == 5


def test_what_it_does_not_know_of_changes_nothing() -> None:
    lead = ten()
    asks(lead, "a", *(str(number) for number in range(11)))
    lead.hear(
        "a",
        Note(
            gone=["x"],
            sent=[("x", 0.1), ("10", 0.1)],
            over=[Over("x", ACCEPTED, 0.0, 0.1), Over("10", ACCEPTED, 0.0, 0.1)],
        ),
        0.1,
    )
    assert len(lead.pacer.status(0.1).waiting) == 1


def test_what_cannot_go_in_time_is_declined_with_the_reason() -> None:
    lead = lead_of(Limit(1.0, 5.0, 0.2, 0.2, most=0.2))
    asks(lead, "a", "1")
    lead.hear("a", Note(waits=[claim("too late", give_up_at=5.5)]), 0.0)
    lead.hear("a", Note(waits=[claim("far too late", give_up_at=1.0)]), 0.0)
    lead.advance(0.0)
    [declined] = lead.take_grant("a").declined
    assert (declined.name, declined.slug) == ("far too late", "deadline_exceeded")
    assert declined.retry_after_s == pytest.approx(10.0, abs=0.1)
    asks(lead, "a", "2")
    lead.pacer.hold(9.0)
    lead.advance(5.6)
    assert lead.members() == ("a",)
    [declined] = lead.take_grant("a").declined
    assert (declined.name, declined.slug) == ("too late", "deadline_exceeded")
    lead.advance(12.0)
    assert lead.take_grant("a").go == ["2"]


@pytest.mark.parametrize("is_under_way", [True, False])
def test_a_name_that_is_told_twice_stands_in_the_queue_once(*, is_under_way: bool) -> None:
    lead = lead_of(Limit(2.0, 5.0, 0.4, 0.4, most=0.4))
    assert asks(lead, "a", "1") == ["1"]
    name = "1" if is_under_way else "2"
    lead.pacer.hold(4.0)
    asks(lead, "a", name)
    asks(lead, "a", name)
    assert lead.pacer.status(0.0).waiting == {(Lane.ORDER, "bot"): 1}
    lead.hear("a", Note(gone=[name]), 0.0)
    assert lead.pacer.status(0.0).waiting == {}


def test_a_pause_found_in_its_own_process_is_obeyed() -> None:
    lead = ten()
    assert lead.goes_at_once("me", claim("1"), 0.0)
    lead.hear("me", Note(over=[Over("1", LimitReply(Fate.LIMITED, 1.0, 0.0), 0.0, 0.01)]), 0.02)
    assert not lead.goes_at_once("me", claim("2"), 0.5)


@pytest.mark.parametrize(
    "tell",
    [
        pytest.param(lambda lead: lead.hear("a", Note(gone=["1"]), 0.5), id="what was heard"),
        pytest.param(lambda lead: lead.forget("a", 0.5), id="who is gone"),
    ],
)
def test_what_may_let_others_go(tell: Callable[[Lead], None]) -> None:
    lead = ten()
    lead.advance(0.0)
    assert not lead.is_due(0.5)
    tell(lead)
    assert lead.is_due(0.5)


@pytest.mark.parametrize(
    ("n", "asking", "lent"),
    [
        pytest.param(32.0, "aba", [4, 4, 0], id="the same to each"),
        pytest.param(10.0, "abc", [1, 1, 0], id="where there are few, one to each while there is one"),
    ],
)
def test_credits_are_shared_out_among_the_members(n: float, asking: str, lent: list[int]) -> None:
    lead = lead_of(Limit(n, 1.0, n, n, most=n))
    lead.advance(0.0)
    for member in asking:
        lead.hear(member, Note(), 0.0)
    for member, number in zip(asking, lent, strict=True):
        lead.hear(member, Note(wants=20), 0.0)
        assert len(lead.take_grant(member).credits) == number


def test_a_credit_that_is_used_makes_room_for_another() -> None:
    lead = ten()
    lead.advance(0.0)
    lead.hear("a", Note(wants=2), 0.0)
    name, _ = lead.take_grant("a").credits
    lead.hear("a", Note(wants=2), 0.1)
    assert lead.take_grant("a").credits == []
    lead.hear("a", Note(sent=[(name, 0.2)], wants=2), 0.2)
    assert len(lead.take_grant("a").credits) == 1


def test_it_is_due_when_somebody_may_go() -> None:
    lead = ten()
    asks(lead, "a", *(str(number) for number in range(11)))
    assert [lead.is_due(now) for now in (1.0, lead.look_at)] == [False, True]
