"""What a gateway is said to be, of all that holds at the moment."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from admin.test_picture import KEY, STATUS, picture
from rig.fences import ROOT
from rig.verdicts import verdict
from sealgate.admin.activity import Failing
from sealgate.admin.picture import State, state
from sealgate.core.doubts import JournalStatus
from sealgate.core.halts import Halt, Halts, Scope
from sealgate.core.status import Status, halt_status

GOOD, REFUSED = KEY, replace(KEY, disabled="the exchange calls it invalid")
Change = Callable[[Status], Status]

# Each with what alone brings it about, the gravest first.
CHANGES: dict[State, Change] = {
    State.SHUTTING_DOWN: lambda status: replace(status, is_draining=True),
    State.KEY_REFUSED: lambda status: replace(status, keys=(REFUSED, REFUSED)),
    State.NOT_READY: lambda status: replace(status, not_ready=("clock not synced",)),
    State.HALTED: lambda status: replace(status, halts=halt_status(Halts(Halt(Scope("grid"), 0)))),
    State.SIGNATURES_REFUSED: lambda status: replace(
        status, keys=(*status.keys, replace(KEY, trouble="the exchange refused its last 3 signatures"))
    ),
    State.JOURNAL_FAILING: lambda status: replace(
        status, journal=JournalStatus(0, (), "disk full", is_refusing=False)
    ),
    State.A_KEY_REFUSED: lambda status: replace(status, keys=(*status.keys, REFUSED)),
    State.CLOCK_NOT_READ: lambda status: replace(
        status, clock=replace(status.clock, trouble="connection refused")
    ),
    State.PAUSED: lambda status: replace(status, keys=(*status.keys, replace(KEY, pause_s=0.1))),
    State.READY: lambda status: status,
}


@pytest.mark.parametrize(("expected", "change"), CHANGES.items(), ids=str)
def test_each_state_is_told_where_only_it_holds(expected: State, change: Change) -> None:
    assert state(change(STATUS), is_failing=False, is_refusing=False) is expected


def test_an_exchange_that_fails() -> None:
    assert state(STATUS, is_failing=True, is_refusing=True) is State.EXCHANGE_FAILING
    failing = Failing(verdict("unreachable"), 0.0, 1.0, 3, None)
    assert picture(failing=failing).document()["state"] == "exchange failing"


def test_the_gravest_is_told() -> None:
    """All hold at once, then ever fewer."""
    order = list(State)
    for index, gravest in enumerate(order):
        status = STATUS
        for other in reversed(order[index:]):
            status = CHANGES[other](status) if other in CHANGES else status
        is_failing = index <= order.index(State.EXCHANGE_FAILING)
        is_refusing = index <= order.index(State.REFUSING)
        assert state(status, is_failing=is_failing, is_refusing=is_refusing) is gravest


def test_the_docs_tell_what_each_means() -> None:
    page = (ROOT / "docs/observing.md").read_text()
    table = page.partition("| state | what it means |")[2].partition("\n\n")[0]
    told = {name for cells in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in cells.split(", ")}
    assert told - {"`reconnecting`", "`stalled`"} == {f"`{one}`" for one in State}
