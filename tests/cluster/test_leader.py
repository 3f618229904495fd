"""The leader's side: one line for all members, credits, and what becomes of a member that is gone."""

from collections.abc import Callable
from copy import copy

import pytest

from sealgate.cluster.leader import LISTENS_S, Leader
from sealgate.cluster.messages import Completion, Note, Passage, SharedPool
from sealgate.limits import Limit
from sealgate.limits.claims import Claim, Fate, LimitReply
from sealgate.limits.pools import PacerSettings
from sealgate.limits.round_trips import FIRST_S
from sealgate.venues.routes import Lane

ALL = "all"
ANY = Passage((ALL,), ())  # what a claim passes of which nothing more is known
TEN = Limit(10.0, 1.0, 10.0, 10.0, most=10.0)
ONE_IN_FIVE = Limit(1.0, 5.0, 0.2, 0.2, most=0.2)
ACCEPTED = LimitReply(Fate.ACCEPTED)


def claim(name: str, bot: str = "bot", give_up_at: float = 1000.0) -> Claim:
    return Claim(name, bot, Lane.ORDER, give_up_at)


def leader_of(*limits: Limit, opens_at: float = 0.0) -> Leader:
    known = {ALL: SharedPool(tuple(map(copy, limits)))}
    leader = Leader(PacerSettings(), lambda: 0.5, known, opens_at)
    leader.advance(0.0)
    return leader


def waits(names: str, bot: str = "bot") -> Note:
    return Note(waits=[claim(name, bot) for name in names.split()])


def over(names: str, sent_at: float = 0.0, at: float = 0.04, reply: LimitReply = ACCEPTED) -> Note:
    return Note(completed=[Completion(name, reply, sent_at, at) for name in names.split()])


def limited(name: str, seconds: float) -> Note:
    return over(name, reply=LimitReply(Fate.LIMITED, seconds, 0.0))


def told(leader: Leader, now: float, member: str, *notes: Note | None) -> str:
    """Return the names that a member is granted after its notes: claims, then credits; None: it is gone."""
    for note in notes:
        leader.forget(member, now) if note is None else leader.receive(member, note, now)
    leader.advance(now)
    grant = leader.take_grant(member)
    return " ".join((*grant.go, *(name for names in grant.credits.values() for name in names)))


NINE = "1 2 3 4 5 6 7 8 9"
ELEVEN = f"0 {NINE} x"
NEWS = Note()  # of others

# What each member tells at a time, and what it is granted then.
Transcript = list[tuple[float, str, tuple[Note | None, ...], str]]
TRANSCRIPTS: dict[str, tuple[list[Limit], Transcript]] = {
    "the budget is one": (
        [TEN],
        [
            (0.0, "a", (waits("1 2 3 4 5 6"),), "1 2 3 4 5 6"),
            (0.0, "b", (waits("1 2 3 4 5 6"),), "1 2 3 4"),
            (1.5, "b", (NEWS,), "5"),
        ],
    ),
    "a pause is one": (
        [TEN],
        [
            (0.0, "a", (waits("1"),), "1"),
            (0.05, "a", (limited("1", 3.0),), ""),
            (0.1, "b", (waits("1"),), ""),
            (3.0, "b", (NEWS,), ""),
            (3.1, "b", (NEWS,), "1"),
        ],
    ),
    "what a late comer has spent counts as sent now": (
        [TEN],
        [
            (1.0, "late", (Note(is_new=True, spent={ALL: [(0.5, 4.0), (0.1, 4.0)]}),), ""),
            (1.0, "a", (waits("1 2 3"),), "1 2"),
        ],
    ),
    "credits are places that nobody else has: a quarter of the smallest limit": (
        [TEN, Limit(1000.0, 60.0, 16.666667, 16.666667, most=16.666667)],
        [
            (0.0, "a", (Note(wants={ANY: 20}),), "+1 +2"),
            (0.0, "b", (waits(NINE),), "1 2 3 4 5 6 7 8"),
            (0.1, "a", (Note(gone=["+1", "+2"]),), ""),
            (0.2, "b", (NEWS,), "9"),
        ],
    ),
    "a credit that was given back can be lent anew": (
        [TEN],
        [
            (0.0, "a", (Note(wants={ANY: 20}),), "+1 +2"),
            (0.0, "a", (Note(gone=["+1", "+2"]),), ""),
            (0.1, "a", (Note(wants={ANY: 20}),), "+3 +4"),
        ],
    ),
    "a credit that is used makes room for another": (
        [TEN],
        [
            (0.0, "a", (Note(wants={ANY: 2}),), "+1 +2"),
            (0.1, "a", (Note(wants={ANY: 2}),), ""),
            (0.2, "a", (Note(sent=[("+1", 0.2)], wants={ANY: 2}),), "+3"),
        ],
    ),
    "a credit that is used counts from then on": (
        [TEN],
        [
            (0.0, "a", (Note(wants={ANY: 1}),), "+1"),
            (0.91, "a", (Note(sent=[("+1", 0.9)]),), ""),
            (0.95, "a", (over("+1", 0.9, 0.92),), ""),
            (1.5, "b", (waits(ELEVEN),), f"0 {NINE[:-2]}"),
        ],
    ),
    "each member is lent the same": (
        [Limit(32.0, 1.0, 32.0, 32.0, most=32.0)],
        [
            (0.0, "b", (NEWS,), ""),
            (0.0, "a", (Note(wants={ANY: 20}),), "+1 +2 +3 +4"),
            (0.0, "b", (Note(wants={ANY: 20}),), "+5 +6 +7 +8"),
            (0.0, "a", (Note(wants={ANY: 20}),), ""),
        ],
    ),
    "where credits are few, one to each while there is one": (
        [TEN],
        [
            (0.0, "b", (NEWS,), ""),
            (0.0, "c", (NEWS,), ""),
            (0.0, "a", (Note(wants={ANY: 20}),), "+1"),
            (0.0, "b", (Note(wants={ANY: 20}),), "+2"),
            (0.0, "c", (Note(wants={ANY: 20}),), ""),
        ],
    ),
    "no credit where there is no room": (
        [TEN, Limit(10.0, 60.0, 0.166667, 0.166667, most=0.166667)],
        [(0.0, "b", (waits(f"0 {NINE}"),), f"0 {NINE}"), (0.5, "a", (Note(wants={ANY: 1}),), "")],
    ),
    "where no limit is known credits are many": (
        [],
        [(0.0, "a", (Note(wants={ANY: 1000}),), " ".join(f"+{number}" for number in range(1, 257)))],
    ),
    "what is told late counts from when it was sent": (
        [TEN],
        [
            (0.0, "a", (waits("1"),), "1"),
            (0.05, "b", (waits(NINE),), NINE),
            (0.07, "a", (Note(sent=[("1", 0.02)]), over("1", 0.02, 0.03)), ""),
            (1.02, "b", (waits("early"),), ""),
            (1.02 + FIRST_S + 0.001, "b", (NEWS,), "early"),
        ],
    ),
    "a member that is gone leaves what it sent counted, and no more": (
        [TEN],
        [
            (0.0, "a", (Note(wants={ANY: 2}),), "+1 +2"),
            (0.0, "a", (waits("1 2 3 4 5 6 7 8"),), "1 2 3 4 5 6 7 8"),
            (0.0, "b", (waits("x"),), ""),
            (0.1, "never seen", (None,), ""),
            (0.1, "a", (None,), ""),
            (0.2, "b", (NEWS,), "x"),
            (0.3, "b", (waits("1 2 3"),), "1"),
        ],
    ),
    "what was answered is over when its member goes": (
        [TEN],
        [
            (0.0, "a", (waits("1 2 3 4 5"),), "1 2 3 4 5"),
            (0.1, "a", (over("1 2 3 4 5", at=0.1),), ""),
            (0.2, "a", (None,), ""),
            (0.3, "b", (waits(NINE),), "1 2 3 4 5"),
        ],
    ),
    "a scout whose member is gone is followed by the next, after a while": (
        [TEN],
        [
            (0.0, "a", (waits("1"),), "1"),
            (0.05, "a", (limited("1", 1.0),), ""),
            (0.1, "b", (waits("1 2"),), ""),
            (1.05, "b", (NEWS,), "1"),
            (1.05, "a", (waits("scout"),), ""),
            (1.15, "b", (None,), ""),
            (2.95, "a", (NEWS,), ""),
            (3.05, "a", (NEWS,), "scout"),
            (3.15, "a", (waits("behind"),), ""),
        ],
    ),
    "what a member wrote before it began anew is void": (
        [TEN],
        [(0.0, "a", (Note(wants={ANY: 1}), waits(ELEVEN), Note(is_new=True)), ""), (5.0, "a", (NEWS,), "")],
    ),
    "what it does not know of changes nothing": (
        [TEN],
        [
            (0.0, "a", (waits(ELEVEN),), f"0 {NINE}"),
            (0.1, "a", (Note(gone=["?"], sent=[("?", 0.1), ("x", 0.1)]), over("? x", at=0.1)), ""),
            (2.0, "a", (NEWS,), "x"),
        ],
    ),
    "a name that is told twice stands in the queue once": (
        [ONE_IN_FIVE],
        [(0.0, "a", (waits("1"),), "1"), (0.0, "a", (waits("2"), waits("2")), ""), (99.0, "a", (NEWS,), "2")],
    ),
}


@pytest.mark.parametrize(("limits", "transcript"), TRANSCRIPTS.values(), ids=TRANSCRIPTS)
def test_what_it_grants(limits: list[Limit], transcript: Transcript) -> None:
    leader = leader_of(*limits)
    for now, member, notes, granted in transcript:
        assert told(leader, now, member, *notes) == granted, now


@pytest.mark.parametrize(
    "note",
    [
        pytest.param(Note(is_new=True), id="it begins anew"),
        pytest.param(Note(gone=["1"]), id="it gave the first back"),
        pytest.param(limited("1", 9.0), id="it sends it again"),
        pytest.param(waits("1"), id="it is told twice"),
    ],
)
def test_a_name_that_comes_again_stands_for_who_waits_now(note: Note) -> None:
    leader = leader_of(ONE_IN_FIVE)
    assert told(leader, 0.0, "a", waits("1")) == "1"
    leader.pacer.hold(ALL, 9.0, 0.0)
    leader.receive("a", note, 0.1)
    leader.receive("a", waits("1"), 0.1)
    assert leader.pacer.status(0.1).waiting == {("", Lane.ORDER, "bot"): 1}
    leader.forget("a", 0.2)
    assert leader.pacer.status(0.2).waiting == {}


def test_a_bot_at_two_gateways_has_one_share() -> None:
    leader = leader_of(Limit(1.0, 1.0, 1.0, 1.0, most=1.0))
    told(leader, 0.0, "a", waits("first"))
    for number in range(40):
        told(leader, 0.1, "a", waits(f"x{number}", "x"))
        told(leader, 0.1, "b", waits(f"x{number}", "x"), waits(f"y{number}", "y"))
    went = [told(leader, 2.0 * number, member, NEWS) for number in range(1, 41) for member in "ab"]
    of_y = sum(names.count("y") for names in went)
    assert of_y == pytest.approx(sum(names != "" for names in went) / 2, abs=1)


def test_before_it_opens_it_only_listens_and_counts() -> None:
    leader = leader_of(TEN, opens_at=LISTENS_S)
    assert not leader.is_due(0.0)
    leader.receive("a", Note(is_new=True, spent={ALL: [(0.9, 1.0), (0.3, 3.0), (0.1, 3.0)]}), 0.0)
    leader.receive("b", Note(is_new=True, spent={ALL: [(0.2, 2.0)]}, wants={ANY: 5}), 0.1)
    assert told(leader, 0.2, "a", waits("1 2 3")) == ""
    assert not leader.goes_at_once("b", claim("1"), 0.2)
    assert told(leader, LISTENS_S, "a") == "1 2"


def test_what_cannot_go_in_time_is_declined_with_the_reason() -> None:
    leader = leader_of(ONE_IN_FIVE)
    told(leader, 0.0, "a", waits("1"))
    late = [claim("too late", give_up_at=5.5), claim("far too late", give_up_at=1.0)]
    leader.receive("a", Note(waits=late), 0.0)
    leader.advance(0.0)
    [rejected] = leader.take_grant("a").rejected
    assert (rejected.name, rejected.slug) == ("far too late", "deadline_exceeded")
    assert rejected.retry_after_s == pytest.approx(10.0, abs=0.1)
    told(leader, 0.0, "a", waits("2"))
    leader.pacer.hold(ALL, 9.0, 0.0)
    leader.advance(5.6)
    [rejected] = leader.take_grant("a").rejected
    assert (rejected.name, rejected.slug) == ("too late", "deadline_exceeded")
    assert told(leader, 12.0, "a") == "2"


def test_a_pause_found_in_its_own_process_is_obeyed() -> None:
    leader = leader_of(TEN)
    assert leader.goes_at_once("me", claim("1"), 0.0)
    leader.receive("me", limited("1", 1.0), 0.05)
    assert not leader.goes_at_once("me", claim("2"), 0.5)


@pytest.mark.parametrize(
    "tell",
    [
        pytest.param(lambda leader: leader.receive("a", Note(gone=["1"]), 0.5), id="what was heard"),
        pytest.param(lambda leader: leader.forget("a", 0.5), id="who is gone"),
    ],
)
def test_what_may_let_others_go(tell: Callable[[Leader], None]) -> None:
    leader = leader_of(TEN)
    assert not leader.is_due(0.5)
    tell(leader)
    assert leader.is_due(0.5)


def test_it_is_due_when_somebody_may_go() -> None:
    leader = leader_of(TEN)
    told(leader, 0.0, "a", waits(ELEVEN))
    assert [leader.is_due(now) for now in (1.0, leader.look_at)] == [False, True]
