"""What the tests of a table of states need, and that table as docs/design.md draws it."""

import re
from collections.abc import Callable, Mapping
from enum import Enum
from types import ModuleType
from typing import Any

import pytest

from rig.fences import ROOT

Drawn = dict[str, dict[str, str]]  # state -> event -> state
Impossible = Mapping[str, Mapping[str, tuple[str, ...]]]  # why -> event -> in which states

_ROW = re.compile(r"^\| `(\w+)` \|[^|]+\| (.*) \|$", re.MULTILINE)
_STEP = re.compile(r"`(\w+)` → `(\w+)`")
_EVENT = re.compile(r"^- `(\w+)`: ", re.MULTILINE)


def _part(title: str) -> str:
    _, _, behind = (ROOT / "docs" / "design.md").read_text().partition(f"\n### {title}\n")
    return re.split(r"^##", behind, maxsplit=1, flags=re.MULTILINE)[0]


def drawn_table(title: str) -> Drawn:
    """Return the table below a title."""
    return {state: dict(_STEP.findall(steps)) for state, steps in _ROW.findall(_part(title))}


def drawn_events(title: str) -> list[str]:
    """Return the events that are explained below a title."""
    return _EVENT.findall(_part(title))


def names(table: Mapping[Any, Mapping[Any, Any]]) -> Drawn:
    """Return a table as it is drawn."""
    return {state.name: {event.name: to.name for event, to in row.items()} for state, row in table.items()}


def check_pair(states: ModuleType, state: Enum, event: Enum, impossible: Impossible, of: str) -> None:
    """Check that an event leads where the table of `states` says, or cannot be, for just one reason."""
    why = [why for why, events in impossible.items() if state.name in events.get(event.name, ())]
    if why:
        assert len(why) == 1
        with pytest.raises(RuntimeError, match=f"{event.name} in the state {state.name} of {of}"):
            states.after(state, event)
    else:
        assert states.after(state, event) is states.TABLE[state][event]


def check_walk(walk: str, states: type[Enum], events: type[Enum], after: Callable[[Any, Any], Enum]) -> None:
    """Walk through states: a walk is a state, and then by turns an event and the state that follows."""
    first, *steps = walk.split()
    state = states[first]
    for event, expected in zip(steps[::2], steps[1::2], strict=True):
        state = after(state, events[event])
        assert state is states[expected]
