"""The states of a bot's connection: every pair, what cannot be with its reason, and the picture."""

from itertools import product

import pytest

from rig.states import Impossible, check_pair, check_walk, drawn_events, drawn_table, names
from sealgate.gateway.bots import states
from sealgate.gateway.bots.states import DEAF, TABLE, Event, State, after

ENDING = ("LINGERING", "CLOSING")
# Why an event cannot be, and in which states.
IMPOSSIBLE: Impossible = {
    "the body must be whole before anything follows it": {
        "PART": ("BODY",),
        "OPENED": ("BODY",),
        "REQUEST": ("BODY",),
    },
    "a head that has begun does not begin": {"PART": ("HEAD", "NEXT")},
    "no body is on its way": {"END": ("NEW", "IDLE", "HEAD", "SERVING", "NEXT")},
    "nothing was asked": {"ANSWERED": ("NEW", "IDLE", "HEAD")},
    "who is answered before its body has come may not stay": {"ANSWERED": ("BODY",)},
    "what comes is thrown away": dict.fromkeys(
        ("PART", "OPENED", "REQUEST", "END", "CUT"), ("LAST", "TURNED_AWAY", "LINGERING", "CLOSING", "CLOSED")
    ),
    "nobody is served": {"ANSWERED": ("TURNED_AWAY", *ENDING)},
    "it was done before": {"DONE": ENDING},
    "it was lost before": {"LOST": ("CLOSED",)},
}
PAIRS = list(product(State, Event))


@pytest.mark.parametrize(("state", "event"), PAIRS, ids=lambda one: one.name)
def test_every_pair_leads_somewhere_or_cannot_be(state: State, event: Event) -> None:
    check_pair(states, state, event, IMPOSSIBLE, "a bot's connection")


# What a bot does, as the states that its connection goes through.
WALKS = {
    "it says nothing": "NEW DONE CLOSING LOST CLOSED",
    "it asks, rests, and asks": "NEW REQUEST SERVING ANSWERED IDLE REQUEST SERVING ANSWERED IDLE",
    "a head in pieces": "NEW PART HEAD REQUEST SERVING ANSWERED IDLE PART HEAD OPENED BODY END SERVING",
    "one behind another": "IDLE REQUEST SERVING REQUEST SERVING OPENED BODY END SERVING ANSWERED IDLE",
    "a half head behind a request": "SERVING PART NEXT ANSWERED HEAD REQUEST SERVING",
    "a half head that becomes a request in time": "SERVING PART NEXT REQUEST SERVING PART NEXT OPENED BODY",
    "a head that takes too long": "IDLE PART HEAD CUT LAST DONE LINGERING LOST CLOSED",
    "a body that is refused before it has come": "HEAD OPENED BODY DONE LINGERING LOST CLOSED",
    "trailers": "NEW OPENED BODY CUT LAST ANSWERED LAST DONE LINGERING LOST CLOSED",
    "no HTTP behind a request": "SERVING CUT LAST ANSWERED LAST DONE LINGERING",
    "the last reply": "SERVING DONE CLOSING LOST CLOSED",
    "it is gone while it is served": "SERVING LOST CLOSED ANSWERED CLOSED DONE CLOSED",
    "one too many": "TURNED_AWAY DONE CLOSING LOST CLOSED",
}


@pytest.mark.parametrize("walk", WALKS.values(), ids=WALKS)
def test_a_walk(walk: str) -> None:
    check_walk(walk, State, Event, after)


def test_every_connection_can_be_lost_and_none_comes_back() -> None:
    for state in set(State) - {State.CLOSED}:
        assert after(state, Event.LOST) is State.CLOSED
    assert set(TABLE[State.CLOSED].values()) == {State.CLOSED}


def test_who_is_not_listened_to_never_is_again() -> None:
    assert {follower for state in DEAF for follower in TABLE[state].values()} <= DEAF


def test_the_picture_is_the_table() -> None:
    title = "A bot's connection"
    assert drawn_table(title) == names(TABLE)
    assert drawn_events(title) == [event.name for event in Event]
