"""The states of a bot's connection, and what leads from one to another; docs/design.md draws the table.

A request is under way from the last byte of its head until its reply is written. What is no state, as it goes
with several of them: flow control (host/flow.py), and whether the gateway is about to stop.
"""

from enum import IntEnum


class State(IntEnum):
    """What is under way, and what of the next request has come."""

    NEW = 0  # nothing has come
    IDLE = 1  # all that came is answered
    HEAD = 2  # nothing is under way, and a part of a head has come
    BODY = 3  # requests are under way, and the body of the latest still comes
    SERVING = 4  # requests are under way, and all of them whole
    NEXT = 5  # the same, with a part of a head behind them
    LAST = 6  # what was taken is answered, no more is taken
    TURNED_AWAY = 7  # one connection too many
    LINGERING = 8  # all was said, and the bot may still send
    CLOSING = 9  # all was said
    CLOSED = 10


class Event(IntEnum):
    """What the bytes of a bot, the replies to it and the end of its connection are to the states."""

    PART = 0  # of a head, the first
    OPENED = 1  # a request, whose body still comes
    REQUEST = 2  # a request that is whole
    END = 3  # of the body
    CUT = 4  # what comes from now on cannot be told apart, or was never wanted
    ANSWERED = 5  # all that was taken, and the connection stays
    DONE = 6  # nothing more will be answered
    LOST = 7


# By names of their own, as in gateway/request/context.py.
NEW, IDLE, HEAD, BODY, SERVING, NEXT, LAST, TURNED_AWAY, LINGERING, CLOSING, CLOSED = State
PART, OPENED, REQUEST, END, CUT, ANSWERED, DONE, LOST = Event

_NOTHING_UNDER_WAY: dict[Event, State] = {
    OPENED: BODY,
    REQUEST: SERVING,
    CUT: LAST,
    DONE: CLOSING,
    LOST: CLOSED,
}

TABLE: dict[State, dict[Event, State]] = {
    NEW: {PART: HEAD, **_NOTHING_UNDER_WAY},
    IDLE: {PART: HEAD, **_NOTHING_UNDER_WAY},
    HEAD: _NOTHING_UNDER_WAY,
    # RFC 9112 section 9.6: a bot that still sends may read its reply first.
    BODY: {END: SERVING, CUT: LAST, DONE: LINGERING, LOST: CLOSED},
    SERVING: {**_NOTHING_UNDER_WAY, PART: NEXT, ANSWERED: IDLE},
    NEXT: {**_NOTHING_UNDER_WAY, ANSWERED: HEAD},
    LAST: {ANSWERED: LAST, DONE: LINGERING, LOST: CLOSED},
    TURNED_AWAY: {DONE: CLOSING, LOST: CLOSED},
    LINGERING: {LOST: CLOSED},
    CLOSING: {LOST: CLOSED},
    CLOSED: {ANSWERED: CLOSED, DONE: CLOSED},  # who serves hears of it later
}

# What comes in these is thrown away.
DEAF = frozenset({LAST, TURNED_AWAY, LINGERING, CLOSING, CLOSED})


def after(state: State, event: Event) -> State:
    """Return the state that follows. Raises RuntimeError where the event cannot be."""
    try:
        return TABLE[state][event]
    except KeyError:
        raise RuntimeError(f"{event.name} in the state {state.name} of a bot's connection") from None
