"""What the tests of both tables of states share, and those tables as docs/design.md draws them."""

import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

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


def why_impossible(state: Enum, event: Enum, impossible: Impossible) -> list[str]:
    """Return why an event cannot be in a state."""
    return [why for why, events in impossible.items() if state.name in events.get(event.name, ())]


def check_walk(walk: str, states: type[Enum], events: type[Enum], after: Callable[[Any, Any], Enum]) -> None:
    """Walk through states: a walk is a state, and then by turns an event and the state that follows."""
    first, *steps = walk.split()
    state = states[first]
    for event, expected in zip(steps[::2], steps[1::2], strict=True):
        state = after(state, events[event])
        assert state is states[expected]
