"""What matters most about a gateway at one moment, in two words, for the page and `sealgate top`."""

from enum import StrEnum

from sealgate.core.status import Status


class State(StrEnum):
    """The states, the gravest first."""

    SHUTTING_DOWN = "shutting down"
    KEY_REFUSED = "key refused"
    NOT_READY = "not ready"
    HALTED = "halted"
    SIGNATURES_REFUSED = "signatures refused"
    EXCHANGE_FAILING = "exchange failing"
    JOURNAL_FAILING = "journal failing"
    A_KEY_REFUSED = "a key refused"
    CLOCK_NOT_READ = "clock not read"
    REFUSING = "bots refused"
    PAUSED = "paused"
    READY = "ready"


def state(status: Status, *, is_failing: bool, is_refusing: bool) -> State:
    """Return the gravest state of all that hold.

    `is_failing`: the exchange gives no answer. `is_refusing`: most requests of some bot are refused here.
    """
    keys = status.keys
    holds = {
        State.SHUTTING_DOWN: status.is_draining,
        State.KEY_REFUSED: all(key.disabled for key in keys),
        State.NOT_READY: bool(status.not_ready),
        State.HALTED: bool(status.halts),
        State.SIGNATURES_REFUSED: any(key.trouble for key in keys),
        State.EXCHANGE_FAILING: is_failing,
        State.JOURNAL_FAILING: bool(status.journal.trouble),
        State.A_KEY_REFUSED: any(key.disabled for key in keys),
        State.CLOCK_NOT_READ: bool(status.clock.trouble),
        State.REFUSING: is_refusing,
        State.PAUSED: any(key.pause_s > 0 for key in keys),
        State.READY: True,
    }
    return next(one for one in State if holds[one])
