"""The states of an upstream connection: every pair, what cannot be with its reason, and the picture."""

from itertools import product

import pytest

from rig.states import Impossible, check_pair, check_walk, drawn_events, drawn_table, names
from sealgate.gateway.upstream import states
from sealgate.gateway.upstream.states import TABLE, Event, State, after

# Why an event cannot be, and in which states.
IMPOSSIBLE: Impossible = {
    "one request at a time": {"SEND": ("ASKED", "BODY", "WHOLE")},
    "nothing may be asked any more": {"SEND": ("ENDED", "SPOILED", "CLOSED")},
    "nothing was asked": dict.fromkeys(("HEAD", "END"), ("IDLE", "ENDED")),
    "the head has not come": {"END": ("ASKED",)},
    "a second reply to one request is not taken": {"HEAD": ("BODY", "WHOLE")},
    "the reply was whole before": {"END": ("WHOLE",)},
    "what comes is not taken": dict.fromkeys(("HEAD", "END"), ("SPOILED", "CLOSED")),
    "the reply must be whole before another is asked for": {"RELEASE": ("ASKED", "BODY")},
    "it serves no other": {"RELEASE": ("ENDED", "SPOILED", "CLOSED")},
}
PAIRS = list(product(State, Event))


@pytest.mark.parametrize(("state", "event"), PAIRS, ids=lambda one: one.name)
def test_every_pair_leads_somewhere_or_cannot_be(state: State, event: Event) -> None:
    check_pair(states, state, event, IMPOSSIBLE, "an upstream connection")


WALKS = {
    "two replies": "IDLE SEND ASKED HEAD BODY END WHOLE RELEASE IDLE SEND ASKED HEAD BODY END WHOLE",
    "given back unused": "IDLE RELEASE IDLE CLOSE CLOSED SPOIL CLOSED",
    "the reply says that it is the last": "ASKED HEAD BODY END WHOLE CLOSE CLOSED SPOIL CLOSED",
    "a reply whose end is that of the connection": "BODY END WHOLE SPOIL SPOILED CLOSE CLOSED",
    "cut in the body": "BODY SPOIL SPOILED CLOSE CLOSED",
    "lost without a reply": "ASKED SPOIL SPOILED CLOSE CLOSED",
    "something comes unasked": "IDLE SPOIL ENDED SPOIL ENDED CLOSE CLOSED",
    "the bot hangs up": "ASKED CLOSE CLOSED SPOIL CLOSED",
}


@pytest.mark.parametrize("walk", WALKS.values(), ids=WALKS)
def test_a_walk(walk: str) -> None:
    check_walk(walk, State, Event, after)


def test_a_spoiled_connection_is_never_used_again() -> None:
    spoiled = {after(state, Event.SPOIL) for state in State}
    assert spoiled == {State.ENDED, State.SPOILED, State.CLOSED}
    assert {follower for state in spoiled for follower in TABLE[state].values()} == spoiled


def test_every_connection_can_be_closed() -> None:
    assert {after(state, Event.CLOSE) for state in State} == {State.CLOSED}


def test_the_picture_is_the_table() -> None:
    title = "A connection to the upstream"
    assert drawn_table(title) == names(TABLE)
    assert drawn_events(title) == [event.name for event in Event]
