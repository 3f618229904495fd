"""The states of a connection to the upstream, and what leads from one to another: docs/design.md draws it.

Beside them there is flow control (http/flow.py), and whether the reply is the last on its connection.
"""

from enum import IntEnum


class State(IntEnum):
    """How far the one request is that a connection carries at a time."""

    IDLE = 0  # nothing is asked, and something may be
    ENDED = 1  # nothing is asked, nor may be
    ASKED = 2  # nothing of the reply is known
    BODY = 3  # the reply's head has come, and its body still comes
    WHOLE = 4  # the reply has come
    SPOILED = 5  # nothing more comes; a reply that was whole may be read
    CLOSED = 6


class Event(IntEnum):
    """What leads from one state to another."""

    SEND = 0
    HEAD = 1  # of a reply
    END = 2  # of the body
    RELEASE = 3
    SPOIL = 4  # nothing more that comes can be trusted
    CLOSE = 5


# By names of their own, as in gateway/request/context.py.
IDLE, ENDED, ASKED, BODY, WHOLE, SPOILED, CLOSED = State
SEND, HEAD, END, RELEASE, SPOIL, CLOSE = Event

TABLE: dict[State, dict[Event, State]] = {
    IDLE: {SEND: ASKED, RELEASE: IDLE, SPOIL: ENDED, CLOSE: CLOSED},
    ENDED: {SPOIL: ENDED, CLOSE: CLOSED},
    ASKED: {HEAD: BODY, SPOIL: SPOILED, CLOSE: CLOSED},
    BODY: {END: WHOLE, SPOIL: SPOILED, CLOSE: CLOSED},
    WHOLE: {RELEASE: IDLE, SPOIL: SPOILED, CLOSE: CLOSED},
    SPOILED: {SPOIL: SPOILED, CLOSE: CLOSED},
    CLOSED: {SPOIL: CLOSED, CLOSE: CLOSED},  # the transport tells later that it is gone
}


def after(state: State, event: Event) -> State:
    """Return the state that follows. Raises RuntimeError where the event cannot be."""
    try:
        return TABLE[state][event]
    except KeyError:
        raise RuntimeError(f"{event.name} in the state {state.name} of an upstream connection") from None
